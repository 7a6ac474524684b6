"""Random scenes: shapes, sizes, masses over six decades, friction 0 to 2, steps of 0.5 to 10 ms."""

from collections.abc import Iterator

import numpy as np

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.mechanics import rotations
from truth.scene import Scene, Thing
from truth.verdict import Result, limits_of

SECONDS = 0.8


def random_shape(rng):
    """A shape of about a metre."""
    a = rng.uniform(0.3, 1.0, 3)
    kind = rng.integers(5)
    if kind == 0:
        return g.Sphere(a[0] / 2)
    if kind == 1:
        return g.Capsule(a[0] / 3, a[1])
    if kind == 2:
        return g.Cylinder(a[0] / 2, a[1])
    if kind == 3 and rng.random() < 0.5:
        return g.Box((a[0], a[1], 0.1 * a[2]))  # a plate
    return g.Box(tuple(a))


def scaled(shape, L):
    """The shape, ``L`` times as large."""
    sizes = {k: L * np.asarray(v) for k, v in vars(shape).items()}
    return type(shape)(**{k: tuple(v) if v.ndim else float(v) for k, v in sizes.items()})


def random_scene(seed) -> Scene:
    """Up to eight bodies that fall onto the ground or into a box."""
    rng = np.random.default_rng([seed, 40])
    L = 10 ** rng.uniform(-1.5, 0.3)
    h = float(np.exp(rng.uniform(np.log(5e-4), np.log(1e-2))))
    decades = rng.choice([0.0, 1.0, 3.0, 6.0])
    things = []
    for k in range(rng.integers(2, 9)):
        size = L * 10 ** rng.uniform(-0.3, 0.3)
        shape = scaled(random_shape(rng), size)
        q = rng.normal(size=4)
        turn = rotations(q[None] / np.linalg.norm(q))[0] if rng.random() < 0.7 else np.eye(3)
        at = (*rng.uniform(-0.6 * L, 0.6 * L, 2), (1.5 + 2.6 * k) * L)
        things.append(Thing(
            f"t{k}", shape, float(L**3 * 10 ** rng.uniform(-decades / 2, decades / 2)), at, turn,
            velocity=(0.0, 0.0, -float(np.sqrt(9.81 * L) * rng.uniform(0, 2))),
            spin=tuple(rng.normal(size=3) * rng.choice([0.0, 1.0, 5.0])),
        ))  # fmt: skip
    if rng.random() < 0.3:
        things += walls(1.5 * L, 0.2 * L)
    friction = float(rng.choice([0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 2.0]))
    steps = min(int(SECONDS * np.sqrt(L / 0.1) / h) + 20, 900)
    return Scene(tuple(things), friction=friction, timestep=h, steps=steps)


def walls(half, thick):
    """Four walls of a box."""
    return [
        Thing(f"wall{k}", g.Box(tuple(np.roll((thick, 4 * half, 4 * half), k // 2))), at=tuple(at))
        for k, at in enumerate(np.array(
            [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]) * (half + thick / 2) + [0, 0, half])
    ]  # fmt: skip


def random_results(count: int, seed: int) -> Iterator[Result]:
    """Results of scenes with consecutive seeds."""
    for k in range(seed, seed + count):
        scene = random_scene(k)
        result = Result(f"random {k}")
        try:
            judge = Judge(scene)
            steps = []
            for _ in range(scene.steps):
                steps.append(judge.step())
            result.add(judge, steps, limits_of(scene))
        except Exception as error:  # an error is a result
            result.figure, result.fine = f"{type(error).__name__}: {error}", False
        kinds = ", ".join(sorted({type(t.shape).__name__.lower() for t in scene.things if t.mass}))
        masses = [t.mass for t in scene.things if t.mass]
        result.figure += (
            f"{len(masses)} bodies ({kinds}), masses 1:{max(masses) / min(masses):.0e}, friction "
            f"{scene.friction}, {1e3 * scene.timestep:.2f} ms"
        )
        yield result
