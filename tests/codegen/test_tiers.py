"""Which code runs is a function of the calls made so far."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen import tiers
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import UnknownNameError
from kinetree.model.define import kernel_of

X = Argument("x", (3,))


def kernel(general=True, factor=2.0):
    """A kernel that doubles its input; the sign of the result tells which code ran."""

    def made(sign):
        program = trace(lambda x: sign * factor * x, [X], "f")
        return Kernel(
            "f", [X], program.outputs, lambda: program, reference=lambda arrays: arrays[0],
            validate=lambda arrays: None,
            general_code=(lambda: made(-1)) if general and sign > 0 else None,
        )  # fmt: skip

    return made(1)


def ran(k, samples=1):
    """Which code a call runs."""
    x = np.ones(3) if samples == 1 else np.ones((samples, 3))
    return "general" if np.all(k.call(x) == -2 * x) else "specialised"


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(tiers, "SOME", 10)
    monkeypatch.setattr(tiers, "MANY", 20)
    with kt.tier("auto"):
        yield


def test_general_code_runs_until_many_samples_were_requested():
    k = kernel()
    assert [ran(k) for _ in range(22)] == ["general"] * 20 + ["specialised"] * 2
    assert k.samples > 20
    k = kernel()
    assert [ran(k, 5) for _ in range(5)] == ["general"] * 4 + ["specialised"]
    k = kernel()
    assert [ran(k), ran(k, 19), ran(k, 2), ran(k)] == ["general"] * 2 + ["specialised"] * 2
    assert [ran(kernel(), 21), ran(kernel(), 20)] == ["specialised", "general"]


def test_calls_of_all_kinds_are_counted():
    k = kernel()
    for x in ([1.0, 1, 1], np.ones((2, 3)), np.ones((2, 2, 3)), np.ones(6)[::2], np.ones(3, "f4")):
        assert np.all(np.asarray(k.call(x)) < 0)
    k.disconnect()
    assert k.samples == 1 + 2 + 4 + 1 + 1
    assert ran(k, 11) == "general"
    assert ran(k) == "specialised"


def test_what_has_no_general_code_is_specialised_and_then_optimised():
    k = kernel(general=False)
    seen = []
    for _ in range(12):
        assert ran(k) == "specialised"
        seen.append(k._variants["specialised", "float64", False][1])
    assert seen == [0] * 10 + [1] * 2
    assert k.call is k.lean is not k.full


@pytest.mark.parametrize("tier", ["general", "specialised"])
def test_a_tier_that_was_set_stays(tier):
    k = kernel()
    ran(k)
    with kt.tier(tier):
        assert {ran(k), ran(k, 30), ran(k, 2)} == {tier}
        assert k.next_tier == tier
    assert ran(k) == "specialised"  # more than many


def test_changing_the_tier_reaches_kernels_that_are_in_use():
    k, found = kernel(), []
    for tier in ("general", "specialised", "general", "auto"):
        kt.set_tier(tier)
        found += [ran(k), ran(k), ran(k, 2)]
    assert found == ["general"] * 3 + ["specialised"] * 3 + ["general"] * 6


def test_without_general_code_specialised_code_runs():
    refused = kernel()
    refused.general_code = lambda: None
    with kt.tier("general"):
        assert ran(kernel(general=False)) == ran(refused) == "specialised"
        assert refused.next_tier == "specialised"


def test_a_task_counts_once_and_keeps_its_tier():
    k, other = kernel(), kernel()
    ran(k)
    with tiers.task(15) as task:
        assert {ran(k) for _ in range(40)} == {"general"}
        assert task.tier == "general"
        with tiers.task(1000):  # belongs to the outer one
            assert ran(k) == "general"
        kt.set_tier("specialised")
        assert ran(k) == "general"
        kt.set_tier("auto")
    assert (k.samples, other.samples) == (16, 0)
    assert [ran(k) for _ in range(5)] == ["general"] * 4 + ["specialised"]
    with tiers.task(21) as task:
        assert ran(other) == "specialised"
        assert task.tier == "specialised"


def test_a_task_asks_those_alone_that_were_called_since_the_last(monkeypatch):
    used, idle, asked = kernel(), kernel(), []
    assert ran(used) == ran(idle) == "general"
    for k, name in ((used, "used"), (idle, "idle")):
        monkeypatch.setattr(k, "disconnect", lambda name=name: asked.append(name))
    for expected in ({"used", "idle"}, {"used"}):
        with tiers.task(1):
            assert set(asked) == expected
        asked.clear()
        tiers.decide(used, 1)


def test_after_a_task_samples_count_again():
    k = kernel(general=False)
    with tiers.task(9):
        for _ in range(40):
            ran(k), ran(k, 2)
    assert (k.samples, k.level) == (9, 0)
    ran(k), ran(k)
    assert (k.samples, k.level) == (11, 1)
    connected = k.lean
    with tiers.task(9):
        ran(k)
    assert k.lean is connected


def test_a_settled_kernel_is_specialised_and_optimised_at_once():
    k = kernel()
    assert ran(k) == "general"
    k.settle()
    with kt.tier("general"):
        assert ran(k) == "specialised"
    assert k.level == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("generic", "tier must be one of 'auto', 'general', 'specialised', got 'generic'"),
        (1, "tier must be one of 'auto', 'general', 'specialised', got 1"),
        ("specialized", "got 'specialized'; did you mean 'specialised'?"),
    ],
)
def test_wrong_words(wrong, message):
    for act in (kt.set_tier, lambda word: kt.tier(word).__enter__()):
        with pytest.raises(UnknownNameError, match=message):
            act(wrong)
    assert tiers.setting() == "auto"


def test_the_environment_chooses():
    code = "import kinetree as kt; from kinetree.codegen import tiers; print(tiers.setting())"

    def found(word):
        return subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"KINETREE_TIER": word},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert found("general").stdout == "general\n"
    assert found("").stdout == f"{tiers.DEFAULT}\n"
    assert "KINETREE_TIER must be one of" in found("quick").stderr


def test_the_tier_of_a_function():
    model = kt.samples.double_pendulum()
    with kt.tier("specialised"):
        assert kt.tier_of(model, kt.inverse_dynamics) == "specialised"
        name = model.body_names[-1]
        assert kt.tier_of(model, kt.jacobian, name=name) == "specialised"
    assert kernel_of(model, "inverse_dynamics").samples == 0  # asking does not count
    with pytest.raises(UnknownNameError, match="simulate has no separate code"):
        kt.tier_of(model, kt.simulate)
    with pytest.raises(UnknownNameError, match="inverse_dynamics has no option 'frame'"):
        kt.tier_of(model, kt.inverse_dynamics, frame="hand")
    with pytest.raises(UnknownNameError, match="jacobian needs name="):
        kt.tier_of(model, kt.jacobian)
