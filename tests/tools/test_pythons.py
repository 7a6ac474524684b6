"""``make pythons``: which Pythons, which versions, and what is reported of those left out."""

import sys

import pytest
import smoke
from support.ci_tools import ROOT, of_ci

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib


@pytest.fixture(scope="module")
def tool():
    return of_ci("pythons")


def test_the_system_has_a_quicker_build_of_the_same_python(tmp_path):
    quickest, name = of_ci("quickest").quickest, "python{}.{}".format(*sys.version_info)
    assert (
        quickest("/mine/python3", "--enable-shared", str(tmp_path)) == "/mine/python3"
    )  # no other
    other = tmp_path / name
    for status, expected in ((1, "/mine/python3"), (0, str(other))):  # without venv, and with it
        other.write_text(f"#!/bin/sh\nexit {status}\n")
        other.chmod(0o755)
        assert quickest("/mine/python3", "--enable-shared", str(tmp_path)) == expected
    assert quickest("/mine/python3", "'--enable-optimizations'", str(tmp_path)) == "/mine/python3"
    assert quickest(f"{tmp_path}/python3", "", str(tmp_path)) == f"{tmp_path}/python3"


def test_the_ends_of_many_pythons_and_of_one(tool):
    many = {(3, 10): "a", (3, 12): "b", (3, 14): "c"}
    assert tool.chosen(many, "ends") == [((3, 10), "a", True), ((3, 14), "c", False)]
    assert tool.chosen(many, "3.12") == [((3, 12), "b", True), ((3, 12), "b", False)]
    assert len(tool.chosen(many, "all")) == 6
    one = {(3, 11): "a"}
    assert tool.chosen(one, "ends") == [((3, 11), "a", True), ((3, 11), "a", False)]
    with pytest.raises(SystemExit, match=r"one of the versions here \(3.11\), got '3.9'"):
        tool.chosen(one, "3.9")


def test_extras_whose_lowest_versions_differ_are_apart_and_what_is_left_out_is_report(tool, capsys):
    core = {"numpy": (">=1.26", "1.26.0")}
    extras = {
        "plot": {"matplotlib": (">=3.8", "3.8.0")},
        "contact": {"coal": (">=3", "3.0.3"), "numpy": (">=2.0", "2.0.0")},
        "pinocchio": {"pin": (">=4", "4.0.0"), "numpy": (">=2.0", "2.0.0")},
        "torch": {"torch": ("<2.9,>=2.5", "2.5.0")},
        "gpu": {"cupy": (">=13", "13.0.0")},
        "jax": {"jax": (">=0.6", None)},
    }
    tested = core | {n: v for name, e in extras.items() if name != "gpu" for n, v in e.items()}
    declared = tool.Declared(core, extras, tested)
    first, second = tool.groups(declared, lowest=True)
    assert first == (
        ["plot", "torch"],
        {"numpy": "==1.26.0", "matplotlib": "==3.8.0", "torch": "==2.5.0"},
    )
    assert second == (
        ["contact", "pinocchio"], {"numpy": "==2.0.0", "coal": "==3.0.3", "pin": "==4.0.0"},
    )  # fmt: skip
    report = capsys.readouterr().out
    assert "left out on this machine: gpu (the tests have no cupy)" in report
    assert "left out on this machine: jax (no wheel of jax>=0.6)" in report
    ((together, versions),) = tool.groups(declared, lowest=False)
    assert together == ["plot", "contact", "pinocchio", "torch"]
    assert {n: v for n, v in versions.items() if v} == {"torch": "<2.9,>=2.5"}


def test_extras_that_do_not_go_together_are_tried_alone(tool, monkeypatch, tmp_path, capsys):
    core, extras = {"numpy": (">=1", "1")}, {"a": {"x": (">=2", "2")}, "b": {"y": (">=3", "3")}}
    tried = []

    def install(folder, extras, versions):
        tried.append((extras, versions))
        return extras == ["a"]

    monkeypatch.setattr(tool, "FOLDER", tool.ROOT / "out")
    monkeypatch.setattr(tool, "fresh_environment", lambda python, folder: folder)
    monkeypatch.setattr(tool.shutil, "rmtree", lambda folder: None)
    declared = tool.Declared(core, extras, core | extras["a"] | extras["b"])
    monkeypatch.setattr(tool.Declared, "on", lambda folder: declared)
    monkeypatch.setattr(tool, "install", install)
    monkeypatch.setattr(tool, "smoke", lambda folder, extras: True)
    assert tool.look("python", (3, 10), True, False) == ["Python 3.10 with the lowest versions (b)"]
    assert tried[0] == (["a", "b"], {"numpy": "==1", "x": "==2", "y": "==3"})
    assert tried[1:] == [
        (["a"], {"numpy": "==1", "x": "==2"}),
        (["b"], {"numpy": "==1", "y": "==3"}),
    ]
    assert "not together; each of these extras alone" in capsys.readouterr().out


def test_the_lines_of_pip_that_name_the_conflict_are_printed(tool):
    conflict = [f"    p{k} depends on numpy>=2" for k in range(60)]
    said = ["Collecting numpy", "ERROR: Cannot install a and b", "The conflict is caused by:"]
    assert tool.what_failed("\n".join([*said, *conflict])).splitlines() == [*said[1:], *conflict]
    assert tool.what_failed("no\nwheel") == "no\nwheel"


def test_every_extra_is_tried(tool):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) - tool.OURS - {"gpu"} == set(smoke.EXTRAS)
    with pytest.raises(SystemExit, match="does not try magic; add a function for it"):
        smoke.main(["magic"])
