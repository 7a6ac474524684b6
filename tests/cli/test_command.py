"""The command ``kinetree`` as a whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kinetree
from kinetree import cli
from kinetree.cli.app import app


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"kinetree {kinetree.__version__}\n")


def test_without_arguments_it_helps():
    output = CliRunner().invoke(app, []).output
    for command in ("cache", "bench", "--version"):
        assert command in output


def run(*arguments):
    source = str(Path(kinetree.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "KINETREE_CACHE": os.path.abspath("here")}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_as_a_module_it_is_the_same():
    found = run("-m", "kinetree", "cache", "path")
    assert found.stdout.strip() == os.path.join(os.path.abspath("here"), "code-1")
    assert not os.path.exists("here")


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_what_is_missing_is_named(package):
    code = f"import sys; sys.modules[{package!r}] = None; from kinetree.cli import main; main()"
    found = run("-c", code)
    assert found.returncode == 1
    assert f"needs the package {package}, which is not installed" in found.stderr
    assert "pip install typer rich" in found.stderr


def test_other_import_errors_are_not_hidden(monkeypatch):
    monkeypatch.setitem(sys.modules, "kinetree.cli.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"kinetree\.cli\.app"):
        cli.main()
