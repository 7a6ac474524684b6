"""LLVM's engines are freed, but not where garbage is collected."""

import gc
import sys

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
        ours = frame.f_globals.get("__name__", "").partition(".")[0] != "jax"  # which has one
        if event == "call" and ours:
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        gc.collect()
    finally:
        sys.setprofile(None)
    assert calls == []
