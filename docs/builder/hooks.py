"""Hooks that mkdocs calls while it builds the site."""

import logging
import posixpath
import re
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mkdocs.structure.files import File, Files

from builder import ROOT, equations, gallery, notebooks, outside, reference, theory
from builder.check_site import problems

_log = logging.getLogger("mkdocs.hooks.builder")
_SHORT = re.compile(r"<code>(?=[^<\n]{1,24}</code>)")
_API = re.compile(r"(?<!\">)<code>(kt(?:\.\w+)+)(\([^<]*\))?</code>")
_NAME = re.compile(r"(?<=>)[\w.]{16,}(?=</(?:code|a)>)")
_OUTPUT = re.compile(r'(?<=<div class="language-text )(?=highlight">)(?=(.*?)</pre>)', re.DOTALL)
_CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
_HEADING = re.compile(r"(?<=doc-symbol-heading )[^>]*></code>\s*(?:<span[^>]*>)?[\w.]+")
_GUIDE = re.compile(r"\bdocs/(\w+)\.md\b")
_PICTURE = re.compile(r'(?<!">)<img (?:[^>]* )?src="([^"]+)"[^>]*>')


def on_config(config):
    """Fill in the parts of the navigation that have many pages."""
    config.nav = [_expanded(entry) for entry in config.nav]


def _expanded(entry):
    """An entry of the navigation, where a path that ends in "/" stands for its pages."""
    if isinstance(entry, dict):
        ((title, value),) = entry.items()
        return {title: _pages_of(value) if isinstance(value, str) else _all_expanded(value)}
    return entry


def _all_expanded(entries):
    found = []
    for entry in entries:
        pages = _pages_of(entry) if isinstance(entry, str) else _expanded(entry)
        found += pages if isinstance(pages, list) else [pages]
    return found


def _pages_of(path):
    part = path.removesuffix("/")
    if part == path:
        return path
    if part == "theory":
        return [f"theory/{name}.md" for name in theory.PAGES]
    if part == "reference":
        return list(reference.pages())
    paths = gallery.tutorials() if part == "tutorials" else gallery.scripts(gallery.EXAMPLES)
    return [f"{part}/index.md", *(f"{part}/{p.stem}.md" for p in paths)]


def on_files(files, config):
    """Put together all pages of the site."""
    shown = gallery.shown()
    texts = {name: (f"docs/{name}", text) for name, text in reference.pages().items()}
    texts |= {name: (f"docs/{name}", text) for name, text in gallery.pages(shown).items()}
    for origin, name in outside.MARKDOWN.items():
        texts[name] = (origin, (ROOT / origin).read_text(encoding="utf-8"))
    kept = []
    for file in files:
        if file.is_documentation_page() and file.inclusion.is_included():
            texts[file.src_uri] = (f"docs/{file.src_uri}", _written(file))
        else:
            kept.append(file)
    sources = {s.script.path.relative_to(ROOT).as_posix() for part in shown.values() for s in part}
    pages = {
        name: outside.redirect(text, origin, name, sources)
        for name, (origin, text) in texts.items()
    }
    pages |= {outside.source_page(path): outside.show_source(path) for path in sorted(sources)}
    pages["stylesheets/source.css"] = outside.source_styles()
    for show in shown["tutorials"]:
        name = gallery.notebook_name(show.script)
        pages[f"tutorials/{name}"] = notebooks.text_of(notebooks.of_shown(show))
    pages["arm.html"] = gallery.moving_arm()
    kept += [File.generated(config, name, content=text) for name, text in pages.items()]
    kept += [
        File.generated(config, name, abs_src_path=str(path)) for name, path in gallery.files(shown)
    ]
    return Files(kept)


def _written(file):
    if file.src_uri == "index.md":
        return f"---\nhide: [navigation, toc]\n---\n{file.content_string}"
    folder, _, name = file.src_uri.rpartition("/")
    if folder == "theory" and name.removesuffix(".md") in theory.PAGES:
        return theory.completed(name.removesuffix(".md"), file.content_string)
    return file.content_string.replace("  # fmt: skip", "")


def on_page_content(html, page, config, files):
    """Draw equations, and link names of the API to its reference."""
    if page.file.src_uri.startswith("reference/"):
        html = _GUIDE.sub(r'<a href="../\1.html">\g<0></a>', html)
        return equations.render(_HEADING.sub(_breakable, html))
    html = _OUTPUT.sub(_wrapped, _CELL.sub(_sized, html))
    if page.file.src_uri == "book.md":  # tables of long names
        html = _NAME.sub(lambda m: re.sub(r"[._]", r"\g<0><wbr>", m.group(0)), html)
    html = _PICTURE.sub(r'<a href="\1">\g<0></a>', html)  # opens in full size
    here = posixpath.dirname(page.file.dest_uri) or "."

    def linked(match):
        target = _anchors().get(match.group(1))
        if target is None:
            return match.group(0)
        return f'<a class="api" href="{posixpath.relpath(target, here)}">{match.group(0)}</a>'

    html = _SHORT.sub('<code class="short">', _API.sub(linked, html))
    return equations.render(html)


def _sized(cell):
    """A cell of a table, narrow or wide on phones; other cells have the width of two words."""
    size = len(re.sub(r"<[^>]*>", "", cell.group(1)))
    kind = "short" if "<" not in cell.group(1) and size <= 14 else "long" if size > 70 else ""
    return f'<td class="{kind}">{cell.group(1)}</td>' if kind else cell.group(0)


def _wrapped(output):
    """``message`` for output that is not a table: one line, or more than 110 columns."""
    lines = re.sub(r"<[^>]*>", "", output.group(1).partition("<code>")[2]).strip("\n").split("\n")
    return "message " if len(lines) == 1 or max(map(len, lines)) > 110 else ""


def _breakable(heading):
    """A heading of the reference whose name breaks after a dot or an underscore, not in a word."""
    rest, mark, name = heading.group(0).rpartition(">")
    return rest + mark + re.sub(r"[._]|[a-z](?=[A-Z])", r"\g<0><wbr>", name)


@cache
def _anchors():
    return reference.anchors()


def on_post_build(config):
    """Check what was written, without the page for errors, whose links start at a server's root."""
    Path(config.site_dir, "404.html").unlink(missing_ok=True)
    for problem in problems(config.site_dir):
        _log.warning(problem)
