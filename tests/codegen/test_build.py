"""Kernels find their machine code in memory and on disk, and are right when they do not."""

import ctypes
import hashlib
import os
import subprocess
import sys
import warnings
from collections import deque
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import offset_four_bar

import kinetree as kt
from kinetree import files
from kinetree.codegen import build as build_module
from kinetree.codegen import cache, keys
from kinetree.codegen import machine_code as llvm
from kinetree.codegen.build import build
from kinetree.codegen.cache import Store, open_store
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render.llvm import render
from kinetree.codegen.render.llvm_shared import shared_symbols
from kinetree.codegen.runtime.kernel import Kernel, Variant
from kinetree.codegen.runtime.single import gufunc
from kinetree.codegen.weak_table import WeakTable
from kinetree.errors import CacheWarning
from kinetree.model.define import kernel_of
from kinetree.spatial import ops

X = np.array([0.3, -2.0, 1e12])  # the last is beyond the vector sine: it calls the C library's


def function(x):
    return np.array([ops.sin(x[0]) * x[1], ops.cos(x[2]) + 3, ops.atan2(x[0], x[1])])


EXPECTED = np.array([np.sin(X[0]) * X[1], np.cos(X[2]) + 3, np.arctan2(X[0], X[1])])


def kernel(key=("test_build",), of=function):
    arguments = [Argument("x", (3,))], [Argument("out0", (3,))]
    return Kernel(
        "f", *arguments, lambda: trace(of, arguments[0], "f"),
        reference=lambda arrays: of(*arrays), validate=lambda arrays: None, key=key,
    )  # fmt: skip


def assert_right(k):
    assert_close(k.call(X), EXPECTED, condition=4)
    assert_close(k.call(X), EXPECTED, condition=4)  # the second call takes the lean path
    assert_close(k.call(np.tile(X, (5, 1))), np.tile(EXPECTED, (5, 1)), condition=4)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache of its own, and a process that has compiled and said nothing yet."""
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    monkeypatch.setattr(keys, "source_digest", lambda: "source")
    monkeypatch.setattr(cache, "_complaints", set())
    forget(monkeypatch)
    return tmp_path


def forget(monkeypatch, shared=True):
    """As a new process would; all but the functions that kernels share, if these may stay."""
    monkeypatch.setattr(build_module, "_loaded", WeakTable())
    monkeypatch.setattr(build_module, "_recent", deque(maxlen=64))
    if shared:
        monkeypatch.setattr(llvm, "_provided", set())


@pytest.fixture
def no_compiling(monkeypatch):
    def start():
        def refuse(*args):
            raise AssertionError("compiled again")

        monkeypatch.setattr(build_module, "object_code", refuse)

    return start


def never_traced(*args):
    raise AssertionError("traced again")


def test_a_hit_on_disk_neither_traces_nor_compiles(monkeypatch, no_compiling):
    assert_right(kernel())
    forget(monkeypatch)
    no_compiling()
    found = kernel()
    found.make_program = never_traced
    assert_right(found)


def test_what_another_process_compiled_meanwhile_is_found(monkeypatch, no_compiling):
    alone = Store.alone

    @contextmanager
    def after_another(self, key):
        monkeypatch.setattr(Store, "alone", alone)
        assert_right(kernel())
        forget(monkeypatch)
        no_compiling()
        yield

    monkeypatch.setattr(Store, "alone", after_another)
    found = kernel()
    found.make_program = never_traced
    assert_right(found)


def test_a_hit_in_memory_needs_no_disk(monkeypatch, no_compiling):
    monkeypatch.setenv("KINETREE_CACHE", "off")
    code = build(kernel(), "float64", False)
    no_compiling()
    found = kernel()
    found.make_program = never_traced
    assert build(found, "float64", False) is code


def test_code_lives_as_long_as_something_uses_it(monkeypatch):
    monkeypatch.setenv("KINETREE_CACHE", "off")
    monkeypatch.setattr(build_module, "_recent", deque(maxlen=1))
    code = build(kernel(), "float64", False)
    build(kernel(("another",), lambda x: x + 1), "float64", False)
    assert build(kernel(), "float64", False) is code
    build(kernel(("a third",), lambda x: x + 2), "float64", False)
    del code
    assert not [key for key in build_module._loaded if "test_build" in key]


def test_without_a_key_the_program_is_traced_and_then_found(monkeypatch, no_compiling):
    assert_right(kernel(key=None))
    forget(monkeypatch)
    no_compiling()
    assert_right(kernel(key=None))


def test_a_new_source_with_the_same_program_does_not_compile_again(monkeypatch, no_compiling):
    assert_right(kernel())
    forget(monkeypatch)
    monkeypatch.setattr(keys, "source_digest", lambda: "another source")
    no_compiling()
    assert_right(kernel())


def test_a_new_source_is_traced_again(monkeypatch):
    assert_right(kernel())
    forget(monkeypatch)
    monkeypatch.setattr(keys, "source_digest", lambda: "another source")
    assert_close(kernel(of=lambda x: x + 1).call(X), X + 1)


def test_kernels_share_the_functions_that_they_call(monkeypatch):
    compiled, compile_ = [], build_module.object_code
    monkeypatch.setattr(
        build_module,
        "object_code",
        lambda text, *level: compiled.append(text) or compile_(text, *level),
    )
    assert_right(kernel())
    shared = [text for text in compiled if "@shared(" in text]
    assert len(shared) == len(set(shared)) == 7  # for one: also ``single``; angles and atan2
    assert_close(kernel(("more",), of=lambda x: 2 * function(x)).call(X), 2 * EXPECTED, condition=4)
    assert len(compiled) == len(shared) + 3


def test_code_that_calls_a_function_which_is_not_ours_is_not_run(monkeypatch):
    """As a version of kinetree may leave it whose functions had another text."""
    build(kernel(), "float64", False)
    text = render(kernel().program, "float64", 1)
    key = keys.program_key(hashlib.sha256(text.encode()).hexdigest())
    symbols, _, data = open_store().get(key).partition(b"\n")
    open_store().put(key, symbols.replace(b"atan2_float64_1_", b"atan2_float64_1_0") + b"\n" + data)
    forget(monkeypatch)
    monkeypatch.setattr(build_module, "load", only_from(monkeypatch))
    assert_right(kernel())


@pytest.mark.parametrize(("name", "small"), [("inverse_dynamics", True), ("mass_matrix", False)])
def test_programs_with_few_numbers_in_and_out_are_small(monkeypatch, name, small):
    """An arm of nine joints: 27 in and 9 out; 9 in and 81 out, which would compile three times as
    long and be no faster.
    """
    sizes = []
    monkeypatch.setattr(
        build_module, "default_lanes", lambda dtype, small: sizes.append(small) or 2
    )
    build(kernel_of(kt.samples.chain(9), name), "float64", True)
    assert sizes == [False, small]  # at level 0, and at level 1


def test_another_processor_compiles_its_own(monkeypatch, folder):
    assert_right(kernel())
    count = len(open_store().entries())
    forget(monkeypatch)
    monkeypatch.setattr(llvm, "host", lambda *level: f"another processor {level}")
    assert_right(kernel())
    assert len(open_store().entries()) == 2 * count


def test_an_entry_that_came_from_another_machine_is_not_run(monkeypatch, folder):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(llvm, "host", lambda *level: f"another processor {level}")
        assert_right(kernel())
        foreign = {entry.path for entry in open_store().entries()}
    forget(monkeypatch)
    assert_right(kernel())
    local = {entry.path for entry in open_store().entries()} - foreign
    for path, other in zip(sorted(local), sorted(foreign), strict=True):
        Path(path).write_bytes(Path(other).read_bytes())
    forget(monkeypatch)
    monkeypatch.setattr(build_module, "load", only_from(monkeypatch))
    assert_right(kernel())


def only_from(monkeypatch):
    """``load`` that accepts nothing but what this process compiled."""
    compiled, compile_, load = [], build_module.object_code, build_module.load

    def object_code(text, *level):
        compiled.append(compile_(text, *level))
        return compiled[-1]

    def checked(data, *level):
        assert data in compiled, "code that was not compiled here was run"
        return load(data, *level)

    monkeypatch.setattr(build_module, "object_code", object_code)
    return checked


def flip(content):
    for place in (0, 9, 30, 60, 200, len(content) // 2, -1):
        damaged = bytearray(content)
        damaged[place] ^= 0x40
        yield bytes(damaged)


def test_damaged_entries_are_not_run_and_are_replaced(monkeypatch, folder):
    with monkeypatch.context() as without:
        without.setenv("KINETREE_CACHE", "off")
        build(kernel(), "float64", False)  # what kernels share is there from now on
    forget(monkeypatch, shared=False)
    build(kernel(), "float64", False)
    whole = {e.path: Path(e.path).read_bytes() for e in open_store().entries()}
    monkeypatch.setattr(build_module, "load", only_from(monkeypatch))
    for path, content in whole.items():
        for damaged in (b"", content[:50], content[:-1], content + b"x", *flip(content)):
            Path(path).write_bytes(damaged)
            for other in whole.keys() - {path}:
                Path(other).write_bytes(b"\0" * 1000)
            forget(monkeypatch, shared=False)
            again = kernel()
            assert_close(Variant(again, "float64", False).ufunc(X), EXPECTED, condition=4)
            assert {p: Path(p).read_bytes() for p in whole} == whole


def test_damaged_shared_functions_are_not_run_and_are_replaced(monkeypatch, folder):
    build(kernel(), "float64", False)
    whole = {e.path: Path(e.path).read_bytes() for e in open_store().entries()}
    assert len(whole) == 6  # the request, the kernel, its loop, angles and atan2, ``single``
    for damage in (lambda content: content[:-1], lambda content: list(flip(content))[-2]):
        for path, content in whole.items():
            Path(path).write_bytes(damage(content))
        forget(monkeypatch)
        assert_close(Variant(kernel(), "float64", False).ufunc(X), EXPECTED, condition=4)
        assert {p: Path(p).read_bytes() for p in whole} == whole


def test_a_request_that_leads_to_nothing_is_compiled(monkeypatch, folder):
    assert_right(kernel())
    for entry in open_store().entries():
        if entry.size > 2000:  # the machine code, not the requests
            os.unlink(entry.path)
    forget(monkeypatch)
    assert_right(kernel())


def test_cleared_while_in_use(monkeypatch, folder):
    k = kernel()
    assert_right(k)
    open_store().clear()
    assert_right(k)
    forget(monkeypatch)
    assert_right(kernel())
    assert open_store().entries()


def test_off_writes_nothing(monkeypatch, folder):
    monkeypatch.setenv("KINETREE_CACHE", "off")
    assert_right(kernel())
    assert os.listdir(folder) == []


def test_a_full_disk_is_survived_with_one_warning(monkeypatch, folder):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    with pytest.warns(CacheWarning, match="No space left on device") as caught:
        assert_right(kernel())
    assert len(caught) == 1
    forget(monkeypatch)
    assert_right(kernel())  # warnings are errors here


def test_a_read_only_folder_is_survived(monkeypatch, folder):
    def read_only(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(cache.os, "replace", read_only)
    with pytest.warns(CacheWarning, match="Read-only file system"):
        assert_right(kernel())


@pytest.mark.parametrize("fault", ["twice at once", "killed while writing"])
def test_processes(folder, fault):
    """Real processes on a real model, sharing a cache or dying over it."""
    code = (
        "import os, sys, numpy as np, kinetree as kt\n"
        "from kinetree import files\n"
        "def die(descriptor, data):\n"
        "    os.write(descriptor, data[:300])\n"
        "    os.kill(os.getpid(), 9)\n"
        "if sys.argv[1] == 'die': files.write_all = die\n"
        "m = kt.samples.pendulum()\n"
        "print(kt.inverse_dynamics(m, [0.5], [0.0], [1.0])[0])"
    )
    source = str(Path(keys.__file__).parents[2])
    environment = {**os.environ, "KINETREE_CACHE": str(folder), "PYTHONPATH": source}

    def start(argument):
        return subprocess.Popen(
            [sys.executable, "-c", code, argument], stdout=subprocess.PIPE, env=environment
        )

    if fault == "killed while writing":
        dying = start("die")
        dying.communicate()
        assert dying.returncode == -9
    children = [start("live") for _ in range(2)]
    answers = [float(child.communicate()[0]) for child in children]
    model = kt.samples.pendulum()
    expected = kt.algorithms.rnea.inverse_dynamics(model, np.array([0.5]), np.zeros(1), np.ones(1))
    assert_close(np.array(answers), np.full(2, expected[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(kt.inverse_dynamics(model, [0.5], [0.0], [1.0]), expected)


class TestModels:
    def test_models_of_our_joints_have_a_key(self):
        assert kernel_of(kt.samples.panda(), "mass_matrix").key is not None

    def test_a_users_function_is_never_found_by_its_name(self, monkeypatch):
        """The same text reads another global variable: nothing in the joint tells them apart."""

        def cam(radius):
            place = "def place(q):\n    return kt.xlt(0, 0, radius * kt.spatial.ops.cos(q[0]))"
            names = {"kt": kt, "radius": radius}
            exec(place, names)
            joint, ball = kt.joints.CustomJoint(names["place"], 1), kt.shapes.sphere(0.1, mass=1.0)
            return kt.ModelBuilder().body("a", joint=joint, inertia=ball).build()

        assert cam(1.0).fingerprint == cam(2.0).fingerprint
        q = np.array([0.7])
        small = kt.gravity_force(cam(1.0), q)
        forget(monkeypatch)
        assert_close(kt.gravity_force(cam(2.0), q), 2 * small)


def test_large_programs_are_compiled_in_pieces_to_the_same_code(rng):
    """On any number of threads; what the whole module computes, to the last bit."""
    model = kt.samples.humanoid()
    k = kernel_of(model, "forward_dynamics")
    text = render(k.program, "float64", 2)
    assert len(llvm._pieces(text)) > 3
    assert llvm._pieces(text[:1000]) == [text[:1000]]
    before = kt.threads()
    codes = []
    for count in (1, 2):
        kt.set_threads(count)
        codes.append(llvm.object_code(text, 0))
    kt.set_threads(before)
    assert codes[0] == codes[1]
    whole = llvm._emit_uninterrupted(text, 0)
    for symbol in shared_symbols(text):
        assert build_module._provide_shared(symbol)
    q, qd = model.random_configuration(rng, 5), rng.standard_normal((5, model.nv))
    results = []
    for data in (codes[0], whole):
        code = llvm.load(data)
        status = ctypes.c_int64(0)
        results.append(gufunc(k, "float64", code.address("loop"), status)(q, qd, qd))
        assert status.value == 0
    np.testing.assert_array_equal(*results)


CLOSED = np.array([1.0, -0.47996268, 1.18764196])
CALLS = {
    "derivative": lambda m: kt.differentiate(kt.forward_dynamics, wrt="q")(m, CLOSED, *REST),
    "dynamics": lambda m: kt.forward_dynamics(m, CLOSED, *REST),
    "batch": lambda m: kt.forward_dynamics(m, np.tile(CLOSED, (64, 1)), *REST),
    "linear": lambda m: kt.linearize(m, CLOSED, *REST),
    "tree": lambda m: kt.pose(m, CLOSED, "rocker"),
}
REST = np.zeros(3), np.zeros(3)


@pytest.fixture(scope="module")
def closed_four_bar():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kt.loops.assemble(offset_four_bar(), CLOSED)


@pytest.mark.parametrize("tier", ["specialised", "auto"])
def test_a_script_gives_the_same_warnings_whatever_the_cache_holds(
    tier, monkeypatch, tmp_path, closed_four_bar
):
    """Also where code for other calls was compiled first, in the same process."""
    monkeypatch.setenv("KINETREE_TIER", tier)
    monkeypatch.setitem(globals(), "CLOSED", closed_four_bar)

    def said(names):
        forget(monkeypatch)
        model = offset_four_bar()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for name in names:
                CALLS[name](model)
        assert {w.filename for w in found} <= {__file__}  # the line that calls, not one of ours
        return [str(w.message) for w in found]

    def use(folder):
        monkeypatch.setenv("KINETREE_CACHE", str(tmp_path / folder))

    cold = {}
    for name in CALLS:
        use(name)
        cold[name] = said([name])
    use("all")
    (warning,) = said(CALLS)
    assert "misaligned by up to 1e-05 m" in warning
    assert cold == {name: [] if name == "tree" else [warning] for name in CALLS}
    assert {name: said([name]) for name in CALLS} == cold
    assert said(CALLS) == [warning]
