"""docs/make_book.py: what the map from the literature to the code shows, and in which order."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def book():
    sys.path.insert(0, str(DOCS))
    try:
        import make_book

        yield make_book
    finally:
        sys.path.remove(str(DOCS))


def test_public_names_come_first_and_the_algorithm_of_the_table_before_all_others(book):
    places = ["algorithms.aba.forward_dynamics", "algorithms.ltl.ltdl"]
    cell = book._code_cell([*places, "algorithms.rnea.inverse_dynamics"], "RBDA Table 5.1")
    first = "[`kt.inverse_dynamics`](../src/kinetree/algorithms/rnea.py)"
    assert cell.split(", ") == [
        first,
        "[`kt.forward_dynamics`](../src/kinetree/algorithms/aba.py)",
        "[`algorithms.ltl.ltdl`](../src/kinetree/algorithms/ltl.py)",
    ]


def test_every_linked_file_is_there(book):
    text = (DOCS / "book.md").read_text(encoding="utf-8")
    links = {part.split(")")[0] for part in text.split("](")[1:]}
    assert len(links) > 300
    assert not [link for link in links if not (DOCS / link).exists()]


def test_numbered_equations_are_those_that_comments_cite(book, tmp_path):
    source = tmp_path / "some.py"
    source.write_text(
        '"""Hybrid dynamics — RBDA §9.1, (9.4)."""\n\n\n'
        'def half(x):\n    """Spencer (2.25)–(2.27); RBDA Fig. 9.1."""\n'
        "    return x / 2  # (9.14)\n",
        encoding="utf-8",
    )
    found = list(book.book_sources._cited_in(source))
    assert found == [
        (("RBDA", "(9.4)"), ""),
        (("Spencer", "(2.25)"), "half"),
        (("Spencer", "(2.26)"), "half"),
        (("Spencer", "(2.27)"), "half"),
        (("RBDA", "Fig. 9.1"), "half"),
        (("RBDA", "(9.14)"), "half"),
    ]
