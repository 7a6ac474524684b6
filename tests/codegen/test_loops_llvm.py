"""Loops over tables as machine code: what the interpreter means, for every robot and cache."""

import os
from contextlib import contextmanager

import numpy as np
import pytest
from support.general_texts import AXES

import kinetree as kt
from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen import build, keys
from kinetree.codegen.cache import Store, open_store
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime import loops
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.joints import Fixed, Helical, Prismatic, Revolute, Spherical
from kinetree.model.general.model import Source as Text
from kinetree.model.general.tables import data_of
from kinetree.samples.random_mechanisms import random_tree

JOINTS = [
    Revolute("x"), Revolute((1.0, 2.0, -3.0)), Prismatic("y"), Helical("z", pitch=0.3), Fixed(),
    Spherical(),
]  # fmt: skip


class Source(Text):
    """A text that counts how often it is recorded."""

    count = 0

    def program(self, kinds, pairs=None):
        self.count += 1
        return super().program(kinds, pairs)


def inverse_dynamics(model, q, qd, qdd):
    return rnea.newton_euler(model, q, qd, qdd).tau


def forward_dynamics(model, q, qd, tau):
    return aba.articulated_bodies(model, q, qd, tau).qdd


def mass_matrix(model, q):
    return crba.composite_bodies(model, q).H


TEXTS = {
    inverse_dynamics: (("q", "qd", "qdd"), ("nv",)),
    forward_dynamics: (("q", "qd", "tau"), ("nv",)),
    mass_matrix: (("q",), ("nv", "nv")),
}
SOURCES = {}


def robot(model):
    data = data_of(model)
    assert data is not None
    return data


def new_source(text):
    return Source(text, {name: AXES[name] for name in TEXTS[text][0]})


def source(text):
    if text not in SOURCES:
        SOURCES[text] = new_source(text)
    return SOURCES[text]


def kernel(model, text, of=None, key=None):
    names, axes = TEXTS[text]
    inputs = [_argument(model, name, AXES[name]) for name in names]
    outputs = [_argument(model, "out0", axes)]
    return LoopKernel(
        text.__name__, inputs, outputs, of or source(text), data_of(model), key=key,
        reference=lambda arrays: text(model, *arrays), validate=lambda arrays: None,
    )  # fmt: skip


def _argument(model, name, axes):
    return Argument(name, tuple(getattr(model, n) if isinstance(n, str) else n for n in axes))


def states(model, text, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    rest = [rng.standard_normal((count, model.nv)) for _ in TEXTS[text][0][1:]]
    return [q, *rest]


def error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


# --- what is computed ----------------------------------------------------------------------------


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.__name__)
def test_machine_code_computes_what_the_interpreter_means(text, floating):
    model = random_tree(8, 2, joints=JOINTS, floating_base=floating)
    arrays = states(model, text, 11)
    code, data = kernel(model, text), robot(model)
    (meant,) = interpret(source(text).program(data.domains["bodies"].kinds), data, *arrays)
    batch = code.call(*arrays)
    assert error(batch, meant) < 1e-13
    single = np.array([code.call(*(a[k] for a in arrays)) for k in range(11)])
    assert np.array_equal(single, batch)


def test_single_precision_and_batches_of_any_form():
    model = random_tree(5, 3, joints=JOINTS[:3])
    q, qd, qdd = states(model, inverse_dynamics, 12)
    code = kernel(model, inverse_dynamics)
    expected = code.call(q, qd, qdd)
    short = code.call(*(a.astype(np.float32) for a in (q, qd, qdd)))
    assert short.dtype == np.float32
    assert error(short, expected) < 1e-5
    one = code.call(*(a[0].astype(np.float32) for a in (q, qd, qdd)))
    assert np.array_equal(one, short[0])
    crossed = code.call(q[:3, None], qd[:4], qdd[5])
    assert crossed.shape == (3, 4, model.nv)
    assert np.array_equal(crossed[2, 3], code.call(q[2], qd[3], qdd[5]))
    strided = code.call(np.asfortranarray(q), qd[::-1][::-1], qdd)
    assert np.array_equal(strided, expected)
    out = np.empty_like(expected)
    assert code.full(q, qd, qdd, out=out) is out
    assert np.array_equal(out, expected)
    assert code.call(q[:0], qd[:0], qdd[:0]).shape == (0, model.nv)


def test_threads_and_forked_processes_compute_the_same_bits():
    model = random_tree(5, 3, joints=JOINTS[:3])
    arrays = states(model, inverse_dynamics, 2000)
    code, before = kernel(model, inverse_dynamics), kt.threads()
    try:
        kt.set_threads(1)
        alone = code.call(*arrays)
        kt.set_threads(3)
        assert np.array_equal(code.call(*arrays), alone)
    finally:
        kt.set_threads(before)
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            os._exit(int(not np.array_equal(code.call(*(a[7] for a in arrays)), alone[7])))
        assert os.waitpid(child, 0)[1] == 0


def test_rates_and_gradients_are_those_of_the_source():
    model, text = random_tree(5, 3, joints=JOINTS[:2]), inverse_dynamics
    arrays, directions = states(model, text, 5), states(model, text, 5, 1)
    code, h, weights = kernel(model, text), 1e-30, states(model, text, 5, 2)[1]
    for k in (0, 2):
        moved = [a.astype(complex) for a in arrays]
        moved[k] += 1j * h * directions[k]
        expected = np.array([np.imag(text(model, *(a[s] for a in moved))) / h for s in range(5)])
        assert error(code.rates((k,)).call(*arrays, directions[k]), expected) < 1e-12
        gradient = code.gradients((k,)).call(*arrays, weights)
        assert error((gradient * directions[k]).sum(-1), (weights * expected).sum(-1)) < 1e-11


def test_a_thousand_bodies():
    model = random_tree(1000, 1, joints=[Revolute("z"), Prismatic("x")])
    arrays = states(model, inverse_dynamics, 1)
    tau = kernel(model, inverse_dynamics).call(*(a[0] for a in arrays))
    assert error(tau, inverse_dynamics(model, *(a[0] for a in arrays))) < 1e-11
    q, qd, qdd = arrays
    found = kernel(model, forward_dynamics).call(q[0], qd[0], tau)
    assert error(found, qdd[0]) < 1e-8


# --- checks and their messages -------------------------------------------------------------------


def _complaint(model, function, arrays, tier):
    with kt.tier(tier), pytest.raises(kt.KinetreeError) as raised:
        function(model, *arrays)
    return type(raised.value), str(raised.value)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("argument", range(3))
@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics])
def test_numbers_that_are_not_finite_are_named_as_by_specialised_code(function, argument, wrong):
    model = random_tree(5, 3, joints=JOINTS[:3])
    for count in (None, 9):
        arrays = [a[:count] for a in states(model, inverse_dynamics, 9)]
        arrays = [a[0] if count is None else a for a in arrays]
        arrays[argument][(-1,) * arrays[argument].ndim] = wrong
        general = _complaint(model, function, arrays, "general")
        assert general == _complaint(model, function, arrays, "specialised")


def test_quaternions_and_singular_joints_are_named_as_by_specialised_code():
    ball = random_tree(3, 0, joints=[Spherical()])
    q, qd, qdd = (a[0] for a in states(ball, inverse_dynamics, 1))
    q[4] += 0.5
    general = _complaint(ball, kt.inverse_dynamics, (q, qd, qdd), "general")
    assert general == _complaint(ball, kt.inverse_dynamics, (q, qd, qdd), "specialised")
    light = kt.ModelBuilder("light").body("a", joint=Revolute("z"), inertia=kt.Inertia.zero())
    model = light.build()
    arrays = np.zeros(1), np.zeros(1), np.ones(1)
    general = _complaint(model, kt.forward_dynamics, arrays, "general")
    assert general == _complaint(model, kt.forward_dynamics, arrays, "specialised")


# --- code on disk --------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(keys, "source_digest", lambda: "source")
    return tmp_path


def new_process(monkeypatch):
    """Forget all code in memory."""
    for name in ("_codes", "_recorded"):
        monkeypatch.setattr(loops, name, {})
    loops._binding.cache_clear()
    monkeypatch.setattr(build, "_loaded", type(build._loaded)())


def answers(model, text, monkeypatch, samples=3):
    new_process(monkeypatch)
    of, arrays = new_source(text), states(model, text, samples)
    code = kernel(model, text, of, key=("test", text.__name__))
    found = code.call(*arrays), code.call(*(a[0] for a in arrays))
    return of.count, np.concatenate([np.ravel(x) for x in found])


def test_a_warm_cache_needs_no_recording_and_gives_the_same_bits(cache, monkeypatch):
    model = random_tree(4, 3, joints=JOINTS[:2])
    for text in (inverse_dynamics, mass_matrix):
        count, first = answers(model, text, monkeypatch)
        assert count > 0
        count, again = answers(model, text, monkeypatch)
        assert count == 0
        assert np.array_equal(first, again)
        monkeypatch.setenv("KINETREE_CACHE", "off")
        count, off = answers(model, text, monkeypatch)
        assert count > 0
        assert np.array_equal(first, off)
        monkeypatch.setenv("KINETREE_CACHE", str(cache / "cache"))


def test_what_another_process_compiled_meanwhile_is_found(cache, monkeypatch):
    model, alone, first = random_tree(4, 3, joints=JOINTS[:2]), Store.alone, []

    @contextmanager
    def after_another(store, key):
        monkeypatch.setattr(Store, "alone", alone)
        first.append(answers(model, inverse_dynamics, monkeypatch))
        yield

    monkeypatch.setattr(Store, "alone", after_another)
    count, again = answers(model, inverse_dynamics, monkeypatch)
    assert (count, first[0][0] > 0) == (0, True)
    assert np.array_equal(first[0][1], again)


def test_a_new_kind_of_joint_is_compiled_alone(cache, monkeypatch):
    compiled = []

    def counted(text, *level):
        compiled.append(text)
        return object_code(text, *level)

    object_code = build.object_code
    answers(random_tree(3, 3, joints=[Revolute("z")]), inverse_dynamics, monkeypatch)
    monkeypatch.setattr(build, "object_code", counted)
    model = random_tree(4, 3, joints=[Revolute("z")])
    assert answers(model, inverse_dynamics, monkeypatch)[0] == 0
    assert not compiled
    two = random_tree(4, 3, joints=[Revolute("z"), Prismatic("y")])
    count, found = answers(two, inverse_dynamics, monkeypatch)
    kinds = len(robot(two).domains["bodies"].kinds) - len(robot(model).domains["bodies"].kinds)
    assert count == 1
    assert len(compiled) == 2 * kinds  # for one sample, and for several
    arrays = states(two, inverse_dynamics, 3)
    expected = [inverse_dynamics(two, *(a[s] for a in arrays)) for s in (0, 1, 2, 0)]
    assert error(found, np.concatenate(expected)) < 1e-13


def test_damaged_entries_count_as_absent(cache, monkeypatch):
    model = random_tree(4, 3, joints=JOINTS[:2])
    _, first = answers(model, inverse_dynamics, monkeypatch)
    for k, entry in enumerate(open_store().entries()):
        with open(entry.path, "r+b") as file:
            file.truncate(entry.size // 2 if k % 2 else 0)
    count, again = answers(model, inverse_dynamics, monkeypatch)
    assert count > 0
    assert np.array_equal(first, again)


def test_few_recorded_programs_stay_in_memory(cache, monkeypatch):
    new_process(monkeypatch)
    monkeypatch.setattr(loops, "RECORDED", 2)
    model = random_tree(4, 3, joints=JOINTS[:2])
    for text in (inverse_dynamics, mass_matrix, forward_dynamics):
        arrays = states(model, text, 3)
        code = kernel(model, text, new_source(text), key=("few", text.__name__))
        assert np.isfinite(code.call(*arrays)).all()
    assert len(loops._recorded) == 2
