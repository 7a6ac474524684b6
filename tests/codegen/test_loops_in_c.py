"""Loops over tables as C and as CUDA C, run on the CPU: against the same written in Python."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from support import sampling
from support.backends import all_loops_in_c, loops_in_c, loops_in_cuda
from support.walks import KINDS, PROGRAM, case

import kinetree as kt
from kinetree.codegen.loops.language import (
    SINGLE,
    Clear,
    Code,
    Data,
    Declaration,
    LoopProgram,
    Repeat,
    RowRange,
    Until,
    When,
)
from kinetree.codegen.loops.layout import layout_of_kinds
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.loops.recomputed import recompute
from kinetree.codegen.render import c_loops
from kinetree.codegen.render.cuda_loops import PLACES, render
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.errors import TraceError
from kinetree.model.define import DEFINITIONS
from kinetree.samples.random_mechanisms import random_tree

ROUNDING = {"float64": 1e-14, "float32": 1e-5}
PARENT = np.array([-1, 0, 0, 1, 1, -1, 5])
N = len(PARENT)


@pytest.fixture
def robot(rng):
    kind = np.where(PARENT < 0, 1, 0)  # numbered in another order than the program's
    columns = {"parent": PARENT, "q": np.arange(N), "v": np.arange(N)}
    numbers = {"bodies": {"m": rng.normal(size=(N, 1))}, SINGLE: {"g": rng.normal(size=(1, 3))}}
    rows = RowRange(N, columns, ("inner", "base"), kind)
    return Data({"bodies": rows, SINGLE: RowRange(1)}, {"q": N, "v": N}, numbers)


def expected(robot, q):
    """What the program says, for one sample."""
    m, g = robot.numbers["bodies"]["m"][:, 0], robot.numbers[SINGLE]["g"][0]
    x, y, s, tau = np.zeros((4, N))
    H = np.zeros((N, N))
    for i, p in enumerate(PARENT):
        x[i] = np.sin(q[i]) * m[i] if p < 0 else q[i] * m[i] + x[p]
        y[i] = 0 if p < 0 else q[i] + x[p]
    for i in reversed(range(N)):
        j = PARENT[i]
        tau[i] = x[i] + s[i] + g[1] if j < 0 else s[i] + y[i] ** 2
        if j >= 0:
            s[j] += x[i] + s[i]
        while j >= 0:
            H[i, j], H[j, i] = x[i] * x[j], x[i] * x[j] + 1
            x[i] += x[j] / 8
            j = PARENT[j]
    return tau, H


class Only:
    """The source of one program."""

    def __init__(self, program):
        self.program = lambda kinds, pairs=None: program


def as_machine_code(folder, program, data):
    inputs, outputs = c_loops.arguments(program, data)
    return LoopKernel(
        program.name, inputs, outputs, Only(program), data, validate=lambda arrays: None,
        reference=lambda arrays: interpret(program, data, *arrays),
    ).call  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_walks_as_the_regions_say(robot, dtype, rng, tmp_path):
    q = rng.normal(size=(5, N)).astype(dtype)
    run = as_machine_code(tmp_path, PROGRAM, robot)
    want = [np.array(r) for r in zip(*(expected(robot, x.astype(float)) for x in q), strict=True)]
    for found in (run(q), [np.array(r) for r in zip(*map(run, q), strict=True)]):
        for a, b in zip(want, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=ROUNDING[dtype] * np.abs(a).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_c_walks_as_the_regions_say(robot, dtype, rng, tmp_path):
    q = rng.normal(size=(5, N)).astype(dtype)
    found = loops_in_c(tmp_path, PROGRAM, robot, dtype)(q)
    for a, b in zip(zip(*(expected(robot, x.astype(float)) for x in q), strict=True), found,
                    strict=True):  # fmt: skip
        np.testing.assert_allclose(b, a, rtol=0, atol=ROUNDING[dtype] * np.abs(a).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("place", PLACES)
def test_cuda_walks_as_the_regions_say(robot, place, dtype, rng, tmp_path):
    q = rng.normal(size=(211, N)).astype(dtype)
    want = [np.array(r) for r in zip(*(expected(robot, x.astype(float)) for x in q), strict=True)]
    run = loops_in_cuda(tmp_path, PROGRAM, robot, dtype, place, threads=64)
    for count in (1, 32, 211):  # warps take turns
        for a, b in zip(want, run(q[:count]), strict=True):
            np.testing.assert_allclose(b, a[:count], rtol=0, atol=ROUNDING[dtype] * np.abs(a).max())


def test_a_sample_that_fails_a_check_or_is_not_finite_is_nan(robot, rng, tmp_path):
    robot.numbers["bodies"]["m"][0] = 1e9
    q = np.abs(rng.normal(size=(40, N)))
    q[:, 0] = np.arange(40) == 11  # of body 0: x is too large for the check
    q[7, 6] = np.nan
    tau, H = loops_in_cuda(tmp_path, PROGRAM, robot)(q)
    assert np.isnan(tau[11]).all()
    assert np.isnan(H[11]).all()
    assert set(np.flatnonzero(~np.isfinite(tau).all(axis=1))) == {7, 11}
    c = loops_in_c(tmp_path, PROGRAM, robot)
    assert (c.status(q[10]), c.status(q[11]), c.status(q[10] * np.nan)) == (0, 2, 3)


# --- control flow that depends on values ---------------------------------------------------------


def single(inputs, compute):
    return Code({(): case(inputs, compute)})


ROOT = LoopProgram(  # y = cube root of x by Newton's method, and twice that n times where x > 1
    "root", ("x", "n"), ("y", "count"), {},
    {t.name: t for t in (
        Declaration("x", "argument"), Declaration("n", "argument"), Declaration("y", "result"),
        Declaration("count", "result"), Declaration("z", "rows"), Declaration("old", "rows"),
    )},
    (
        Clear("count"), single(["x@[0]"], lambda x: {"z@[0]": 1 + x, "old@[0]": x - x}),
        Until(
            single(["z@[0]", "old@[0]"], lambda z, old: {"holds@": z * (1 + 1e-12) >= old}),
            100,
            (
                single(["z@[0]"], lambda z: {"old@[0]": z}),
                single(["z@[0]", "x@[0]"],
                       lambda z, x: {"z@[0]": z - (z - x / (z * z)) / 3, "+count@[0]": z / z}),
            ),
        ),
        When(
            single(["x@[0]"], lambda x: {"holds@": x > 1}),
            (Repeat("n@", (single(["z@[0]"], lambda z: {"z@[0]": 2 * z}),)),),
        ),
        single(["z@[0]"], lambda z: {"y@[0]": z}),
    ),
    {}, {("", ""): (("z", 0), ("old", 0))},
)  # fmt: skip
NOBODY = Data({SINGLE: RowRange(1)}, {}, {SINGLE: {}})


@pytest.mark.parametrize("make", [loops_in_c, loops_in_cuda, as_machine_code])
def test_values_decide(make, tmp_path):
    x, n = np.linspace(0.1, 9, 45), np.arange(45) % 4
    run = make(tmp_path, ROOT, NOBODY)
    y, count = run(x, n.astype(float))
    np.testing.assert_allclose(y, np.cbrt(x) * np.where(x > 1, 2.0**n, 1), rtol=1e-14)
    assert count.min() < count.max() < 20  # each as many as it needs


@pytest.mark.parametrize("make", [loops_in_c, loops_in_cuda, as_machine_code])
def test_numbers_that_change_places_are_all_loaded_first(make, tmp_path):
    rows = ("y", "z", "old", "w")
    tables = (Declaration("x", "argument"), *(Declaration(n, "rows") for n in rows))
    tables += tuple(Declaration(n, "result") for n in "abcd")
    first = single(["x@[0]"], lambda x: {"y@[0]": x, "z@[0]": 2 * x, "old@[0]": 3 * x})

    def turned(y, z, old):
        return {"y@[0]": z, "z@[0]": old, "old@[0]": y, "w@[0]": y}

    def results(*numbers):
        return {f"{n}@[0]": x for n, x in zip("abcd", numbers, strict=True)}

    swap = single([f"{n}@[0]" for n in rows[:3]], turned)
    last = single([f"{n}@[0]" for n in rows], results)
    numbers = {("", ""): tuple((n, 0) for n in rows)}
    named, body = {t.name: t for t in tables}, (first, swap, last)
    program = LoopProgram("swap", ("x",), tuple("abcd"), {}, named, body, {}, numbers)
    found = make(tmp_path, program, NOBODY)(np.array([1.0, 5.0]))
    np.testing.assert_array_equal(found, np.outer([2, 3, 1, 1], [1, 5]))


def test_a_table_that_others_see_in_part_cannot_be_cleared():
    partly = replace(PROGRAM, body=(Clear("y"), *PROGRAM.body))
    with pytest.raises(
        TraceError, match="walks clears table y, of which other rows see a part: clear"
    ):
        render(partly)


def test_inputs_are_watched_where_results_may_hide_that_they_are_not_finite():
    watched = "if (!(watched =="
    assert watched not in render(PROGRAM)  # sums and products; what a check compares is no result
    assert watched in render(ROOT)


def test_equal_cases_are_written_once():
    assert render(PROGRAM).count("ENTRY(out_H, first_i_v_ *") == 1
    assert list(layout_of_kinds(PROGRAM).widths["bodies"]) == list(KINDS)


@pytest.mark.parametrize("program", [PROGRAM, ROOT])
@pytest.mark.parametrize("place", PLACES)
def test_nvrtc_compiles_it(program, place, nvrtc):
    assert nvrtc(render(program, "float32", place), "sm_90") > 1000


# --- texts of kinetree ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree():
    joints = [kt.Prismatic((2.0, -1.0, 2.0)), kt.Spherical(), kt.Revolute("x")]
    return random_tree(4, 1, joints=joints)


def is_ready(quantity):
    """Whether there is general code, and options but the name of a body have values."""
    defaults = [quantity.signature.parameters[n].default for n in quantity.options if n != "name"]
    return quantity.general and inspect.Parameter.empty not in defaults


NEEDED = {"joint_reactions": ("qdd",)}
"""Optional arrays without which there is no answer."""

READY = [name for name, quantity in DEFINITIONS.items() if is_ready(quantity)]


@pytest.fixture(scope="module")
def in_c(tree, tmp_path_factory, request):
    """For each quantity of this run its kernel, its loops, and what computes them in C."""
    tested = sampling.values_of(request, "test_general_code_of_every_quantity", "name")
    kernels, programs = {}, {}
    for name in filter(tested.__contains__, READY):
        given = {"name": tree.body_names[-1], "rows": ("x",)}  # a task that is free
        options = {n: x for n, x in given.items() if n in DEFINITIONS[name].options}
        kernel = DEFINITIONS[name].kernel(tree, NEEDED.get(name, ()), **options).general_kernel
        kernels[name] = kernel
        programs[name] = kernel.source.program(kernel.data.domains["bodies"].kinds)
    less = {name: (recompute(p), kernels[name].data) for name, p in programs.items()}
    runs = all_loops_in_c(tmp_path_factory.mktemp("c"), less, level=0)
    return {n: (kernels[n], programs[n], less[n][0], runs[n]) for n in less}


@pytest.mark.parametrize("name", READY)
def test_general_code_of_every_quantity(name, in_c, tree, rng):
    kernel, program, less, run = in_c[name]
    arrays = [
        tree.random_configuration(rng, 3) if a.name == "q" else rng.normal(size=(3, *a.shape))
        for a in kernel.inputs
    ]
    assert sum(map(len, less.rows.values())) <= sum(map(len, program.rows.values()))
    expected, again = (interpret(p, kernel.data, *arrays) for p in (program, less))
    for a, b, c in zip(expected, run(*arrays), again, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 * max(1, np.abs(a).max()))
        np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize(
    ("name", "place"), [("forward_dynamics", "shared"), ("mass_matrix", "memory")]
)
def test_general_code_in_cuda(name, place, rng, tmp_path):
    tree = kt.samples.quadruped()
    kernel = DEFINITIONS[name].kernel(tree).general_kernel
    program = recompute(kernel.source.program(kernel.data.domains["bodies"].kinds))
    arrays = [
        tree.random_configuration(rng, 40) if a.name == "q" else rng.normal(size=(40, *a.shape))
        for a in kernel.inputs
    ]
    arrays[0][7, 3:7] *= 1.1  # not of unit length
    run = loops_in_cuda(tmp_path, program, kernel.data, place=place)
    (found,), (expected,) = run(*arrays), interpret(program, kernel.data, *arrays)
    assert np.isnan(found[7]).all()
    good = np.arange(40) != 7
    size = 1e-12 * np.abs(expected[good]).max()
    np.testing.assert_allclose(found[good], expected[good], rtol=0, atol=size)


def test_transforms_of_joints_are_computed_again_and_not_stored():
    kernel = kt.inverse_dynamics.definition.kernel(kt.samples.quadruped()).general_kernel
    program = kernel.source.program(kernel.data.domains["bodies"].kinds)
    widths = [len(row) for row in program.rows.values()]
    assert [len(row) for row in recompute(program).rows.values()] == [18] * len(widths)
    assert max(widths) >= 24


@pytest.mark.parametrize("derivative", ["rates", "gradients"])
def test_derivatives_in_c_and_cuda(derivative, rng, tmp_path):
    model = kt.samples.double_pendulum()
    kernel = getattr(kt.forward_dynamics.definition.kernel(model).general_kernel, derivative)(
        (0, 1)
    )
    program = kernel.source.program(kernel.data.domains["bodies"].kinds)
    arrays = [rng.normal(size=(35, *a.shape)) for a in kernel.inputs]
    expected = interpret(program, kernel.data, *arrays)
    for run in (
        loops_in_c(tmp_path, program, kernel.data),
        loops_in_cuda(tmp_path, recompute(program), kernel.data),
    ):
        for a, b in zip(expected, run(*arrays), strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 * np.abs(a).max())
