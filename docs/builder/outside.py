"""Links from pages to files outside docs/, which the site has to carry along.

In the repository such a link leads to the file. On the site it leads to its own page: for
Markdown like any other, for source code with colours and line numbers.
"""

import os
import posixpath
import re
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

from builder import DOCS, ROOT

MARKDOWN = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/results.md": "results.md",
    "src/kinetree/codegen/README.md": "code_generation.md",
}
"""Markdown outside docs/ and where it stands on the site."""

SHOWN = {"docs/tutorials": "tutorials", "examples/gallery": "gallery"}
"""Folders of scripts that have pages, and where these are."""

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_FENCE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.M | re.S)


def redirect(text: str, origin: str, page: str, sources: set) -> str:
    """Text of a page with links that hold on the site.

    Args:
        text: Markdown.
        origin: path of the file in the repository, which its links are relative to.
        page: path of the page on the site.
        sources: receives the files that need a page of source code.
    """

    def target(match):
        start, link, anchor, end = match.groups()
        if "://" in link or link.startswith("mailto:"):
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
        where = _on_site(path, sources)
        if where is None:
            return match.group(0)
        return (
            start + posixpath.relpath(where, posixpath.dirname(page) or ".") + (anchor or "") + end
        )

    pieces = _FENCE.split(text)
    pieces[::2] = [_LINK.sub(target, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _on_site(path, sources):
    """Path on the site of a file of the repository, or ``None`` if there is no such file."""
    if path in MARKDOWN:
        return MARKDOWN[path]
    if path in SHOWN:
        return f"{SHOWN[path]}/index.md"
    folder, _, name = path.rpartition("/")
    if name.endswith(".py") and (folder in SHOWN or (folder == "examples" and _has_cells(path))):
        return f"{SHOWN.get(folder, 'tutorials')}/{name.removesuffix('.py')}.md"
    if path.startswith("docs/") and not path.endswith((".py", ".toml", ".txt")):
        return path.removeprefix("docs/")
    if not (ROOT / path).exists():
        return None
    sources.add(path)
    return source_page(path)


def _has_cells(path):
    return (ROOT / path).exists() and "\n# %%" in (ROOT / path).read_text(encoding="utf-8")


def source_page(path: str) -> str:
    """Where the site shows a file of the repository."""
    return f"source/{path}.html"


def show_source(path: str) -> str:
    """A stand-alone page with the text of a file, or the names in a folder."""
    file = ROOT / path
    here = os.path.dirname(source_page(path))
    css, home = (os.path.relpath(p, here) for p in ("stylesheets/source.css", "index.html"))
    if file.is_dir():
        body = "".join(f"<li>{escape(p.name)}</li>" for p in sorted(_listed(file)))
        body = f"<ul>{body}</ul>"
    else:
        body = highlight(file.read_text(encoding="utf-8"), _lexer(file), _FORMAT)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(path)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{css}"></head>'
        f'<body><p><a href="{home}">kinetree</a></p><h1>{escape(path)}</h1>{body}</body></html>'
    )


_FORMAT = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=False)


def _listed(folder):
    return [p for p in folder.iterdir() if not p.name.startswith((".", "__"))]


def _lexer(file: Path):
    try:
        return get_lexer_for_filename(file.name)
    except ClassNotFound:
        return TextLexer()


def source_styles() -> str:
    """Colours of pages of source code, for light and dark."""
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    base = (DOCS / "stylesheets" / "source_base.css").read_text(encoding="utf-8")
    return f"{base}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
