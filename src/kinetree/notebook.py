"""Tables for people: as text of at most 100 columns, and as HTML, which notebooks show.

Names in tables come from files of strangers, so that all text is escaped. HTML has no style sheets
and no scripts of its own but the page that shows a mechanism, in a frame.
"""

import sys
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kinetree.spelling import printable

WIDTH = 100
"""Columns of text that fit a terminal, and a page."""
_LEAST = 12  # columns to which text is cut, at least
_CELL = "padding:2px 10px 2px 0;text-align:{};vertical-align:top;white-space:{}"
_LARGE = 8_000_000  # letters of a page: more makes a notebook slow


# --- as text --------------------------------------------------------------------------------------


def text_table(
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    long: Sequence[int] = (0,),
    width: int = WIDTH,
) -> str:
    """Table rows as lines of text; long cells are cut to fit ``width``.

    Args:
        rows: cells, the head first.
        right: numbers of the columns that are aligned to the right.
        long: numbers of the columns that may be cut.
        width: columns of text.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        k = max(long, key=lambda k: widths[k])
        if widths[k] <= _LEAST:
            break
        widths[k] -= 1
    columns = [_cut_column(c, w) for c, w in zip(zip(*rows, strict=True), widths, strict=True)]
    lines = []
    for row in zip(*columns, strict=True):
        cells = enumerate(zip(row, widths, strict=True))
        lines.append(
            "  ".join(x.rjust(w) if k in right else x.ljust(w) for k, (x, w) in cells).rstrip()
        )
    return "\n".join(lines)


def _cut_column(texts, width):
    """Cells of a column cut to a width where they still differ, if possible."""
    cuts = [[cut(x, width, end) for x in texts] for end in (2 / 3, 1 / 2, 5 / 6, 1, 1 / 3, 0)]
    return max(cuts, key=lambda cells: len({*cells}))


def cut(text: str, width: int, part: float = 2 / 3) -> str:
    """Text shortened by an ellipsis inside; ``part`` of it is the end."""
    if len(text) <= width:
        return text
    end = int((width - 1) * part + 1e-9)
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def list_in_lines(head: str, items: Iterable[str], width: int = WIDTH) -> str:
    """Text ``head: one, another`` wrapped into indented lines."""
    text = f"{head}{', '.join(items)}"
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


# --- as HTML --------------------------------------------------------------------------------------


def escape(text: Any) -> str:
    """Text with HTML special characters escaped."""
    import html  # with all entities: not needed for text

    return html.escape(printable(text, keep="\n"), quote=True)


def block(title: str, *parts: str) -> str:
    """HTML block for a notebook: a title, and content below it."""
    inside = "".join(part for part in parts if part)
    return f'<div style="max-width:100%"><div><b>{escape(title)}</b></div>{inside}</div>'


def line(text: str) -> str:
    """HTML of a line of text."""
    return f'<div style="margin:4px 0;color:#666">{escape(text)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 60) -> str:
    """HTML table that scrolls if it is too large.

    Args:
        head: names of the columns; none for a table without a head.
        rows: cells; numbers are aligned to the right, ``Markup`` is taken as it is.
        most: rows that are shown; a line says how many more there are.
    """
    rows = list(rows)
    lines = [_row("th", head)] if any(head) else []
    lines += [_row("td", row) for row in rows[:most]]
    more = line(f"and {len(rows) - most} more") if len(rows) > most else ""
    inside = f'<table style="border-collapse:collapse;font-size:90%">{"".join(lines)}</table>'
    return f'<div style="overflow-x:auto;margin:4px 0">{inside}</div>{more}'


class Markup(str):
    """HTML that a cell holds as it is."""


def _row(tag, cells):
    """HTML of a row of a table."""

    def cell(x):
        number = isinstance(x, (int, float, np.number)) and not isinstance(x, bool)
        long = isinstance(x, str) and len(x) > 60
        style = _CELL.format("right" if number else "left", "normal" if long else "nowrap")
        text = x if isinstance(x, Markup) else escape(short(x) if number else x)
        return f'<{tag} style="{style}">{text}</{tag}>'

    return f"<tr>{''.join(map(cell, cells))}</tr>"


def short(x: Any) -> str:
    """Number as text with few digits."""
    return str(x) if isinstance(x, (int, np.integer)) else f"{float(x):.6g}"


def matrix(name: str, x: Any, most: int = 12) -> str:
    """HTML of a matrix or vector with its name; large ones by shape alone.

    Args:
        name: of the matrix.
        x: its numbers.
        most: rows and columns that are shown.
    """
    x = np.asarray(x)
    shape = "×".join(map(str, x.shape))
    if not 1 <= x.ndim <= 2 or max(x.shape, default=0) > most or not x.size:
        return line(f"{name}: {shape}")
    rows = [[name if k == 0 else "", *row] for k, row in enumerate(np.atleast_2d(x).tolist())]
    return table((), [[cell if isinstance(cell, str) else short(cell) for cell in r] for r in rows])


def eigenvalues(A: Any, *, discrete: bool | None = None) -> str:
    """HTML line of a matrix's eigenvalues, the slowest first; empty for several matrices.

    Args:
        A: the matrix.
        discrete: whether it leads from sample to sample, which decides what is slow; None if
            that is not known: then they are in the order of their real parts.
    """
    A = np.asarray(A)
    if A.ndim != 2 or not A.size or not np.all(np.isfinite(A)):
        return ""
    found = np.linalg.eigvals(A)
    order = np.argsort(-np.abs(found) if discrete else -found.real, kind="stable")
    texts = [
        short(x.real) if abs(x.imag) < 1e-12 * (1 + abs(x)) else f"{x.real:.4g} ± {x.imag:.4g}i"
        for x in found[order]
        if x.imag > -1e-12 * (1 + abs(x))
    ]
    return line(f"eigenvalues: {', '.join(texts[:24])}{', …' if len(texts) > 24 else ''}")


def fold(title: str, inside: str, *, is_open: bool = False) -> str:
    """HTML that unfolds on a click."""
    return f"<details{' open' * is_open}><summary>{escape(title)}</summary>{inside}</details>"


def curve(values: Any, width: int = 120, height: int = 24) -> Markup:
    """SVG drawing of a curve over time."""
    values = np.asarray(values, dtype=float)[:: max(1, len(values) // 200)]
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return Markup("")
    low, high = values.min(), values.max()
    x = np.linspace(1, width - 1, len(values))
    y = height - 2 - (height - 4) * (values - low) / (high - low if high > low else 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return Markup(
        f'<svg width="{width}" height="{height}"><polyline points="{points}" fill="none" '
        f'stroke="#3b6ea5" stroke-width="1.2"/></svg>'
    )


def show(what: Any, height: int = 320) -> str:
    """HTML frame with a 3D view of a model or motion; a line of text if unavailable."""
    viewer = sys.modules["kinetree"].viewer  # a higher layer, reached by the public interface
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of meshes that are missing; kt.view names them
            page = viewer.embedded(what, height=height)
    except Exception as error:  # a table without a picture is better than none
        return line(f"no picture: {str(error)[:200]}")
    if len(page.text) > _LARGE:
        return line(f"no picture: it would add {len(page.text) // 1_000_000} MB; kt.view shows it")
    return page._repr_html_()
