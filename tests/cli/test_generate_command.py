"""``kinetree generate`` and ``kinetree demo``."""

import pytest
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli import view
from kinetree.cli.app import app

TIP = kt.samples.double_pendulum().frame_names[-1]


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(app, list(arguments))


@pytest.mark.parametrize("columns", ["20", "100"])
def test_c_with_a_test_of_its_own(tmp_path, columns):
    """The command that runs it stays on one line, however long the path, and can be copied."""
    folder = tmp_path / "arm [left]" / "code"
    names = f"mass_matrix,pose:{TIP}"
    result = run("generate", "double_pendulum", "-F", names, "-F", f"jacobian:{TIP}:body", "-o",
                 str(folder), COLUMNS=columns)  # fmt: skip
    assert result.exit_code == 0, result.output
    header = (folder / "code.h").read_text()
    for name in ("code_mass_matrix", f"code_pose_{TIP}", f"code_jacobian_{TIP}_body"):
        assert name in header
    assert (folder / "Makefile").exists()
    assert f"make -C '{folder}' test    compiles it and compares numbers\n" in result.stderr


def test_numpy_source_on_standard_output_or_in_a_folder(tmp_path):
    text = run("generate", "double_pendulum", "-F", "mass_matrix", "--numpy").stdout
    names = {}
    exec(compile(text, "listing", "exec"), names)
    model = kt.samples.double_pendulum()
    assert names["mass_matrix"]([0.1, 0.2]) == pytest.approx(kt.mass_matrix(model, [0.1, 0.2]))
    folder = tmp_path / "new" / "code"
    run(
        "generate", "double_pendulum", "-F", f"mass_matrix,pose:{TIP}", "--numpy", "-o", str(folder)
    )
    assert {p.name for p in folder.iterdir()} == {"mass_matrix.py", f"pose_{TIP}.py"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-F", "mas_matrix", "-o", "x"], "did you mean 'mass_matrix'"),
        (["-F", "jacobian", "-o", "x"], "jacobian of what? Write jacobian:FRAME"),
        (["-F", "mass_matrix:tip", "-o", "x"], "mass_matrix is not about a frame; drop 'tip'"),
        (["-F", "mass_matrix"], "C needs a folder to write to: --out FOLDER"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = run("generate", "double_pendulum", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_without_matplotlib_the_tour_names_the_missing_package(monkeypatch):
    assert view.missing() is None
    monkeypatch.setattr(view.importlib.util, "find_spec", lambda name: None)
    assert 'pip install "kinetree[plot]"' in view.missing()


def test_the_tour_ends():
    result = run("demo", "--seconds", "-1")
    assert result.exit_code == 2
    assert "--seconds must be between 5 and 600, got -1" in result.stderr
