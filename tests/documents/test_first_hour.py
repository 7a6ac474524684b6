"""The first hour of a new user: each script prints what stands beside it."""

import importlib
import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest
from support.shown_output import assert_same_output

import kinetree as kt

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "first_hour"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))


@pytest.mark.filterwarnings("ignore:model 'arm'. not in the MJCF. velocity limits")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_stands_beside_it(script, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    shown = script.with_suffix(".txt").read_text(encoding="utf-8")
    assert_same_output(capsys.readouterr().out, shown)


def test_the_page_lists_every_task_and_scripts_are_short():
    page = (ROOT / "docs" / "first_hour.md").read_text(encoding="utf-8")
    listed = re.findall(r"first_hour/(\d\d_\w+\.py)\)", page)
    assert listed == [path.name for path in SCRIPTS]
    assert len(SCRIPTS) == 12
    for path in SCRIPTS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 45, path.name


def test_every_namespace_is_stable_or_experimental():
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    table = page.partition("|---|---|")[2].partition("\n\n")[0]
    named = re.findall(r"`kt\.(\w+)`", table)
    modules = {n for n in dir(kt) if isinstance(getattr(kt, n), ModuleType)}
    missing = {n for n in modules if n not in named and n in kinetree_names()}
    assert not missing
    assert len(named) == len(set(named))


def kinetree_names():
    """Names that the stub lists."""
    stub = (ROOT / "src" / "kinetree" / "__init__.pyi").read_text(encoding="utf-8")
    return set(re.findall(r"import \w+ as (\w+)", stub))


@pytest.mark.parametrize("name", ["geometry", "shapes", "edit", "gears", "robots", "counting"])
def test_a_namespace_is_imported_by_its_name_in_kt(name):
    assert importlib.import_module(f"kinetree.{name}") is getattr(kt, name)


def test_what_is_no_namespace_is_not_imported():
    with pytest.raises(ModuleNotFoundError, match=r"kinetree\.geometri"):
        importlib.import_module("kinetree.geometri")


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: kt.Box((1, 1, 1)), "it is kinetree.geometry.Box"),
        (lambda: kt.World().run(1.0), r"write world.step\(n\), or kinetree.simulate\(world"),
        (lambda: kt.viewer.save("a.html"), "did you mean 'save_html'"),
        (lambda: motion().positions, "write motion.q"),
        (lambda: motion().to_csv("a.csv"), r"write motion.save\('motion.csv'\)"),
    ],
    ids=["shape", "run", "page", "positions", "table"],
)
def test_guesses_of_the_first_hour_end_in_a_remedy(call, remedy):
    with pytest.raises(AttributeError, match=remedy):
        call()


def test_a_torque_is_what_a_controller_returns():
    with pytest.raises(TypeError, match="no argument 'torque'; did you mean 'controller'"):
        kt.simulate(kt.samples.pendulum(), [0.1], duration=0.01, torque=[0.0])  # pyright: ignore


def motion():
    return kt.simulate(kt.samples.pendulum(), [0.1], duration=0.01, dt=5e-3)
