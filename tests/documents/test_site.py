"""The parts of the documentation site fit together: navigation, theory, reference, links."""

import inspect
import re
from pathlib import Path

import pytest
import yaml
from builder import DOCS, ROOT, check_site, equations, outside, reference, theory


def in_nav(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            (value,) = entry.values()
            yield from [value] if isinstance(value, str) else in_nav(value)


def test_every_page_has_its_place_in_the_navigation():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert len(config["nav"]) <= 10
    listed = list(in_nav(config["nav"]))
    parts = [entry for entry in listed if entry.endswith("/")]
    assert sorted(parts) == ["gallery/", "reference/", "theory/", "tutorials/"]
    pages = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    pages -= {f"theory/{name}.md" for name in theory.PAGES}
    pages |= set(outside.MARKDOWN.values())
    assert sorted(set(listed) - set(parts)) == sorted(pages)
    assert len(listed) == len(set(listed))


def test_every_page_of_theory_has_words_and_every_algorithm_a_page():
    written = {p.stem for p in (DOCS / "theory").glob("*.md")} - {"index"}
    assert written == set(theory.PAGES)
    index = (DOCS / "theory" / "index.md").read_text(encoding="utf-8")
    assert [name for name in theory.PAGES if f"({name}.md)" not in index] == []
    shown = {m for page in theory.PAGES.values() for m in [*page["source"], *page.get("also", [])]}
    texts = [
        f"{package}.{p.stem}"
        for package in ("algorithms", "textbook")
        for p in (ROOT / "src" / "kinetree" / package).glob("[!_]*.py")
    ]
    assert sorted(set(texts) - shown) == []
    assert all(theory.module_file(module).exists() for module in shown)


def test_the_textbook_page_lists_every_text():
    page = (DOCS / "textbook.md").read_text(encoding="utf-8")
    texts = (ROOT / "src" / "kinetree" / "textbook").glob("[!_]*.py")
    assert [p.stem for p in texts if f"| `{p.stem}` |" not in page] == []


def test_every_example_is_listed():
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    assert [p.name for p in (ROOT / "examples").glob("*.py") if f"/{p.name})" not in page] == []


def test_a_page_of_theory_is_completed(monkeypatch):
    cover = {
        "test": "tests/a.py::test_it_is_so",
        "passages": ["RBDA 5.3"],
        "by": ["algorithms.rnea.f"],
    }
    monkeypatch.setattr(theory, "_covers", lambda: [cover])
    monkeypatch.setattr(theory.costs, "ROBOTS", ("double_pendulum",))
    page = theory.completed("rnea", "# Words\n")
    assert page.startswith("# Words\n\n## Cost\n")
    assert "| `double_pendulum` | 2 | " in page
    assert '```python title="kinetree/algorithms/rnea.py"\n"""Recursive Newton' in page
    assert "| [`textbook.rnea_3d`](../../src/kinetree/textbook/rnea_3d.py) | The original" in page
    assert "| RBDA 5.3 | " in page
    assert "[tests/a.py](../../tests/a.py)\n\n- it is so\n" in page


def test_punctuation_stays_with_the_equation_before_it():
    x = r'<span class="arithmatex">\(x\)</span>'
    first, _, second = equations.render(f"{x} and {x}, here").partition(" and ")
    assert "nowrap" not in first
    assert second.startswith('<span style="white-space: nowrap"><math')
    assert second.endswith("</math>,</span> here")


def test_every_page_of_theory_says_what_it_costs():
    counted = {
        name for name, p in theory.PAGES.items() if {"cost", "operations", "joints"} & set(p)
    }
    words = {
        name
        for name in theory.PAGES
        if "\n## Cost\n" in (DOCS / "theory" / f"{name}.md").read_text(encoding="utf-8")
    }
    assert counted | words == set(theory.PAGES)
    assert not counted & words


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("hybrid", "| `double_pendulum` | 2 | 38m + 27a | "),  # some forces given
        ("task_space", "| `double_pendulum` | 2 | 25m + 16a | "),  # the last body
        ("floating_base", "| `double_pendulum` | 2 | "),
        ("virtual_links", "| `four_bar` | 3 | 70m + 41a |"),
        ("spatial", "| $X v$ | `X @ v` | 24m + 18a |"),  # RBDA Table A.4
        ("joints", "| `Revolute('z')` | 1 | 0 |"),
    ],
)
def test_costs_are_counted(page, row, monkeypatch):
    monkeypatch.setattr(theory.costs, "ROBOTS", ("double_pendulum",))
    monkeypatch.setattr(theory.costs, "LOOPS", ("four_bar",))
    assert row in theory._cost(theory.PAGES[page])


def _public_names():
    return [name for names in reference.names_by_page().values() for name in names]


def test_every_public_name_is_in_the_reference_once_with_a_docstring():
    names = _public_names()
    assert len(names) == len(set(names))
    assert set(reference.ABOUT) == set(reference.PAGES)
    bare = [n for n in names if not inspect.getdoc(reference.find(n))]
    assert bare == []
    private = [n for n in names if any(part.startswith("_") for part in n.split("."))]
    assert private == []
    assert (
        reference.anchors()["kt.pose"]
        == "reference/kinematics.html#kinetree.quantities.kinematics.pose"
    )


def test_what_is_returned_is_not_read_as_a_type():
    """A colon in the first line of "Returns" makes a type of the words before it."""
    docs = {name: inspect.getdoc(reference.find(name)) or "" for name in _public_names()}
    wrong = [n for n, doc in docs.items() if re.search(r"\nReturns:\n +[^\n:]* [^\n:]*: ", doc)]
    assert wrong == []


def test_a_module_without_a_page_is_named(monkeypatch):
    pages = {k: v for k, v in reference.PAGES.items() if k != "kinematics"}
    monkeypatch.setattr(reference, "PAGES", pages)
    missing = r"kt\.\w+ is of module 'quantities\.kinematics': add it to PAGES"
    with pytest.raises(LookupError, match=missing):
        reference.names_by_page()


def test_links_out_of_the_docs_are_redirected():
    sources = set()
    text = "[a](../tests/conftest.py) [b](../CONTRIBUTING.md#x) [c](models.md) "
    text += "`[d](../e.py)` [f](no.md)"
    page = outside.redirect(text, "docs/b.md", "b.md", sources)
    assert page == (
        "[a](source/tests/conftest.py.html) [b](contributing.md#x) [c](models.md) "
        "`[d](../e.py)` [f](no.md)"
    )
    assert sources == {"tests/conftest.py"}
    text = "[a](../examples/gallery) [b](../examples/gallery/tail.py) [c](../examples/15_walk.py) "
    page = outside.redirect(text + "[d](../examples/01_pendulum.py)", "docs/b.md", "b.md", set())
    assert page == (
        "[a](gallery/index.md) [b](gallery/tail.md) [c](tutorials/15_walk.md) "
        "[d](source/examples/01_pendulum.py.html)"
    )
    assert '<span class="linenos">' in outside.show_source("tests/conftest.py")
    assert "<li>demo.py</li>" in outside.show_source("examples")


def test_links_of_a_site_are_checked(tmp_path):
    def write(name, text):
        Path(tmp_path, name).write_text(text, encoding="utf-8")

    write(
        "a.html", '<a href="b.html#there"></a><a href="https://example.org"></a><img src="c.png">'
    )
    write("b.html", '<h1 id="there"></h1>')
    write("c.png", "")
    assert check_site.problems(tmp_path) == []
    write("a.html", '<a href="b.html#gone"></a><a href="c.html"></a><a href="../x.html"></a>')
    write("d.html", '<script src="https://example.org/x.js"></script>')
    write("e.css", "@import 'x'")
    write("f.py", "")
    check_site._page.cache_clear()
    assert check_site.problems(tmp_path) == [
        "a.html links to b.html#gone: there is no such anchor",
        "a.html links to c.html: there is no such file",
        "a.html links to ../x.html: it leaves the site",
        "d.html fetches https://example.org/x.js from elsewhere",
        "f.py is no part of a site",
        "e.css fetches from elsewhere",
    ]
