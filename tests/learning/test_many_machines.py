"""The example that learns by sweeps: here on threads of this process, as on a cluster."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_sweeps_of_policies_learn(capsys):
    example = runpy.run_path(str(EXAMPLES / "learn_on_many_machines.py"))
    example["learn"].__globals__["GENERATIONS"] = 4
    policy, history = example["learn"](None)
    assert capsys.readouterr().out.count("generation") == 4
    assert history[-1] > history[0] + 150
    assert policy.shape == (example["SIZE"],)
