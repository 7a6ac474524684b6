"""docs/elements.md: every element and attribute of MJCF, URDF and SDF with what becomes of it.

MJCF: MuJoCo's own schema is walked, and the tables of the reader are asked. URDF and SDF: a
document with everything in it is read, and the notices of the reader are taken.
"""

import re
from pathlib import Path
from typing import NamedTuple

import mujoco
from lxml import etree
from support.complete_files import SDF, URDF

from kinetree.loaders.load import Options
from kinetree.loaders.mjcf import reader
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import Report, tag_of
from kinetree.loaders.sdf import read_sdf
from kinetree.loaders.urdf import read_urdf

PAGE = Path(__file__).parents[2] / "docs" / "elements.md"
HEAD = """# Elements of robot files

Every element and attribute of MJCF, URDF and SDF, and what becomes of it when a file is loaded.
*Means* lists what the model represents; of the rest, *notice* says why it is left out, and in
brackets what is different without it: motion, contact, control, a setting of a simulator, or
pictures. Notices are in `model.report` ([loading](loading.md#nothing-is-dropped-silently)). Single
values of an attribute that has a meaning may still be noted or refused, with file and line;
[formats](formats.md) explains the mapping. `python docs/make_elements.py` writes this page from the
readers, and a test checks that it is current.
"""


class Row(NamedTuple):
    """An element: its path, the attributes that mean something, and reasons for the others."""

    path: str
    means: list[str]
    notices: dict[str, list[str]]  # attributes by reason; none: the element


# --- MJCF ----------------------------------------------------------------------------------------

_ELEMENT = re.compile(r"^( *)(?:\(world\))?([\w-]+) \(.\)\s*(.*)$")  # (world)body is one
_INDENT = 3
_LEFT_OUT = {
    **dict.fromkeys(
        ("flexcomp", "composite", "flex", "edge", "elasticity", "pin", "skin"),
        ("flexible bodies are left out", "motion"),
    ),
    **dict.fromkeys(
        ("plugin", "instance", "config", "extension"), ("no plugins are run", "motion")
    ),
}  # taken out by left_out.py before the tables are asked


def schema():
    """Path, section and attributes of every element of MuJoCo's schema."""
    stack, found = [], []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        match = _ELEMENT.match(line)
        if match:
            depth = len(match[1]) // _INDENT
            stack = [*stack[:depth], match[2]]
            found.append((tuple(stack), match[3].split()))
        elif line.strip():
            found[-1][1].extend(line.split())
    return found


def mjcf_rows():
    for path, attributes in schema():
        tag = path[-1]
        section = next((name for name in path[1:-1] if name in reader.SECTIONS), "")
        known = reader.represented_attributes(tag, section)
        lost = next((_LEFT_OUT[t] for t in path if t in _LEFT_OUT), reader.left_out_by_name(tag))
        above = [t for t in path[1:-1] if reader.represented_attributes(t, "") is None]
        if lost is not None or known is None or above:
            outer = next((t for t in above if t not in reader.SECTIONS), tag)
            why = lost or reader.why_left_out(outer, section)
            yield Row("/".join(path[1:] or path), [], {_reason(*why): []})
            continue
        notices: dict[str, list[str]] = {}
        noted = reader.noted_by_name(tag)
        means = [name for name in attributes if name in known and name not in noted]
        for name in attributes:
            if name not in means:
                why = noted.get(name) or reader.why_attribute(name, tag, section)
                notices.setdefault(_reason(*why), []).append(name)
        yield Row("/".join(path[1:] or path), means, notices)


def _reason(why, effect):
    return f"{why} [{effect}]"


# --- URDF and SDF --------------------------------------------------------------------------------


def read_rows(read, text):
    """Rows of a document in which every element is on a line of its own."""
    report = Report("file")
    read(text.encode(), report, Folders(None), Options(lump=True))
    root = etree.fromstring(text.encode())
    by_line: dict[int, list] = {}
    for notice in report.notices:
        by_line.setdefault(notice.line or 0, []).append(notice)
    rows: dict[str, Row] = {}
    lost: set = set()
    for element in root.iter("*"):
        path = "/".join([tag_of(e) for e in (element, *element.iterancestors())][::-1][1:])
        if any(e in lost for e in element.iterancestors()):
            continue
        row = rows.setdefault(path or tag_of(root), Row(path or tag_of(root), [], {}))
        attributes = dict.fromkeys(element.attrib)
        for notice in by_line.get(element.sourceline, ()):
            named = re.match(r"attributes? (.*) of <", notice.what)
            reason = _reason(notice.why, notice.effect)
            if named:
                names = re.findall(r"'([^']*)'", named[1])
                row.notices.setdefault(reason, []).extend(n for n in names if n in attributes)
                attributes = {n: None for n in attributes if n not in names}
            elif notice.what.startswith("<"):
                row.notices.setdefault(reason, [])
                lost.add(element)
        if element not in lost:
            row.means.extend(n for n in attributes if n not in row.means)
    return list(rows.values())


# --- The page ------------------------------------------------------------------------------------


def section_of(title, rows):
    lines = [f"## {title}", "", "| element | means | notice |", "|---|---|---|"]
    for row in rows:
        means = ", ".join(f"`{name}`" for name in row.means)
        whole = any(not names for names in row.notices.values())
        notices = "; ".join(
            (", ".join(f"`{n}`" for n in names) + ": " if names else "") + _plain(why)
            for why, names in row.notices.items()
        )
        empty = "" if whole else "yes"
        lines.append(f"| `{row.path}` | {means or empty} | {notices} |")
    return "\n".join(lines) + "\n"


def _plain(text):
    return text.replace("|", "\\|").replace("<", "`<").replace(">", ">`")


def sections():
    """The sections of the page by title."""
    return {
        f"MJCF, by the schema of MuJoCo {mujoco.__version__}": mjcf_rows(),
        "URDF": read_rows(read_urdf, URDF),
        "SDF 1.11": read_rows(read_sdf, SDF),
    }


def whole():
    """The page."""
    return "\n".join([HEAD, *(section_of(title, rows) for title, rows in sections().items())])
