"""Write docs/book.md, the map from the literature to the code and its tests.

    python docs/make_book.py              rewrite docs/book.md
    python docs/make_book.py --check      fail when docs/book.md is out of date
    python docs/make_book.py --check --covers=FILE  the same, by what running tests wrote there
    python docs/make_book.py --uncovered  print the passages that no test covers yet

The passages are listed in docs/contents.txt; tests say what they cover with
``@pytest.mark.covers("RBDA Table 5.1", by=inverse_dynamics)``. Whether they really call that is
checked as they run: see tests/support/entered.py. Numbered equations and figures are those that
comments and docstrings cite: ``book_sources``.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import book_sources

DOCS = Path(__file__).parent
ROOT = DOCS.parent


def read_contents():
    """Chapters in order: (heading, [(id, title), ...])."""
    chapters = []
    for line in (DOCS / "contents.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            chapters.append((line[3:], []))
        elif "|" in line and not line.startswith("#"):
            passage, title = (part.strip() for part in line.split("|"))
            chapters[-1][1].append((passage, title))
    return chapters


def collect_covers():
    """Every (passages, functions, test) of the test suite: --covers=FILE, or by asking pytest."""
    for given in (word for word in sys.argv if word.startswith("--covers=")):
        return json.loads(Path(given.removeprefix("--covers=")).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "covers.json"
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist"]
        command += ["--assert=plain", f"--covers-file={path}"]  # nothing runs, so none will fail
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if result.returncode:
            sys.exit(result.stdout + result.stderr)
        return json.loads(path.read_text(encoding="utf-8"))


def join(chapters, covers):
    """Functions and tests per passage; unknown passages are an error."""
    known = {passage for _, passages in chapters for passage, _ in passages}
    unknown = [(e["test"], p) for e in covers for p in e["passages"] if p not in known]
    if unknown:
        sys.exit("\n".join(f"{t} covers {p!r}, which docs/contents.txt lacks" for t, p in unknown))
    functions, tests = defaultdict(list), defaultdict(list)
    for entry in covers:
        for passage in entry["passages"]:
            functions[passage] += [f for f in entry["by"] if f not in functions[passage]]
            if entry["test"] not in tests[passage]:
                tests[passage].append(entry["test"])
    return functions, tests


def render(chapters, functions, tests):
    """The text of book.md."""
    lines = [
        "# From the literature to the code",
        "",
        "This page lists the sections, tables and examples of the literature, with the code that",
        "implements it and the tests that cover it; then the numbered equations and figures that",
        "source and tests cite. Public names come first, and what names the passage itself before",
        "what else its tests call; every name leads to its file. RBDA is Featherstone, *Rigid Body",
        "Dynamics Algorithms* (2008). `make book` generates the page from the markers of the tests",
        "and from the comments of the source.",
    ]
    for heading, passages in chapters:
        covered = sum(bool(tests[passage]) for passage, _ in passages)
        lines += ["", f"## {heading}", "", f"{covered} of {len(passages)} passages covered.", ""]
        lines += ["| passage | title | code | tests |", "|---|---|---|---|"]
        for passage, title in passages:
            code = _code_cell(functions[passage], passage)
            lines.append(f"| {passage} | {title} | {code} | {_tests_cell(tests[passage])} |")
    return "\n".join(lines)


def render_numbered(covers):
    """Tables of the equations and figures that source and tests cite, for each text.

    Tests are those that cite the number, and those that cover the code which does.
    """
    code, tests = book_sources.citations()
    by = defaultdict(set)
    for entry in covers:
        for function in entry["by"]:
            by[function].add(entry["test"].split("::")[0])
    lines = []
    for text in dict.fromkeys(book_sources.TEXTS.values()):
        items = sorted({n for t, n in (*code, *tests) if t == text}, key=_order)
        counts = sum(n[0] == "(" for n in items), sum(n[0] == "F" for n in items)
        lines += ["", f"## {text}: numbered equations and figures", ""]
        lines += [f"Cited: {counts[0]} equations, {counts[1]} figures.", ""]
        lines += ["| number | code | tests |", "|---|---|---|"]
        for n in items:
            places = code[text, n]
            files = tests[text, n].union(*(by[place] for place in places))
            cell = _tests_cell(sorted(files), counted=False)
            lines.append(f"| {n} | {_code_cell(places)} | {cell} |")
    return "\n".join(lines)


def _order(number):
    chapter, _, item = number.strip("()").removeprefix("Fig. ").partition(".")
    return number[0] == "F", int(chapter), int(item)


def _code_cell(places, passage=None):
    """Public names first, linked to the text; what names the passage itself before all others."""
    ranked = []
    for place in places:
        others = passage is not None and not book_sources.cites(place, passage)
        public = book_sources.public_name(place)
        ranked.append((others, public is None, public or place, place))
    shown, cells = set(), []
    for _, _, name, place in sorted(ranked):
        name = place if name in shown else name  # another algorithm of the same function
        shown.add(name)
        file = book_sources.file_of(place)
        cells.append(f"[`{name}`](../{file})" if file else f"`{name}`")
    return ", ".join(cells) or "—"


def _tests_cell(tests, *, counted=True):
    files = defaultdict(int)
    for test in tests:
        files[test.split("::")[0]] += 1
    cells = [(f"[{Path(f).stem}](../{f})", n) for f, n in sorted(files.items())]
    return ", ".join(f"{cell} ({n})" if counted else cell for cell, n in cells) or "—"


def main():
    """Entry point."""
    chapters = read_contents()
    covers = collect_covers()
    functions, tests = join(chapters, covers)
    missing = [p for _, passages in chapters for p, _ in passages if not tests[p]]
    if "--uncovered" in sys.argv:
        print("\n".join(missing) if missing else "every passage is covered")
        return
    text = f"{render(chapters, functions, tests)}\n{render_numbered(covers)}\n"
    path = DOCS / "book.md"
    if "--check" in sys.argv:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit("docs/book.md is out of date: run `make book`")
        return
    path.write_text(text, encoding="utf-8")
    print(f"docs/book.md written; {len(missing)} passages not covered yet")


if __name__ == "__main__":
    main()
