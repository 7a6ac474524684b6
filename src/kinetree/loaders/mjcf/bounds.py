"""What MJCF may ask for: no plugins, no numbers that are none, no millions of copies."""

import math

from kinetree.loaders.report import LIMIT_BODIES
from kinetree.loaders.xml import numbers_in

__all__ = ["LIMIT_ELEMENTS", "check_bounds"]

LIMIT_ELEMENTS = 20_000
"""MuJoCo takes seconds over so many, copies included, and more than linearly."""
LIMIT_DEPTH = 256
_POINTS = {"flexcomp": ("count", "cellcount"), "composite": ("count",)}  # each point a body
_LIMIT_HEIGHTS = 10_000_000
_LIMIT_BUILTIN_MESH = 256


def check_bounds(source) -> dict:
    """LoadError for the first element that asks for too much.

    Returns:
        How many bodies and elements there are, with all copies.
    """
    names = {e.get("name") for e in source.root.iter("*")}
    copies, depth = {None: 1.0}, {None: 0}
    total = {"bodies": 0.0, "elements": 0.0}
    for element in source.root.iter("*"):
        parent = element.getparent()
        copies[element], depth[element] = copies[parent], depth[parent] + 1
        if depth[element] > LIMIT_DEPTH:
            raise source.error(element, f"nested more than {LIMIT_DEPTH} deep")
        if element.tag in ("plugin", "extension"):
            raise source.error(
                element, "plugins are programs, which kinetree does not run; remove it"
            )
        _check_numbers(source, element, names)
        _check_sizes(source, element)
        if element.tag == "replicate":
            copies[element] *= _product(source, element, ("count",))
        size = _size(source, element)
        for kind, limit in (("bodies", LIMIT_BODIES), ("elements", LIMIT_ELEMENTS)):
            total[kind] += copies[element] * size[kind]
            if total[kind] > limit:
                raise source.error(element, f"more than {limit} {kind}, with all copies")
    return total


def _size(source, element):
    """How many bodies and elements come with an element, apart from those inside it."""
    if element.tag == "attach":
        return source.sizes.get(element.get("model"), {"bodies": 1, "elements": 1})
    if element.tag in _POINTS:
        points = _product(source, element, _POINTS[element.tag])
        return {"bodies": points, "elements": points}
    return {"bodies": int(element.tag == "body"), "elements": 1}


def _check_numbers(source, element, names):
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
    if element.tag == "hfield" and _product(source, element, ("nrow", "ncol")) > _LIMIT_HEIGHTS:
        raise source.error(element, f"asks for more than {_LIMIT_HEIGHTS} heights")
    params = _numbers(source, element, "params") if element.tag == "mesh" else ()
    if max(params, default=0) > _LIMIT_BUILTIN_MESH:
        raise source.error(element, f"params of a mesh are at most {_LIMIT_BUILTIN_MESH}")


def _product(source, element, attributes):
    numbers = [x for name in attributes for x in _numbers(source, element, name)]
    return math.prod(max(1.0, x) for x in numbers)


def _numbers(source, element, name):
    try:
        return numbers_in(element.get(name, ""))
    except ValueError as error:
        raise source.error(element, f"attribute {name!r} {error}") from None
