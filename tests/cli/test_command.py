"""The command ``kinetree`` as a whole: help, errors, completion, what a newcomer tries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import invoke

import kinetree
from kinetree import cli
from kinetree.cli.options import Commands

COMMANDS = Commands.order


def test_version():
    result = invoke("--version")
    assert (result.exit_code, result.output) == (0, f"kinetree {kinetree.__version__}\n")


def test_without_arguments_it_helps():
    output = invoke().output
    for part in (*COMMANDS, "--version", "--debug", "--install-completion", "Exit codes"):
        assert part in output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_an_example(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"$ kinetree {command}" in result.output


def test_commands_come_in_the_order_of_need():
    output = invoke("--help").output
    positions = [output.index(f"│ {command} ") for command in COMMANDS]
    assert positions == sorted(positions)


def test_a_misspelt_command_is_corrected():
    result = invoke("inof", "panda")
    assert result.exit_code == 2
    assert "Did you mean 'info'?" in result.output


# --- errors ---------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text("<robot name='r'>\n<link/></robot>")
    return str(path)


def test_errors_are_one_line_unless_debugging(broken, monkeypatch):
    result = invoke("info", broken)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {broken}:2: <link>: attribute 'name' is missing")
    assert result.stderr.count("\n") == 1
    assert isinstance(invoke("--debug", "info", broken).exception, kinetree.KinetreeError)
    monkeypatch.setenv("KINETREE_DEBUG", "1")
    assert isinstance(invoke("info", broken).exception, kinetree.KinetreeError)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("robbot.urdf", "there is no file 'robbot.urdf'; did you mean 'robot.urdf'?"),
        ("pand", "there is no file 'pand', and no sample of that name; did you mean 'panda'?"),
        ("panda.urdf", "there is no file 'panda.urdf'; did you mean 'panda'?"),
        ("nowhere/robot.urdf", "there is no folder 'nowhere'"),
        ("xyzzy", "robot files here: robot.urdf"),
        (".", "this is a folder"),
    ],
)
def test_a_file_that_is_not_there(broken, monkeypatch, name, message):
    monkeypatch.chdir(Path(broken).parent)
    result = invoke("info", name)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_without_robot_files_the_samples_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "the samples are pendulum, " in invoke("info", "xyzzy").stderr


def test_samples_do_not_float():
    assert "--floating is for files" in invoke("info", "panda", "--floating").stderr


def test_files_that_cannot_be_written_are_explained(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    path = tmp_path / "p.urdf"
    result = invoke("convert", "pendulum", str(path))
    assert result.exit_code == 1
    why = "check the folder, its permissions and the room on the disk"
    assert result.stderr == f"error: cannot write {str(path)!r}: Permission denied; {why}\n"


# --- as a process ---------------------------------------------------------------------------------


def run(*arguments, **variables):
    source = str(Path(kinetree.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "KINETREE_CACHE": os.path.abspath("here")}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=environment | variables,
        check=False,
    )


def test_as_a_module_it_is_the_same():
    found = run("-m", "kinetree", "cache", "path")
    assert found.stdout.strip() == os.path.join(os.path.abspath("here"), "code-1")
    assert not os.path.exists("here")


def test_no_colours_in_a_pipe_and_no_character_stops_it():
    found = run("-m", "kinetree", "info", "double_pendulum", PYTHONIOENCODING="ascii")
    assert found.returncode == 0
    assert "\033" not in found.stdout
    assert "double pendulum  2 bodies" in found.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kinetree che", "check"),
        ("kinetree info pan", "panda"),
        ("kinetree eval gravity", "gravity_force"),
        ("kinetree samples write stew", "stewart"),
    ],
)
def test_the_shell_completes_commands_functions_and_samples(words, expected, monkeypatch, capsys):
    count = str(len(words.split()) - 1)
    variables = {"_KINETREE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["kinetree"])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out.split() == [expected]


def test_the_shell_completes_files(tmp_path, monkeypatch):
    from kinetree.cli.options import complete

    (tmp_path / "arm.urdf").touch()
    (tmp_path / "arm.png").touch()
    (tmp_path / "arms").mkdir()
    found = [name for name, _ in complete(f"{tmp_path}{os.sep}ar")]
    assert found == [str(tmp_path / "arm.urdf"), str(tmp_path / "arms") + os.sep]
    assert list(complete("no/such/folder/x")) == []


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_what_is_missing_is_named(package):
    code = f"import sys; sys.modules[{package!r}] = None; from kinetree.cli import main; main()"
    found = run("-c", code)
    assert found.returncode == 1
    assert f"needs the package {package}, which is not installed" in found.stderr
    assert 'pip install "kinetree[cli]"' in found.stderr


def test_help_needs_neither_compiler_nor_loaders():
    code = (
        "import sys\nfrom kinetree.cli.app import app\n"
        "heavy = {'llvmlite', 'lxml', 'rich.table', 'mujoco', 'kinetree.loaders', "
        "'kinetree.doctor', 'kinetree.samples'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run("-c", code).stdout == "[]\n"


def test_other_import_errors_are_not_hidden(monkeypatch):
    monkeypatch.setitem(sys.modules, "kinetree.cli.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"kinetree\.cli\.app"):
        cli.main()
