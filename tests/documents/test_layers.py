"""Pages show the layers as ``lint-imports`` checks them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def ranks():
    """Number of the layer of each package, from the bottom."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = text[text.index('name = "Layers look down"') :]
    layers = re.findall(r'"([^"]+)"', contract[contract.index("layers = [") :].partition("]")[0])
    return {
        name.strip().removeprefix("kinetree."): k
        for k, layer in enumerate(reversed(layers))
        for name in layer.split("|")
    }


def in_the_table_of_design():
    """Packages in the order of the rows."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    rows = text[text.index("| package |") :].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`(\w+)/?`", row.split("|")[1])]


def in_the_line_of_contributing():
    """Packages from the bottom up."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    line = text[text.index("    spelling ←") :].partition("\n\n")[0]
    return re.findall(r"\w+", line)


@pytest.mark.parametrize("names", [in_the_table_of_design, in_the_line_of_contributing])
def test_all_packages_are_shown_from_the_bottom_up(names, ranks):
    shown = names()
    assert set(shown) == set(ranks)
    assert [ranks[name] for name in shown] == sorted(ranks.values())
