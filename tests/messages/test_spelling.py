"""Suggestions for names that are not known."""

from kinetree.spelling import close_names, did_you_mean


def test_a_close_name_is_suggested():
    assert did_you_mean("elbo", ["elbow", "wrist"]) == "did you mean 'elbow'?"
    assert did_you_mean("arm", ["arm1", "arm2"], most=2) == "did you mean 'arm2' or 'arm1'?"


def test_otherwise_some_of_what_there_is():
    assert did_you_mean("x", ["elbow", "wrist"]) == "known: 'elbow', 'wrist'"
    assert did_you_mean("x", [f"joint{k}" for k in range(30)]).endswith("... (30 in all)")
    assert did_you_mean("x", []) == "there are none"
    assert did_you_mean("x", ["elbow"], "look around") == "look around"


def test_enormous_names_take_no_time():
    assert close_names("a" * 10**7, ["b" * 10**5] * 10**4) == []
