"""CUDA C, run on the CPU by threads that take turns, and compiled for GPUs by NVRTC."""

import re

import numpy as np
import pytest
from support.backends import cuda_on_cpu

import kinetree as kt
from kinetree.codegen.check import cases, check_backend
from kinetree.codegen.procedures import ProcedureTable, procedure
from kinetree.codegen.procedures.routine import routine
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import cuda
from kinetree.codegen.render.cuda import ROUTINES, Layout, render
from kinetree.codegen.render.cuda_pieces import render_pieces
from kinetree.codegen.render.cuda_places import Tile, given_up
from kinetree.codegen.render.cuda_procedures import CudaWithRoutines
from kinetree.expr import interpret
from kinetree.model.define import kernel_of
from kinetree.simulation.rollouts.rollout import run_of

BOUND = {"float64": 1e-11, "float32": 3e-5}


@pytest.mark.parametrize("layout", [Layout(), Layout(short=0)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cuda_computes_what_the_interpreter_does(dtype, layout, tmp_path):
    check_backend(cuda_on_cpu(tmp_path, layout), [dtype])


def samples(model, kernel, count, rng):
    """Arrays for a kernel, configurations where it takes them."""
    return [
        np.stack([model.random_configuration(rng) for _ in range(count)])
        if a.name == "q"
        else rng.normal(size=(count, *a.shape))
        for a in kernel.inputs
    ]


def agrees(program, run, arrays, dtype):
    arrays = [a.astype(dtype) for a in arrays]
    expected = interpret.run(program, *(a.astype(float) for a in arrays))
    for found, e in zip(run(*arrays), expected, strict=True):
        size = np.max(np.abs(e))
        assert np.max(np.abs(found - e)) <= BOUND[dtype] * size


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (kt.samples.double_pendulum(), "forward_dynamics"),
        (kt.samples.quadruped(), "inverse_dynamics"),
        (kt.samples.quadruped(), "mass_matrix"),
    ],
)
def test_functions_agree_for_whole_and_partial_warps(model, name, dtype, rng, tmp_path):
    kernel = kernel_of(model, name)
    run = cuda_on_cpu(tmp_path, threads=64)(kernel.program, dtype)
    for count in (1, 32, 211):  # the last goes round where warps load ahead
        agrees(kernel.program, run, samples(model, kernel, count, rng), dtype)


@pytest.mark.parametrize(("room", "again"), [(28_928, 0), (25_000, 1)], ids=["twice", "again"])
def test_long_programs_park_values_and_load_the_next_samples(
    room, again, rng, tmp_path, monkeypatch
):
    monkeypatch.setattr(cuda, "_ROOM", room)
    model = kt.samples.humanoid()
    kernel = kernel_of(model, "forward_dynamics")
    (text,) = render_pieces(kernel.program, "float32").texts
    assert text.ahead
    assert text.shared <= room
    assert text.text.count("DEVICE void request_") == 1 + again
    assert len(re.findall(r"const real again_\w+ = ", text.text)) > 30
    (other,) = render_pieces(kernel.program, "float32", Layout(large=False)).texts
    assert not other.ahead
    run = cuda_on_cpu(tmp_path, threads=64)(kernel.program, "float32")
    for count in (1, 32, 211):  # warps of two blocks go round
        agrees(kernel.program, run, samples(model, kernel, count, rng), "float32")
    q, qd, tau = samples(model, kernel, 200, rng)
    q[70, 3:7] *= 1.1  # not of unit length
    (found,) = run(q, qd, tau[0])  # which all share
    assert np.isnan(found[70]).all()
    rest = [np.delete(x, 70, axis=0) for x in (q, qd, found)]
    (expected,) = interpret.run(kernel.program, *rest[:2], np.broadcast_to(tau[0], rest[1].shape))
    assert np.max(np.abs(rest[2] - expected)) <= BOUND["float32"] * np.max(np.abs(expected))


def test_slices_of_rows_together_are_the_result(rng, tmp_path):
    model, layout = kt.samples.quadruped(), Layout(bytes=20_000)
    kernel = kernel_of(model, "mass_matrix")
    assert len(render_pieces(kernel.program, "float32", layout).texts) > 2
    run = cuda_on_cpu(tmp_path, layout)(kernel.program, "float32")
    agrees(kernel.program, run, samples(model, kernel, 70, rng), "float32")


@kt.kernel
def derivatives(model, q, qd, qdd):
    """Derivatives of inverse dynamics by position."""
    return kt.differentiate(kt.inverse_dynamics, wrt="q")(model, q, qd, qdd)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_together_are_the_result(dtype, rng, tmp_path):
    model = kt.samples.quadruped()
    layout = Layout(bytes=20_000, written=20_000, longest=1000, part=1500)
    kernel = derivatives.compiled(model, model.neutral(), *np.zeros((2, model.nv)))
    pieces = render_pieces(kernel.program, dtype, layout)
    assert pieces.work > 50
    assert len(pieces.texts) > 3
    assert max(text.shared for text in pieces.texts) < 1.1 * layout.bytes
    run = cuda_on_cpu(tmp_path, layout)(kernel.program, dtype)
    for count in (33, 64):
        agrees(kernel.program, run, samples(model, kernel, count, rng), dtype)
    arrays = samples(model, kernel, 40, rng)
    arrays[0][7, 3:7] *= 1.1  # not of unit length
    (found,) = run(*arrays)
    assert np.isnan(found[7]).all()
    assert np.isfinite(np.delete(found, 7, axis=0)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_look_at_what_others_left_for_them(dtype, rng, tmp_path):
    model = kt.samples.quadruped()
    layout = Layout(bytes=20_000, written=20_000, longest=1000, part=1500)
    kernel = kernel_of(model, "inverse_mass_matrix")
    pieces = render_pieces(kernel.program, dtype, layout)
    assert any("watched = fma" in x.text and "work[32 * i]" in x.text for x in pieces.texts)
    run = cuda_on_cpu(tmp_path, layout)(kernel.program, dtype)
    agrees(kernel.program, run, samples(model, kernel, 33, rng), dtype)


def test_far_angles_and_shared_inputs(rng, tmp_path):
    model = kt.samples.double_pendulum()
    kernel = kernel_of(model, "inverse_dynamics")
    run = cuda_on_cpu(tmp_path)(kernel.program, "float64")
    q, qd, qdd = samples(model, kernel, 40, rng)
    q[3] += 2 * np.pi * 10_000_000
    agrees(kernel.program, run, [q, qd, qdd[0]], "float64")


def test_a_sample_that_fails_a_check_is_nan_and_its_neighbours_are_not(rng, tmp_path):
    model = kt.samples.quadruped()
    kernel = kernel_of(model, "inverse_dynamics")
    arrays = samples(model, kernel, 40, rng)
    arrays[0][7, 3:7] *= 1.1  # not of unit length
    (tau,) = cuda_on_cpu(tmp_path)(kernel.program, "float64")(*arrays)
    assert np.isnan(tau[7]).all()
    assert np.isfinite(np.delete(tau, 7, axis=0)).all()


def test_what_a_choice_hides_is_nan(tmp_path):
    def chosen(x, y):
        return np.array([kt.spatial.ops.select(x[0] < 1, y[0], y[1])])

    program = trace(chosen, [Argument("x", (1,)), Argument("y", (2,))])
    run = cuda_on_cpu(tmp_path)(program, "float64")
    (found,) = run(np.array([[np.nan], [0.0], [-np.inf]]), np.ones((3, 2)))
    np.testing.assert_array_equal(found[:, 0], [np.nan, 1, np.nan])


def test_a_result_takes_the_tile_of_an_input_only_when_that_is_done():
    def late(x):
        return np.array([x[0] + x[1], x[0] * x[1]])

    def early(x):
        return np.array([2 * x[0], 3 * x[1]])

    for function, expected in ((late, {}), (early, {"out0": "x"})):
        program = trace(function, [Argument("x", (2,))])
        order = program.graph.reachable(program.roots)
        assert given_up(program, order, ["x"], ["out0"]) == expected


def test_a_product_is_read_where_the_sum_is_that_it_is_written_into(rng, tmp_path):
    def text(x, y):
        product = x[0] * y[0]
        return np.array([2 * x[1], product + y[1]])

    program = trace(text, [Argument("x", (2,)), Argument("y", (2,))])
    arrays = [rng.normal(size=(33, 2)) for _ in range(2)]
    agrees(program, cuda_on_cpu(tmp_path)(program, "float64"), arrays, "float64")


@pytest.mark.parametrize("order", ["created", "results"])
@pytest.mark.parametrize("short", [0, 10**9])
@pytest.mark.parametrize(
    ("integrator", "model"),
    [("semi_implicit_euler", kt.samples.quadruped()), ("rk4", kt.samples.satellite())],
    ids=lambda x: getattr(x, "name", x),
)
def test_steps_may_write_over_where_they_began(integrator, model, short, order, rng, tmp_path):
    start = model.neutral(), *np.zeros((2, model.nv))
    run = run_of(model, *start, steps=3, dt=1e-3, integrator=integrator)
    for kernel in (run.transition.one_step(), run.transition.steps()):
        arrays = samples(model, kernel, 33, rng)
        for a, x in zip(kernel.inputs, arrays, strict=True):
            if a.name == "count":
                x[:] = 3
            if a.name == "h":
                x[:] = 1e-3
        run = cuda_on_cpu(tmp_path, layout=Layout(short=short, order=order))(
            kernel.program, "float64"
        )
        agrees(kernel.program, run, arrays, "float64")


def test_a_state_changes_as_soon_as_nothing_needs_the_old_one():
    def body(s):
        x, y, z = s
        return np.array([2 * x, x + y, z + 1])

    program = trace(lambda s: kt.repeat(body, s, 5), [Argument("s", (3,))])
    text = render_pieces(program, "float32").texts[0].text
    found = re.findall(r"^ +(?:const float )?(\w+) = \w+(?: . \w+)?;$", text, re.MULTILINE)
    within = found[found.index("state_4") :]
    assert within[:4] == ["state_4", "state_1", "state_2", "state_3"]
    assert "_next" not in text
    routines = CudaWithRoutines(program, "float32", 0)
    assert not routines.states_change_early  # there a sample that has ended keeps its own


def test_a_state_that_nothing_looks_at_takes_a_value_from_outside_the_loop(tmp_path):
    def both(s, x):
        outside = 3 * x[0] + 1

        def body(state):
            y, _ = state
            return np.array([y / 2 + x[1], outside])

        return kt.repeat(body, s, 4)

    program = trace(both, [Argument("s", (2,)), Argument("x", (2,))])
    arrays = [np.random.default_rng(3).normal(size=(33, 2)) for _ in range(2)]
    found = cuda_on_cpu(tmp_path)(program, "float64")(*arrays)
    found = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(found[:, 1], 3 * arrays[1][:, 0] + 1, rtol=1e-15)


@procedure
def _halved(x: float) -> float:
    return x / 2.0


@procedure
def _squared(x: float) -> float:
    return x * x


@procedure
def _as_it_is(x: float) -> float:
    return x


LAWS = ProcedureTable({0: _halved, 3: _squared, -1: _halved}, _as_it_is)


@procedure
def _by_number(which: "float[:]", x: "float[:]", out: "float[:]", n: int):  # pyright: ignore
    for i in range(n):
        k = 0
        while k < which[i]:  # pyright: ignore
            k += 1
        while k > which[i]:  # pyright: ignore
            k -= 1
        out[i] = LAWS[k](x[i])  # pyright: ignore


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_procedures_that_a_number_chooses(dtype, tmp_path):
    """The switch of a table of procedures, compiled: each case, and the usual one."""

    def text(which, x):
        return routine(_by_number, {"n": 6}, {"which": which, "x": x}, {"out": (6,)})[0]

    program = trace(text, [Argument("which", (6,)), Argument("x", (6,))])
    which = np.tile([0.0, 3.0, -1.0, 1.0, 7.0, -2.0], (33, 1)).astype(dtype)
    x = np.random.default_rng(5).normal(size=(33, 6)).astype(dtype)
    (found,) = cuda_on_cpu(tmp_path, ROUTINES)(program, dtype)(which, x)
    expected = x * np.where(which == 3, x, np.where((which == 0) | (which == -1), 0.5, 1.0))
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-15)
    assert "switch (" in render_pieces(program, dtype, ROUTINES).texts[0].text


@pytest.mark.parametrize("size", [1, 6, 7, 8, 12, 32, 36, 64, 96])
def test_at_most_four_threads_share_a_bank(size):
    tile = Tile(size, size)
    rows = np.arange(32)
    places = rows * tile.pitch + (rows // tile.group if tile.group else 0)
    assert np.bincount(places % 32).max() <= 4
    assert places[-1] + size <= tile.numbers


@pytest.mark.parametrize("start", [0, 2, 8])
def test_slices_are_aligned_where_they_can_be(start):
    tile = Tile(24, 48, start)
    assert tile.pitch % 4 == (0 if start % 4 == 0 else 1)


# --- NVRTC ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_nvrtc_compiles_for_several_architectures(nvrtc, architecture, dtype):
    program = kernel_of(kt.samples.double_pendulum(), "forward_dynamics").program
    assert nvrtc(render(program, dtype).text, architecture) > 1000


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nvrtc_knows_every_function(nvrtc, dtype):
    program = next(cases(dtype)).program
    assert {"exp", "log", "tanh", "sqrt"} <= {a.name for a in program.outputs}
    assert nvrtc(render(program, dtype).text, "sm_90") > 1000
