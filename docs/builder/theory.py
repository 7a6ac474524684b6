"""End of a page of theory, after its words: source, cost, tests, and passages of the literature.

``docs/theory/pages.toml`` says for each page which modules it is about. The rest is looked up.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from make_book import collect_covers, read_contents

from builder import DOCS, ROOT, costs

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

PAGES = tomllib.loads((DOCS / "theory" / "pages.toml").read_text(encoding="utf-8"))


def completed(name: str, text: str) -> str:
    """A page with everything that is not written by hand."""
    page = PAGES[name]
    modules = [*page["source"], *page.get("also", [])]
    parts = [text.rstrip("\n")]
    parts.append(_cost(page))
    parts.append(_source(page["source"]))
    if page.get("also"):
        parts.append(_also(page["also"]))
    parts.append(_passages(modules))
    parts.append(_tests(modules))
    return "\n\n".join(part for part in parts if part) + "\n"


def module_file(module: str) -> Path:
    """The file of a module, given without the name of the package."""
    path = ROOT / "src" / "kinetree" / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _link(module):
    return f"../../{module_file(module).relative_to(ROOT).as_posix()}"


def _cost(page):
    """Counted operations; where nothing can be, the words of the page say why."""
    counted = "Multiplications (m, divisions and roots included) and additions (a)"
    if "operations" in page:
        words = f"{counted} on general quantities, counted when this page was built."
        return "\n\n".join(["## Cost", words, costs.operations(page["operations"])])
    if "joints" in page:
        words = f"{counted}, counted when this page was built, without sines and cosines."
        return "\n\n".join(["## Cost", words, costs.joints(page["joints"])])
    if "cost" not in page:
        return ""
    words = f"{counted} for mechanisms that ship with the package, counted when this page was"
    words += " built. *As written* is the source below, traced for the robot"
    if any("public" in entry for entry in page["cost"]):
        words += "; *compiled* is what a call runs: the formulation with the fewest operations, in"
        words += " which a division or root counts as 8"
    parts = ["## Cost", f"{words}."]
    for entry in page["cost"]:
        entry = dict(entry)
        title = entry.pop("title")
        parts += [f"**{title}**"] if len(page["cost"]) > 1 else []
        parts.append(costs.table(**entry))
    return "\n\n".join(parts)


def _source(modules):
    lines = ["## The source"]
    for module in modules:
        text = module_file(module).read_text(encoding="utf-8")
        lines += [
            "",
            f'```python title="kinetree/{module.replace(".", "/")}.py"',
            text.rstrip("\n"),
        ]
        lines.append("```")
    return "\n".join(lines)


def _also(modules):
    lines = ["## Other forms and parts", "", "| module | what it is |", "|---|---|"]
    for module in modules:
        doc = ast.get_docstring(ast.parse(module_file(module).read_text(encoding="utf-8")))
        lines.append(f"| [`{module}`]({_link(module)}) | {doc.partition(chr(10))[0]} |")
    return "\n".join(lines)


@cache
def _covers():
    return collect_covers()


def _of(modules):
    """Statements of the tests about functions of these modules."""
    prefixes = tuple(f"{module}." for module in modules)
    return [e for e in _covers() if any(f.startswith(prefixes) for f in e["by"])]


def _passages(modules):
    titles = dict(pair for _, passages in read_contents() for pair in passages)
    cited = {p for entry in _of(modules) for p in entry["passages"]}
    if not cited:
        return ""
    lines = ["## In the literature", "", "| passage | title |", "|---|---|"]
    lines += [f"| {p} | {title} |" for p, title in titles.items() if p in cited]
    return "\n".join(lines) + "\n\n[The whole map](../book.md)."


def _tests(modules):
    tests = defaultdict(set)
    for entry in _of(modules):
        file, *_, name = entry["test"].split("::")
        tests[file].add(name.removeprefix("test_").replace("_", " "))
    if not tests:
        return ""
    lines = ["## Its tests"]
    for file, names in sorted(tests.items()):
        lines += ["", f"[{file}](../../{file})", ""]
        lines += [f"- {name}" for name in sorted(names)]
    return "\n".join(lines)
