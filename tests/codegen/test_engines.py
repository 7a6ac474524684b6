"""LLVM's engines are freed, but not where garbage is collected."""

import gc
import sys
from threading import Thread

import kinetree as kt
from kinetree.codegen import engines
from kinetree.codegen.machine_code import load, object_code

TEXT = "define double @shared(double %x) {\n  ret double %x\n}\n"


def test_engines_are_freed_when_others_are_made(monkeypatch):
    monkeypatch.setattr(engines, "_engines", engines._Engines())
    data, kept = object_code(TEXT), []
    for k in range(100):
        code = load(data)
        kept += [code] if k % 10 == 0 else []
        assert len(engines._engines._engines) <= len(kept) + 2 * engines._Engines.SOME
    assert len({code.address("shared") for code in kept}) == 10  # all of them are still there


def test_garbage_runs_no_function_of_python():
    """Where it does, a Ctrl-C that came while garbage was looked for is lost."""
    gc.collect()
    cost, calls = kt.control.QuadraticCost(effort=0.01), []
    kt.control.optimize(kt.samples.cart_pole(), [0.1, 0.2], steps=10, dt=0.03, running=cost)
    with kt.tier("specialised"):
        kt.mass_matrix(kt.samples.scara(), [0.1] * 4)

    def note(frame, event, _):
        if event == "call":
            calls.append(frame.f_code.co_name)

    others, gc.callbacks[:] = gc.callbacks[:], []  # JAX and Hypothesis have some
    sys.setprofile(note)
    try:
        gc.collect()
    finally:
        sys.setprofile(None)
        gc.callbacks[:] = others
    assert calls == []


def test_threads_that_load_code_at_once_have_their_own_engines():
    """The background loads code while others do; one engine in place of another is a crash."""
    kept, found, before = engines._Engines(), [], sys.getswitchinterval()

    class Code:
        """Stands for machine code."""

    def keep(thread):
        for k in range(1000):
            code, engine = Code(), (thread, k)
            number = kept.keep(code, engine)
            found.append((number, engine, kept[number], code if k % 2 else None))

    threads = [Thread(target=keep, args=(n,)) for n in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert len(found) == len({number for number, *_ in found}) == 4000
    assert all(engine == its for _, engine, its, _ in found)
    assert all(kept[number] == engine for number, engine, _, code in found if code)
