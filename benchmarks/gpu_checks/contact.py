"""Rigid contact in rollouts on a device, and gradients through it, in every library."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import kinetree as kt
from kinetree.codegen.inline import evaluate
from kinetree.simulation.rollouts.rollout import run_of
from kinetree.simulation.setup import laws_of

__all__ = [
    "BOUNDS",
    "Case",
    "ball",
    "checks",
    "expected",
    "gradient_checks",
    "heap",
    "humanoid",
    "pair_checks",
    "quadruped",
]

STEP = 1e-3  # [s]
GAINS = 100.0, 3.0  # of position and speed of the quadruped's joints [N·m, N·m·s]
DAMPING = 1.0  # of the humanoid's joints [N·m·s]; without, stiff stops and steps of 1 ms diverge
BOUNDS = {"float64": 1e-11, "float32": 1e-5}  # of residuals [m/s]
_WORLDS = 33  # one more than a warp has


@dataclass(frozen=True)
class Case:
    """A robot on the ground.

    Attributes:
        model: with the ground.
        contact: ``TimeStepping``.
        options: of ``kt.rollout``.
        q: where it stands, (nq,).
    """

    model: Any
    contact: Any
    options: dict
    q: np.ndarray

    def states(self, count, spread, height, rng):
        """States near the start, and so high above the ground [m]."""
        move = 0.1 * spread * rng.standard_normal((count, self.model.nv))
        q = self.model.integrate(np.tile(self.q, (count, 1)), move)
        q[:, 2] += height - self.contact.scene.candidate_positions(self.model, q)[0].min(axis=-1)
        return q, spread * rng.standard_normal((count, self.model.nv))

    def rollout(self, q, qd, **options):
        """A rollout of arrays of any library."""
        given = {"dt": STEP, "contact": self.contact, "limits": None, **self.options, **options}
        return kt.rollout(self.model, q, qd, **given)

    def kernel(self, dtype):
        """The compiled function of its steps, which rollouts use."""
        given = {"steps": 1, "dt": STEP, "contact": self.contact, "limits": None, **self.options}
        laws = laws_of(self.model, given.get("friction", "auto"), given["limits"], rigid=False)
        given["friction"], given["limits"] = laws  # as rollouts on a device choose them
        start = self.q, np.zeros(self.model.nv)
        run = run_of(self.model, *start, dtype=dtype, on_device=True, **given)
        return run.transition.steps(), run.transition


def quadruped() -> Case:
    """Dog-sized, four feet on a plane, its joints held by springs and dampers of a controller."""
    model = kt.contact.with_ground(kt.samples.quadruped())
    feet = [g for g in model.geometry if isinstance(g.shape, kt.geometry.Sphere)]
    scene = kt.contact.Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q = np.array(model.posture("home").q)
    home = q[7:].copy()

    @kt.kernel
    def hold(model, q, qd):
        return np.concatenate([np.zeros(6), GAINS[0] * (home - q[7:]) - GAINS[1] * qd[6:]])

    return Case(model, kt.contact.TimeStepping(scene), {"controller": hold}, q)


def humanoid(*, thorough=True) -> Case:
    """A robot of a person's size, all its shapes against a plane; joints with stops and dampers."""
    model = kt.contact.with_ground(kt.samples.humanoid())
    damping = np.concatenate([np.zeros(6), np.full(model.nv - 6, DAMPING)])
    scene = kt.contact.Scene(model, "base", friction=0.8)

    @kt.kernel
    def damped(model, qd):
        return np.concatenate([np.zeros(6), -DAMPING * qd[6:]])

    contact = kt.contact.TimeStepping(scene, damping=damping, thorough=thorough)
    options = {"limits": "stiff", "controller": damped}
    return Case(model, contact, options, np.array(model.posture("home").q))


def ball() -> Case:
    """A ball on a plane."""
    builder = kt.ModelBuilder("ball")
    builder.body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
    builder.geometry(kt.geometry.Sphere(0.1), on="ball")
    model = kt.contact.with_ground(builder.build())
    scene = kt.contact.Scene(model, friction=0.3)
    return Case(model, kt.contact.TimeStepping(scene), {}, np.array([0, 0, 0.1, 1.0, 0, 0, 0]))


def heap(*shapes) -> Case:
    """Bodies above each other that may all touch; ``states`` drops them on each other."""
    builder = kt.ModelBuilder("heap of " + ", ".join(type(s).__name__.lower() for s in shapes))
    for k, shape in enumerate(shapes):
        builder.body(f"body{k}", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.16, 0.12, mass=1.0))
        builder.geometry(shape, on=f"body{k}")
    model = kt.contact.with_ground(builder.build())
    q = np.array(model.neutral())
    q[2::7] = 0.2 + 0.3 * np.arange(len(shapes))
    scene = kt.contact.Scene(model, friction=0.6)
    return Case(model, kt.contact.TimeStepping(scene, slots=16, compiled_rows=0), {}, q)


HEAPS = (
    (kt.geometry.Box((0.2, 0.16, 0.12)), kt.geometry.Capsule(0.06, 0.2), kt.geometry.Sphere(0.1)),
    (kt.geometry.Cylinder(0.09, 0.15), kt.geometry.Ellipsoid((0.12, 0.1, 0.07))),
)
"""Shapes with closed forms for all pairs, and without."""
_BOUNDS_OF_PAIRS = {"float64": (1e-7, 1e-9), "float32": (2e-3, 5e-2)}
"""Of residuals, and of what velocities differ by [m/s]: in single precision, gaps of 5e-7 m are
none, which is 5e-4 m/s at a corner, and more elsewhere."""
_COMPARED = 0, 1, 32
"""Worlds that the definition computes, too: a step of one takes it half a second."""


def pair_checks(report, libraries, steps=6):
    """Rollouts in which bodies touch each other, likewise: some of the worlds of a launch."""
    for shapes in HEAPS:
        case, rng = heap(*shapes), np.random.default_rng(4)
        turned = np.tile(case.q, (_WORLDS, 1)), 0.02 * rng.standard_normal((_WORLDS, case.model.nv))
        q, qd = case.model.integrate(*turned), 0.3 * rng.standard_normal((_WORLDS, case.model.nv))
        qd[:, 5::6] -= 1.5 * np.arange(1, len(shapes) + 1)  # those above catch up with others
        before = kt.rollout(case.model, q, qd, steps=99, dt=STEP, contact=case.contact, limits=None)
        q, qd = before.q[-1], before.qd[-1]
        some = [*_COMPARED]
        right = expected(case, q[some], qd[some], steps)

        def same(library, dtype, case=case, q=q, qd=qd, some=some, right=right):
            (to, back, _), (bound, same) = library, _BOUNDS_OF_PAIRS[dtype]
            found = case.rollout(
                to(q.astype(dtype)), to(qd.astype(dtype)), steps=steps, store_every=steps
            )
            assert not back(found.failed).any(), "motions failed"
            residual = float(back(found.residuals)[..., 0].max())
            assert residual < bound, f"residual {residual:.1e}"
            ends = zip((found.q, found.qd), right, strict=True)
            places, speeds = (np.abs(back(x)[-1][some] - y).max() for x, y in ends)
            words = f"positions differ by {places:.0e}, velocities by {speeds:.0e}"
            assert speeds < same, words
            force = back(found.contact_force)[-1]
            assert np.count_nonzero(force[..., 0]) > 2 * len(force), "too little touches"
            return f"{words}, residual {residual:.0e} m/s"

        for name, library in libraries.items():
            for dtype in _BOUNDS_OF_PAIRS:
                report.run(f"{name} contact, {case.model.name}, {dtype}", same, library, dtype)


def expected(case, q, qd, steps):
    """State after some steps by the definition of all operations, in double precision."""
    kernel, transition = case.kernel("float64")
    count, ones = len(q), np.ones(len(q))
    memory = np.zeros((count, transition.memory))
    given = 0 * ones, STEP * ones, steps * ones, q, qd, 0 * ones, memory
    return evaluate(kernel.program, given)[:2]


def checks(report, libraries, case=None, steps=20, bounds=BOUNDS):
    """Rollouts of every library in both precisions against the definition, one line for each."""
    case = ball() if case is None else case
    q, qd = case.states(_WORLDS, 0.3, 5e-4, np.random.default_rng(2))
    right = expected(case, q, qd, steps)

    def same(library, dtype, bound):
        to, back, _ = library
        found = case.rollout(
            to(q.astype(dtype)), to(qd.astype(dtype)), steps=steps, store_every=steps
        )
        ends = zip((found.q, found.qd), right, strict=True)
        places, speeds = (np.abs(back(x)[-1] - y).max() / max(1, np.abs(y).max()) for x, y in ends)
        assert not back(found.failed).any(), "motions failed"
        residual = float(back(found.residuals)[..., 0].max())
        assert residual < bound, f"residual {residual:.1e}"
        words = f"positions differ by {places:.0e}, velocities by {speeds:.0e} of the largest"
        assert places < 10 * bound, words
        assert speeds < 1000 * bound, words  # gaps are divided by the step
        assert float(np.abs(back(found.contact_force)[-1]).max()) > 0, "nothing touches"
        return f"{words}, residual {residual:.0e} m/s"

    for name, library in libraries.items():
        for dtype, bound in bounds.items():
            report.run(
                f"{name} rigid contact, {case.model.name}, {dtype}", same, library, dtype, bound
            )


@kt.kernel
def _cost(model, q, qd):
    return q @ q + 0.3 * (qd @ qd)


def gradient_checks(report, libraries, steps=20):
    """Gradients through relaxed and rigid contact by autograd and JAX, against those of a CPU."""
    case = ball()
    q, qd = case.states(_WORLDS, 0.3, 5e-3, np.random.default_rng(3))
    qd[:, 5] -= 1.0  # it lands

    def same(name, library, relaxation):
        to, back, _ = library
        contact = kt.contact.TimeStepping(case.contact.scene, relaxation=relaxation)
        right = kt.rollout_gradient(
            case.model, q, qd, steps=steps, dt=STEP, contact=contact, terminal=_cost, limits=None
        )

        def cost(q, qd):
            found = case.rollout(q, qd, steps=steps, store_every=steps, contact=contact)
            return (found.q[-1] ** 2).sum() + 0.3 * (found.qd[-1] ** 2).sum()

        found = [back(x) for x in _GRADIENTS[name](cost, to(q), to(qd))]
        speeds = np.abs(found[1] - right.qd0).max() / np.abs(right.qd0).max()
        along = tangents(case.model, q, found[0])
        places = np.abs(along - right.q0).max() / np.abs(right.q0).max()
        assert max(places, speeds) < 1e-8, f"gradients differ by {places:.1e} and {speeds:.1e}"
        return f"gradients differ by {places:.0e} and {speeds:.0e}"

    for name, library in libraries.items():
        for relaxation in (0.05, 0.0) if name in _GRADIENTS else ():
            words = f"relaxed by {relaxation} m/s" if relaxation else "of the active set"
            report.run(f"{name} gradient through contact, {words}", same, name, library, relaxation)


def tangents(model, q, gradient):
    """Gradients along tangent directions from those with respect to coordinates, by differences."""
    step, found = 1e-6, np.empty((len(q), model.nv))
    for k, unit in enumerate(step * np.eye(model.nv)):
        ahead, behind = (model.integrate(q, np.tile(s * unit, (len(q), 1))) for s in (1, -1))
        found[:, k] = (gradient * (ahead - behind)).sum(axis=1) / (2 * step)
    return found


def _by_torch(cost, *given):
    for x in given:
        x.requires_grad_(True)
    cost(*given).backward()
    return [x.grad for x in given]


def _by_jax(cost, *given):
    import jax

    return jax.grad(cost, argnums=(0, 1))(*given)


_GRADIENTS = {"torch": _by_torch, "jax": _by_jax}
