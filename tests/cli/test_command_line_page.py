"""docs/command_line.md and docs/doctor.md show what the command prints, and list all there is."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kinetree.cli.app import app
from kinetree.cli.options import Commands
from kinetree.doctor import KINDS

DOCS = Path(__file__).parents[2] / "docs"


def sessions(page):
    """Every command on a page with the output below it, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def without_numbers(text):
    """The lines of a text, with a mark for each number; other machines round differently."""
    return [NUMBER.sub("#", line.rstrip()) for line in text.strip("\n").splitlines()]


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("page", ["command_line.md", "doctor.md"])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    count = 0
    for command, shown in sessions(page):
        if command.startswith("cat "):
            Path(command.removeprefix("cat ")).write_text(shown, encoding="utf-8")
            continue
        before, _, after = command.rpartition(" | ")
        given = before.removeprefix("echo ").strip("'") if before else None
        name, *arguments = shlex.split(after)
        assert name == "kinetree"
        printed = CliRunner().invoke(app, arguments, input=given).output
        assert without_numbers(printed) == without_numbers(shown), command
        assert numbers(printed) == pytest.approx(numbers(shown), rel=1e-9, abs=1e-12), command
        count += 1
    assert count


def test_every_command_has_a_section():
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    for command in Commands.order:
        assert f"## {command}\n" in text


def test_every_code_is_in_the_table():
    text = (DOCS / "doctor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*?) \| (.*?) \|$", text, re.M)
    assert {code: (severity, why, fix) for code, severity, why, fix in rows} == {
        code: (kind.severity, kind.why, kind.fix) for code, kind in KINDS.items()
    }
