"""First answers above a second: the page has those that the benchmark lets pass."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def known():
    spec = importlib.util.spec_from_file_location(
        "first_answers_known", ROOT / "benchmarks" / "first_answers_known.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_the_benchmark(known):
    text = (ROOT / "docs" / "tiers.md").read_text(encoding="utf-8")
    table = text.partition("| what | CPU seconds | why |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == known.lines_of_page()


def test_bounds_are_above_what_was_measured_and_above_the_goal(known):
    for row in known.KNOWN:
        assert 1.0 <= max(map(float, re.findall(r"[\d.]+", row.measured))) <= row.bound < 5


def test_a_row_that_is_not_listed_has_its_goal_as_bound(known):
    assert known.bound_of("satellite: optimize", 1.0) == 1.0
    assert known.bound_of("delta: optimize", 1.0) == 2.0
    assert known.bound_of("chain of 1,000 simulate", 2.0) == 2.0
