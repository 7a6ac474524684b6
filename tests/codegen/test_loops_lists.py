"""Lists that grow while a program runs: balls that touch, found among all pairs, pushed apart."""

import numpy as np
import pytest
from support.backends import loops_in_c, loops_in_cuda

from kinetree.codegen.loops.assembly import assemble, outline_of
from kinetree.codegen.loops.language import Data, Domain, RowRange
from kinetree.codegen.loops.meaning import holds, interpret
from kinetree.codegen.loops.recording import LoopRecorder
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.spatial.ops import select, sqrt

BALLS = [
    Domain("balls", {"b": "n"}),
    Domain("pairs", {"first": "balls", "second": "balls"}),
    Domain("touches", {"first": "balls", "second": "balls"}, grows=True),
]
STIFF = 20.0


def recorded(text, domains, name, **arguments):
    """The loops of a text: a function of a recorder and arguments."""
    outline = results = None
    for n in range(3):
        recorder = LoopRecorder(domains, None, outline)
        given = [recorder.argument(a, axes) for a, axes in arguments.items()]
        results = (recorder.given_back(text(recorder, *given)),)
        if n < 2:
            outline = outline_of(recorder, results)
    return assemble(recorder, name, tuple(arguments), results)


class Balls:
    """Velocities after some sweeps of projected Gauss–Seidel over all balls that touch."""

    name, arguments = "balls in contact", {"x": ("n", 3), "v": ("n", 3), "sweeps": ()}

    def __init__(self, skips):
        self.skips = skips  # whether pairs that do not touch are left early

    def text(self, world, x, v0, sweeps):
        """Runs on a recorder."""
        v, n, push, target, mass = (world.table(d) for d in ("balls", *["touches"] * 4))

        def at(row):
            return row.span("b", 1), slice(None)

        for i in world.walk("balls"):
            v[i] = v0[at(i)][0]
        for p in world.walk("pairs"):
            a, b = p.column("first"), p.column("second")
            d = x[at(b)][0] - x[at(a)][0]
            distance = sqrt(d @ d)
            gap = distance - world.numbers("radius", 1, a)[0] - world.numbers("radius", 1, b)[0]
            w = world.numbers("mobility", 1, a)[0] + world.numbers("mobility", 1, b)[0]
            rows = {n: d / distance, push: 0.0, target: -STIFF * gap, mass: 1 / w}
            if self.skips:
                for _ in world.when(gap < 0):
                    world.append("touches", {"first": a, "second": b}, rows)
            else:
                world.append("touches", {"first": a, "second": b}, rows, keep=gap < 0)
        for _ in world.repeat("sweeps@"):
            for c in world.walk("touches"):
                a, b = c.column("first"), c.column("second")
                speed = n[c] @ (v[b] - v[a])
                new = push[c] + mass[c] * (target[c] - speed)
                new = select(new < 0, 0.0, new)
                change = (new - push[c]) * n[c]
                push[c] = new
                v[a] = v[a] - world.numbers("mobility", 1, a)[0] * change
                v[b] = v[b] + world.numbers("mobility", 1, b)[0] * change
        result = world.result(("n", 3), zeros=False)
        for i in world.walk("balls"):
            result[at(i)] = v[i][None]
        return result

    def program(self, kinds=(), pairs=None):
        """As that of a text for robots."""
        return recorded(self.text, BALLS, self.name, **self.arguments)


def some_balls(count, seed, most=None):
    """Data of balls, positions and velocities."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(count, 1)
    rows = {
        "balls": RowRange(count, {"b": np.arange(count)}),
        "pairs": RowRange(len(first), {"first": first, "second": second}),
        "touches": RowRange(len(first) if most is None else most),
    }
    radius, mobility = rng.uniform(0.2, 0.3, (count, 1)), rng.uniform(0.5, 2, (count, 1))
    data = Data(rows, {"n": count}, {"balls": {"radius": radius, "mobility": mobility}})
    size = (count / 50) ** (1 / 3)
    return data, rng.uniform(-size, size, (count, 3)), rng.standard_normal((count, 3))


def by_hand(data, x, v, sweeps):
    """The same in plain Python."""
    radius, w = (data.numbers["balls"][n][:, 0] for n in ("radius", "mobility"))
    v, touches = v.copy(), []
    for a, b in zip(*data.domains["pairs"].columns.values(), strict=True):
        d = x[b] - x[a]
        distance = np.sqrt(d @ d)
        gap = distance - radius[a] - radius[b]
        if gap < 0:
            touches.append([a, b, d / distance, 0.0, -STIFF * gap, 1 / (w[a] + w[b])])
    for _ in range(sweeps):
        for touch in touches:
            a, b, n, push, target, mass = touch
            touch[3] = max(0.0, push + mass * (target - n @ (v[b] - v[a])))
            v[a] -= w[a] * (touch[3] - push) * n
            v[b] += w[b] * (touch[3] - push) * n
    return v, len(touches)


@pytest.mark.parametrize("skips", [False, True])
def test_balls_in_contact_by_the_interpreter(skips):
    program = Balls(skips).program()
    assert program.by_values
    for count, seed in ((5, 0), (12, 1)):
        data, x, v = some_balls(count, seed)
        expected, touching = by_hand(data, x, v, 4)
        assert touching > 0
        (found,) = interpret(program, data, x, v, 4)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_each_sample_has_a_list_of_its_own():
    program = Balls(True).program()
    data, x, v = some_balls(6, 3)
    x = np.stack([x, 10 * x, 0.5 * x])
    (found,) = interpret(program, data, x, v, 3.0)
    for k in range(3):
        np.testing.assert_allclose(found[k], by_hand(data, x[k], v, 3)[0], rtol=0, atol=1e-13)


def test_a_list_that_is_full_fails_like_a_check():
    program = Balls(False).program()
    for most, good in ((20, True), (1, False)):
        data, x, v = some_balls(12, 1, most)
        assert by_hand(data, x, v, 0)[1] in range(2, 21)
        assert bool(holds(program, data, x, v, 1)) is good


@pytest.mark.parametrize("skips", [False, True])
def test_balls_in_contact_as_machine_code(skips):
    """One program for any number of balls; as many contacts as each sample has."""
    source = Balls(skips)
    for count, seed in ((50, 0), (7, 2)):
        data, x, v = some_balls(count, seed)
        kernel = LoopKernel(
            source.name, [Argument("x", x.shape), Argument("v", v.shape), Argument("sweeps", ())],
            [Argument("out0", v.shape)], source, data, validate=lambda arrays: None,
            reference=lambda arrays, data=data: interpret(source.program(), data, *arrays)[0],
        )  # fmt: skip
        expected, touching = by_hand(data, x, v, 20)
        assert touching > 0
        np.testing.assert_allclose(kernel.call(x, v, 20.0), expected, rtol=0, atol=1e-12)
        batch = np.stack([x, 0.9 * x, 2 * x])
        found = kernel.call(batch, np.stack([v] * 3), np.array([20.0, 0.0, 3.0]))
        for k, sweeps in enumerate((20, 0, 3)):
            expected, _ = by_hand(data, batch[k], v, sweeps)
            np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [loops_in_c, loops_in_cuda])
@pytest.mark.parametrize("skips", [False, True])
def test_balls_in_contact_in_c_and_cuda(skips, make, tmp_path):
    data, x, v = some_balls(12, 1)
    run = make(tmp_path, Balls(skips).program(), data)
    batch, sweeps = np.stack([x, 0.9 * x, 2 * x]), np.array([20.0, 0.0, 3.0])
    (found,) = run(batch, np.stack([v] * 3), sweeps)
    for k in range(3):
        expected, _ = by_hand(data, batch[k], v, int(sweeps[k]))
        np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-12)


def test_a_full_list_is_said_in_c_and_nan_in_cuda(tmp_path):
    data, x, v = some_balls(12, 1, most=1)
    program = Balls(False).program()
    assert loops_in_c(tmp_path, program, data).status(x, v, 1.0) == 2
    (found,) = loops_in_cuda(tmp_path, program, data)(np.stack([x, 100 * x]), v, 1.0)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], v)


def test_machine_code_notices_a_full_list_and_infinite_repetitions():
    source = Balls(True)
    for most, sweeps in ((1, 20.0), (20, np.inf)):
        data, x, v = some_balls(12, 1, most)
        kernel = LoopKernel(
            source.name, [Argument("x", x.shape), Argument("v", v.shape), Argument("sweeps", ())],
            [Argument("out0", v.shape)], source, data, validate=lambda arrays: None,
            reference=lambda arrays: np.zeros_like(arrays[1]),
        )  # fmt: skip
        assert not kernel.call(x, v, sweeps).any()  # the reference was asked
        assert kernel.call(x, v, 0.0).any() == (most > 1)
