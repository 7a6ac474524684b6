"""``kinetree warm-up``."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli import warm_up
from kinetree.cli.app import app
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import kept_code


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    return open_store()


def test_what_it_compiles_is_kept_and_found_again(cache):
    some = (
        "import kinetree as kt\nfrom kinetree.cli import app, warm_up\n"
        "model = kt.samples.double_pendulum()\n"
        "warm_up.jobs = lambda: [lambda: warm_up._call('forward_dynamics', model),"
        " lambda: warm_up._move(model)]\n"
        "app.app()"
    )

    def run(*options):  # in a process that has no code yet
        command = [sys.executable, "-c", some, "warm-up", *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    found = json.loads(run("--json"))
    assert found["location"] == cache.folder
    assert found["new"] == len(cache.entries()) > 10
    names = {kept.name for kept in kept_code(cache) if kept.tier == "general"}
    assert "forward_dynamics" in names
    assert run().startswith(f"0 new entries in {cache.folder}")


def test_nothing_is_compiled_where_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("KINETREE_CACHE", "off")
    monkeypatch.setattr(warm_up, "jobs", lambda: pytest.fail("compiles for nobody"))
    said = "nothing is compiled, since nothing is kept: KINETREE_CACHE is off\n"
    assert CliRunner().invoke(app, ["warm-up"]).output == said
    found = json.loads(CliRunner().invoke(app, ["warm-up", "--json"]).output)
    assert found == {"location": None, "new": 0, "seconds": 0.0}


def test_jobs_are_of_every_kind():
    done = {str(getattr(job, "func", job)).split()[1] for job in warm_up.jobs()}
    own = {"_drop_things", "_call", "_differentiate", "_move", "_plan", "_stand", "_look_at"}
    assert done == own | {"simulate", "check"}


def test_functions_that_need_more_than_a_state_are_left_out():
    model = kt.samples.double_pendulum()
    warm_up._call("task_space_forward_dynamics", model)
    warm_up._call("mass_matrix", model)
    assert model.kernels["mass_matrix"].samples == 9
