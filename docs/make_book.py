"""Write docs/book.md, the map from the literature to the code and its tests.

    python docs/make_book.py              rewrite docs/book.md
    python docs/make_book.py --check      fail when docs/book.md is out of date
    python docs/make_book.py --check --covers=FILE  the same, by what running tests wrote there
    python docs/make_book.py --uncovered  print the passages that no test covers yet

The passages are listed in docs/contents.txt; tests say what they cover with
``@pytest.mark.covers("RBDA Table 5.1", by=inverse_dynamics)``. Whether they really call that is
checked as they run: see tests/support/entered.py.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

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
        "implements it and the tests that cover it. RBDA is Featherstone, *Rigid Body Dynamics",
        "Algorithms* (2008). `make book` generates the page from the markers of the tests.",
    ]
    for heading, passages in chapters:
        covered = sum(bool(tests[passage]) for passage, _ in passages)
        lines += ["", f"## {heading}", "", f"{covered} of {len(passages)} passages covered.", ""]
        lines += ["| passage | title | code | tests |", "|---|---|---|---|"]
        for passage, title in passages:
            code = ", ".join(f"`{f}`" for f in sorted(functions[passage])) or "—"
            lines.append(f"| {passage} | {title} | {code} | {_tests_cell(tests[passage])} |")
    return "\n".join(lines) + "\n"


def _tests_cell(tests):
    files = defaultdict(int)
    for test in tests:
        files[test.split("::")[0]] += 1
    return ", ".join(f"[{Path(f).stem}](../{f}) ({n})" for f, n in sorted(files.items())) or "—"


def main():
    """Entry point."""
    chapters = read_contents()
    functions, tests = join(chapters, collect_covers())
    missing = [p for _, passages in chapters for p, _ in passages if not tests[p]]
    if "--uncovered" in sys.argv:
        print("\n".join(missing) if missing else "every passage is covered")
        return
    text, path = render(chapters, functions, tests), DOCS / "book.md"
    if "--check" in sys.argv:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit("docs/book.md is out of date: run `make book`")
        return
    path.write_text(text, encoding="utf-8")
    print(f"docs/book.md written; {len(missing)} passages not covered yet")


if __name__ == "__main__":
    main()
