"""MJCF as MuJoCo gets it: included files put in, other files read, limits checked.

MuJoCo gets one text and the bytes of the files that it refers to, and opens none by itself. Every
line of that text comes from a known element, so that what MuJoCo says about it can be said about
the user's files.
"""

import math
import os
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

from kinetree.errors import LoadError
from kinetree.loaders.mjcf.left_out import drop_keyframes, leave_out
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import LIMIT_BODIES, Effect, Notice, label, short
from kinetree.loaders.xml import LIMIT_BYTES, numbers_in, parse
from kinetree.model.sensors import KINDS

LIMIT_FILES = 1000
LIMIT_ASSET_BYTES = 512 * 2**20
_SPECIAL = re.compile(r'[&<>"\n\r\t]')
_PLACE = re.compile(r"(?:Element (?:name )?'[^']*'(?:, id -?\d+)?, )?line (\d+)$")


@dataclass
class MjcfSource:
    """MJCF with all it includes."""

    path: str
    """The main file, as messages shall name it."""
    root: Any
    """The elements, included ones in their place."""
    files: dict = field(default_factory=dict)
    """The included file that an MJCF element comes from; none for those of the main file."""
    names: dict = field(default_factory=dict)
    """Attributes that differ in the text for MuJoCo, by element."""
    assets: dict = field(default_factory=dict)
    """Content of meshes and so on that the text refers to, by their name in the text."""
    models: dict = field(default_factory=dict)
    """Content of MJCF files that it attaches."""
    paths: dict = field(default_factory=dict)
    """Where all these are, by the same names."""
    references: dict = field(default_factory=dict)
    """Where the origin of a mesh is in its file, and how it is turned there."""
    attached: list = field(default_factory=list)
    """These MJCF files, with what they include and attach in turn."""
    sizes: dict = field(default_factory=dict)
    """How much each of them contains, by the name of the model."""
    total: dict = field(default_factory=dict)
    """How many bodies and elements it adds where it is attached, with all copies."""
    notices: list[Notice] = field(default_factory=list)
    """Of what was taken out."""
    states_lost: bool = False
    """Whether variables went with it."""
    text: str = ""
    """What to give to MuJoCo."""
    lines: list = field(default_factory=list)
    """The element on each line of the text."""

    def place(self, element):
        """File and line of an MJCF element, as text."""
        return self.files.get(element, self.path), element.sourceline

    def error(self, element, message) -> LoadError:
        """LoadError with file, line and element."""
        file, line = self.place(element)
        return LoadError(f"{file}:{line}: {label(element)}: {message}")

    def note(self, element, why: str, effect: Effect) -> str:
        """Add a notice about an MJCF element, with the reason and effect."""
        self.notices.append(Notice(*self.place(element), label(element), why, effect))
        return label(element)

    def drop(self, element, why: str, effect: Effect) -> str:
        """Remove an MJCF element, with a notice of the reason and effect."""
        what = self.note(element, why, effect)
        element.getparent().remove(element)
        return what

    def leave_out(self, section: str) -> bool:
        """Remove sections from the MJCF text; whether there were any."""
        found = self.root.findall(section)
        for element in found:
            self.root.remove(element)
        self.text, self.lines = text_of(self.root, self.names)
        return bool(found)

    def refusal(self, message: str) -> LoadError:
        """MuJoCo's error message with places translated to the user's files."""
        message = " ".join(message.split()).replace("than mjMINVAL", "than zero")
        found = _PLACE.search(message)
        line = int(found.group(1)) if found else 0
        taken = [n for part in (self, *self.attached) for n in part.notices]
        left_out = [f"{notice.what} in line {notice.line}" for notice in taken]
        rest = f" (left out before: {', '.join(left_out[:3])})" if left_out else ""
        if found and 1 <= line <= len(self.lines):
            what = message[: found.start()].rstrip(" ,")
            return self.error(self.lines[line - 1], f"MuJoCo: {what}{rest}")
        return LoadError(f"{self.path}: MuJoCo: {message}{rest}")


@dataclass
class _Budget:
    files: int = LIMIT_FILES
    size: int = LIMIT_ASSET_BYTES
    open: list = field(default_factory=list)


def prepare(source: bytes, path: str, folders, budget=None) -> MjcfSource:
    """MJCF source with included files and all files it refers to, within limits.

    Args:
        source: content of the main file.
        path: what to call it in messages.
        folders: where files may be.
        budget: what is left of the limits, for models within models.
    """
    root = parse(source, path)
    if root.tag != "mujoco":
        included = root.tag == "mujocoinclude"
        raise LoadError(
            f"{path}:{root.sourceline}: the root element of MJCF is <mujoco>, got <{root.tag}>"
            + (", a file that others include; load one of those" if included else "")
        )
    result, budget = MjcfSource(path, root), budget or _Budget()
    _include(result, folders, budget)
    _rename(root)
    leave_out(result)
    _fetch(result, folders, budget)
    if any(inner.states_lost for inner in result.attached):
        drop_keyframes(result)
    result.total = check_bounds(result)
    result.text, result.lines = text_of(root, result.names)
    return result


def _include(result, folders, budget):
    """Replace ``<include>`` elements by the content of their files, repeatedly."""
    seen = set()
    while (element := result.root.find(".//include")) is not None:
        path = _resolve(result, element, folders, (element.get("file") or "").replace("\\", "/"))
        if path in seen:
            raise result.error(element, f"{short(path)} is included twice; MJCF allows it once")
        seen.add(path)
        inner = parse(_content(result, element, path, budget, LIMIT_BYTES), path)
        children = inner.findall("*")
        if not children:
            raise result.error(element, f"{short(path)} has nothing to include")
        result.files |= dict.fromkeys(inner.iter("*"), path)
        if len(result.files) > LIMIT_ELEMENTS:
            raise result.error(element, f"more than {LIMIT_ELEMENTS} XML elements are included")
        for child in children:
            element.addprevious(child)
        element.getparent().remove(element)


def _rename(root):
    """Rename the flag ``passive`` of older MuJoCo versions."""
    for flag in root.iter("flag"):
        if (value := flag.attrib.pop("passive", None)) is not None:
            flag.attrib.update({name: flag.get(name, value) for name in ("spring", "damper")})


def _fetch(result, folders, budget):
    """Read meshes and other assets; their names in the text become unique."""
    compilers = list(result.root.iter("compiler"))

    def setting(name):
        return next((c.get(name) for c in reversed(compilers) if c.get(name) is not None), None)

    folder = setting("meshdir")
    folder = setting("assetdir") or "" if folder is None else folder
    for element in result.root.iter("mesh", "hfield", "model"):
        name = (element.get("file") or "").replace("\\", "/")
        if not name:
            continue
        base = posixpath.basename(name)
        name = base if setting("strippath") == "true" else name
        is_model = element.tag == "model"
        path = _resolve(result, element, folders, name, "" if is_model else folder)
        limit = LIMIT_BYTES if is_model else LIMIT_ASSET_BYTES
        content = _content(result, element, path, budget, limit)
        key = f"{budget.files}_{re.sub('[^A-Za-z0-9.]', '_', base)}"
        result.names[element], result.paths[key] = {"file": key}, path
        if is_model:
            if path in budget.open:
                raise result.error(element, f"{short(path)} attaches itself")
            budget.open.append(path)
            inner = prepare(content, path, Folders(path, folders.allowed), budget)
            budget.open.pop()
            result.models |= {**inner.models, key: inner.text.encode()}
            result.assets |= inner.assets
            result.paths |= inner.paths
            result.references |= inner.references
            result.attached += [inner, *inner.attached]
            result.sizes[element.get("name") or inner.root.get("model")] = inner.total
        else:
            result.assets[key] = content
            if element.get("refpos") is not None or element.get("refquat") is not None:
                position = _numbers(result, element, "refpos") or (0.0, 0.0, 0.0)
                result.references[key] = position, _numbers(result, element, "refquat")
            if element.get("name") is None:
                result.names[element]["name"] = posixpath.splitext(base)[0]


def _resolve(result, element, folders, name, inside=""):
    """Path of a file by its name, beside the main file or the including one.

    ``inside`` is the folder that ``<compiler>`` gives for meshes.
    """
    names, including = [posixpath.join(inside, name)], result.files.get(element)
    if including is not None and name and "://" not in name:
        here = os.path.dirname(including)
        names += [os.path.join(here, n) for n in dict.fromkeys((name, names[0]))]
    errors = []
    for name in names:
        try:
            return folders.resolve(name)
        except LoadError as error:
            errors.append(str(error))
    nor = "" if len(errors) == 1 else ", nor is it beside the file that names it here"
    raise result.error(element, errors[0] + nor)


def _content(result, element, path, budget, limit):
    """Content of a file within the remaining budget of bytes."""
    budget.files -= 1
    if budget.files < 0:
        raise result.error(element, f"more than {LIMIT_FILES} files belong to this model")
    try:
        size = os.path.getsize(path)
        if size > min(limit, budget.size):
            raise result.error(element, f"{short(path)} has {size} bytes, which is too much")
        with open(path, "rb") as file:
            content = file.read(size)
    except OSError as error:
        raise result.error(element, f"{short(path)} cannot be read: {error.strerror}") from None
    budget.size -= len(content)
    return content


# --- Limits: no NaN, no millions of copies -------------------------------------------------------

LIMIT_ELEMENTS = 30_000
"""Copies included; MuJoCo takes seconds for them, growing faster than linearly."""
LIMIT_DEPTH = 256
_LIMIT_HEIGHTS = 10_000_000
_LIMIT_BUILTIN_MESH = 256


_ONCE = ("asset", "default", "visual", "statistic", "option", "compiler", "keyframe", "custom")


def check_bounds(source) -> dict:
    """Raise LoadError for the first element that is not allowed or too large.

    Returns:
        How many bodies and elements a model has that attaches it, with all copies.
    """
    names = {e.get("name") for e in source.root.iter("*")}
    copies, depth, named = {None: 1.0}, {None: 0}, {}
    total = {"bodies": 0.0, "elements": 0.0}
    for element in source.root.iter("*"):
        parent = element.getparent()
        copies[element], depth[element] = copies[parent], depth[parent] + 1
        if depth[element] > LIMIT_DEPTH:
            raise source.error(element, f"nested more than {LIMIT_DEPTH} deep")
        _check_numbers(source, element, names)
        _check_sizes(source, element)
        if element.tag == "replicate":
            copies[element] *= _product(source, element, ("count",))
        name = element.get("name")
        named[name] = max(named.get(name, 1.0), copies[element])
        size = _size(source, element)
        for kind, limit in (("bodies", LIMIT_BODIES), ("elements", LIMIT_ELEMENTS)):
            total[kind] += copies[element] * size[kind]
            if total[kind] > limit:
                raise source.error(element, f"more than {limit} {kind}, with all copies")
    for sensor in source.root.iterfind("sensor/*"):  # as often as what it is of
        count = max((named.get(x, 1.0) for x in sensor.attrib.values()), default=1.0)
        total["elements"] += count - 1
        if total["elements"] > LIMIT_ELEMENTS:
            raise source.error(sensor, f"more than {LIMIT_ELEMENTS} elements, with all copies")
    sections = [section for section in source.root.findall("*") if section.tag in _ONCE]
    once = sum(1 for section in sections for _ in section.iter("*"))
    return total | {"elements": total["elements"] - once}


def _size(source, element):
    """Number of bodies and elements that an MJCF element adds itself."""
    if element.tag == "attach":
        return source.sizes.get(element.get("model"), {"bodies": 1, "elements": 1})
    return {"bodies": int(element.tag == "body"), "elements": 1}


def _check_numbers(source, element, names):
    """Raise LoadError if an attribute of an MJCF element contains NaN."""
    for name, text in element.attrib.items():
        if "nan" not in text.lower() or text in names:
            continue
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            continue  # a word, such as a name
        if any(math.isnan(value) for value in values):
            raise source.error(element, f"attribute {name!r} must hold numbers, got {text[:60]!r}")


def _check_sizes(source, element):
    """Raise LoadError if MuJoCo would build something too large for an MJCF element."""
    if element.tag == "hfield" and _product(source, element, ("nrow", "ncol")) > _LIMIT_HEIGHTS:
        raise source.error(element, f"has more than {_LIMIT_HEIGHTS} heights")
    params = _numbers(source, element, "params") if element.tag == "mesh" else ()
    if max(params, default=0) > _LIMIT_BUILTIN_MESH:
        raise source.error(element, f"params of a mesh are at most {_LIMIT_BUILTIN_MESH}")


def _product(source, element, attributes):
    """Product of all numbers in some attributes of an MJCF element."""
    numbers = [x for name in attributes for x in _numbers(source, element, name)]
    return math.prod(max(1.0, x) for x in numbers)


def _numbers(source, element, name):
    """Numbers of an attribute of an MJCF element."""
    try:
        return numbers_in(element.get(name, ""))
    except ValueError as error:
        raise source.error(element, f"attribute {name!r} {error}") from None


# --- The text for MuJoCo: one tag on each line ---------------------------------------------------
# Left out are pictures, buffers and settings of the simulator; some of these open files or take
# memory or time without bound, as do sensors of other kinds than ours: one number for each pixel.

_SECTIONS = {"visual", "statistic", "size", "custom"}
_ELEMENTS = {"texture", "skin", "layer", "light"}
_OF_CAMERAS = {
    "name", "class", "mode", "target", "pos", "quat", "axisangle", "xyaxes", "zaxis", "euler",
    "fovy", "resolution",
}  # fmt: skip
_ATTRIBUTES = {"user", "nsample", "interp", "delay", "interval"}
_ATTRIBUTES_OF = {
    "material": {"texture"},
    "compiler": {
        "meshdir",
        "texturedir",
        "assetdir",
        "strippath",
        "convexhull",
        "exactmeshinertia",
    },
    "option": {"apirate", "mpr_tolerance", "mpr_iterations", "collision"},  # of older versions
    "flag": {"sensornoise"},
    "lengthrange": {"mode", "timestep", "inttotal", "interval"},  # which may take any time
    "key": {"time", "mpos", "mquat", "plastic"},
}
# MuJoCo simulates the model to find ranges of lengths, for 10 s at most, which muscles alone need.
_LAST = '<compiler><lengthrange mode="none"/></compiler>'


def text_of(root, changes):
    """MJCF text and the element on each line, with changed attributes by element."""
    lines, elements = [], []
    waiting = [(root, False)]
    while waiting:
        element, closing = waiting.pop()
        if closing:
            lines.append(f"</{element.tag}>")
        else:
            children = [e for e in element.findall("*") if not _left_out(e, root)]
            end = ">" if children or element is root else "/>"
            lines.append(f"<{element.tag}{_attributes(element, changes)}{end}")
            if end == ">":
                waiting.append((element, True))
                waiting += [(child, False) for child in reversed(children)]
        elements.append(element)
    if not _has_muscles(root):
        lines.insert(-1, _LAST)
        elements.insert(-1, root)
    return "\n".join(lines) + "\n", elements


def _has_muscles(root):
    """Whether the file may contain muscles, whose force depends on length ranges."""
    return any(
        e.tag == "muscle" or "muscle" in (e.get("gaintype"), e.get("biastype"))
        for e in root.iter("*")
    )


def _left_out(element, root):
    """Whether an MJCF element is removed before MuJoCo reads the file."""
    tag, parent = element.tag, element.getparent()
    if parent is not None and parent.tag == "sensor":
        return tag not in KINDS or element.get("camera") is not None
    return ":" in tag or tag in _ELEMENTS or (tag in _SECTIONS and element.getparent() is root)


def _attributes(element, changes):
    """Attributes of an MJCF element for MuJoCo, with changes."""
    left_out = _ATTRIBUTES | _ATTRIBUTES_OF.get(element.tag, set())
    if element.tag == "camera":
        left_out = {*element.attrib} - _OF_CAMERAS
    kept = {k: v for k, v in element.attrib.items() if k not in left_out and "}" not in k}
    kept |= changes.get(element, {})
    return "".join(f" {name}={_quote(value)}" for name, value in kept.items())


def _quote(value):
    """XML attribute value in quotes."""
    return quoteattr(value) if _SPECIAL.search(value) else f'"{value}"'
