"""``kinetree cache``."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kinetree.cli.app import app
from kinetree.codegen.cache import open_store


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    monkeypatch.setenv("KINETREE_CACHE_SIZE", "3MB")
    monkeypatch.setenv("COLUMNS", "200")
    return open_store()


def run(*arguments):
    return CliRunner().invoke(app, ["cache", *arguments])


@pytest.mark.parametrize("arguments", [[], ["show"]])
def test_it_shows_where_and_how_much(store, arguments):
    store.put("a", bytes(1000))
    store.put("b", bytes(1000))
    result = run(*arguments)
    assert result.exit_code == 0
    for part in (store.folder, "entries", "2", "2.1 kB of at most 3.0 MB", "last used"):
        assert part in result.output


@pytest.mark.parametrize("arguments", [["--json"], ["show", "--json"]])
def test_programs_read_the_same(store, arguments):
    store.put("a", bytes(1000))
    (entry,) = store.entries()
    assert json.loads(run(*arguments).output) == {
        "location": store.folder,
        "entries": 1,
        "bytes": entry.size,
        "limit": 3_000_000,
        "last_used": entry.used,
        "code": [],
    }


COMPILES = """
import kinetree as kt, numpy as np
model, q = kt.samples.chain(4), np.zeros(4)
for tier in ("general", "specialised"):
    with kt.tier(tier):
        kt.gravity_force(model, q)
kt.warm_up(model, kt.mass_matrix, batch=False)
"""


def test_code_is_listed_by_name_tier_and_level(store, monkeypatch):
    monkeypatch.delenv("KINETREE_OPTIMIZATION", raising=False)
    subprocess.run([sys.executable, "-c", COMPILES], check=True)  # here it may be compiled already
    code = json.loads(run("--json").output)["code"]
    found = {(c["name"], c["tier"], c["level"]): c for c in code}
    for known in (("gravity_force", "general", 1), ("gravity_force", "specialised", 0),
                  ("mass_matrix", "specialised", 1)):  # fmt: skip
        assert found[known]["count"] >= 1
        assert 500 < found[known]["bytes"] < 1e5
    assert sum(c["bytes"] for c in code) < sum(e.size for e in store.entries())
    rows = [line.split() for line in run().output.splitlines()]
    assert ["gravity_force", "specialised", "0", "1"] in [row[:4] for row in rows]


def test_an_empty_cache_is_shown(store):
    assert json.loads(run("--json").output)["entries"] == 0
    assert "last used" not in run().output


def test_clear(store):
    store.put("a", bytes(1000))
    store.put("b", bytes(1000))
    result = run("clear")
    assert (result.exit_code, result.output) == (0, "removed 2 entries, 2.1 kB\n")
    assert store.entries() == []
    assert json.loads(run("clear", "--json").output) == {"removed": 0, "bytes": 0, "left": 0}


def test_what_cannot_be_cleared_is_an_error(store, monkeypatch):
    store.put("a", bytes(1000))

    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(os, "unlink", refuse)
    result = run("clear")
    assert result.exit_code == 1
    assert f"1 entries could not be removed from {store.folder}" in result.output


def test_path_prints_the_folder_alone(store):
    assert run("path").output == store.folder + "\n"


def test_off(monkeypatch):
    monkeypatch.setenv("KINETREE_CACHE", "off")
    assert "KINETREE_CACHE is off" in run().output
    assert json.loads(run("--json").output)["location"] is None
    assert run("path").output == "\n"
    assert run("clear").exit_code == 0


def test_help_names_the_variables():
    output = run("--help").output
    assert "KINETREE_CACHE" in output
    assert "KINETREE_CACHE_SIZE" in output
