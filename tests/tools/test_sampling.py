"""Samples of walks: fresh ones, that can be drawn again, and what else runs."""

import math
import re
from pathlib import Path

from support import sampling

TESTS = Path(__file__).parents[1]
NAME = "codegen/test_check.py::test_every_function_agrees_on_all_back_ends"


class Item:
    """As much of a collected test as is looked at."""

    def __init__(self, name):
        self.nodeid = f"tests/{name}"


ITEMS = [*(Item(f"{NAME}[{k}]") for k in range(30)), Item("codegen/test_check.py::test_another")]


def drawn(monkeypatch, number):
    monkeypatch.setenv(sampling.VARIABLE, str(number))
    out = {item.nodeid for item in sampling.left_out(ITEMS)}
    return [item.nodeid for item in ITEMS if item.nodeid not in out]


def test_walks_are_tests_with_cases():
    texts = {}
    for name, part in sampling.WALKS.items():
        file, _, test = name.partition("::")
        text = texts.setdefault(file, (TESTS / file).read_text(encoding="utf-8"))
        assert re.search(rf"^def {test}\(", text, re.M), name
        assert part in range(2, 7), name


def test_a_number_draws_the_same_sample_and_another_one_another(monkeypatch):
    first = drawn(monkeypatch, 1)
    assert len(first) == math.ceil(30 / sampling.WALKS[NAME]) + 1
    assert ITEMS[-1].nodeid in first
    assert drawn(monkeypatch, 1) == first != drawn(monkeypatch, 2)
    assert {name for number in range(40) for name in drawn(monkeypatch, number)} == {
        item.nodeid for item in ITEMS
    }


def test_walks_alone():
    (other,) = sampling.left_out(ITEMS, walks_only=True)
    assert other.nodeid.endswith("test_another")
