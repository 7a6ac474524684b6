"""Links of a robot that overlap by construction: found, named, and left out of contact.

A parent and its child never touch, as in MuJoCo, unless the parent is fixed to the world. In many
robot files the first link turns inside such a base: no motion could part the two.
"""

from typing import TYPE_CHECKING

import numpy as np

from kinetree.contact.finding.pairs import may_touch, names_of, weld_of_bodies, weld_parents
from kinetree.contact.scene import Scene
from kinetree.errors import LoadError, ModelWarning, warn
from kinetree.joints import Free
from kinetree.model import Model
from kinetree.model.geometry import ContactPair, Geometry, HeightField, Plane
from kinetree.worlds.starts import some

if TYPE_CHECKING:
    from kinetree.worlds.core import WorldCore
    from kinetree.worlds.pieces import Piece

_LEAST = 1e-4  # overlap that counts, in lengths of the smaller shape
_ENDLESS = (Plane, HeightField)


def link_of(model: Model, g: Geometry) -> str:
    """Name of the link that a shape belongs to, or else of its body."""
    return g.link or model.body_names[g.body]


def without_base_overlaps(model: Model, q: np.ndarray, name: str) -> Model:
    """Copy of a model in which the base ignores contact with links that overlap it at ``q``.

    A warning names them. Terrain counts as a base nowhere, and neither do shapes of no link: those
    of a file's world.

    Args:
        model: the robot.
        q: positions, (nq,).
        name: of the robot, for the warning.
    """
    pairs = _base_pairs(model)
    if not pairs:
        return model
    try:
        found = Scene(model, pairs=pairs).contacts(q)
    except LoadError:  # of a mesh: raised again when it is needed
        return model
    shapes, depth = dict(zip(names_of(model).own, model.geometry, strict=True)), {}
    for label, gap in zip(found.names, np.asarray(found.gap), strict=True):
        ends = [shapes[x] for x in label.rpartition(":")[0].split("/")]
        if gap < -_LEAST * min(_span(g) for g in ends):
            links = tuple(link_of(model, g) for g in ends)
            depth[links] = max(-float(gap), depth.get(links, 0.0))
    if not depth:
        return model
    listed = some([f"{a}/{b} by {1e3 * x:.2g} mm" for (a, b), x in depth.items()])
    warn(
        f"{name!r} has links that overlap with its own base: {listed}; no motion of their joints "
        f"could part them, so contact between them is left out. keep_overlaps=True keeps it",
        ModelWarning,
    )
    apart = [ContactPair(a, b, touch=False) for a, b in depth]
    return model.replace(contact_pairs=(*model.contact_pairs, *apart))


def _base_pairs(model):
    """Pairs of base shapes with shapes of links that are jointed to the base."""
    on_base = [
        k
        for k, g in enumerate(model.geometry)
        if g.collision and g.link and not isinstance(g.shape, _ENDLESS)
    ]
    weld = weld_of_bodies(model)
    on_base = [k for k in on_base if weld[model.geometry[k].body] == 0]
    if not on_base:
        return []
    parents, may = weld_parents(model, weld), may_touch(model)
    first = [
        k
        for k, g in enumerate(model.geometry)
        if (i := weld[g.body]) and parents[i] == 0 and not isinstance(model.joint[i], Free)
    ]
    shapes = model.geometry
    return [(shapes[i], shapes[k]) for i in on_base for k in first if may[i, k]]


def _span(g):
    """Approximate size of a shape [m], without reading mesh files."""
    s = g.shape
    for name in ("size", "radii"):
        if hasattr(s, name):
            return float(np.max(getattr(s, name)))
    return float(max(getattr(s, "radius", 0.1), getattr(s, "length", 0.0)))


# --- all links of one robot, in the posture that it has ------------------------------------------


def overlapping_links(world: "WorldCore", margin: float) -> list[tuple[str, str]]:
    """Pairs of links of the same robot that are nearer than ``margin`` [m] at present."""
    model, found = world.model, world.scene.contacts(world._whole.q, margin=margin)
    number = {name: k for k, name in enumerate(names_of(model).own)}
    owner = {i: name for name in world for i in world[name].numbers}
    pieces, names = _pieces_of_shapes(world), {}
    for name, gap in zip(found.names, np.asarray(found.gap), strict=True):
        if not gap < margin - 1e-9:
            continue
        ends = [number[x] for x in name.rpartition(":")[0].split("/")]
        a, b = (model.geometry[k] for k in ends)
        if a.body and b.body:
            same = owner.get(a.body) is not None and owner.get(a.body) == owner.get(b.body)
        else:
            same = pieces[ends[0]] is pieces[ends[1]] and _is_own_base(model, a, b)
        if same:
            names[link_of(model, a), link_of(model, b)] = None
    return list(names)


def _is_own_base(model, a, b):
    """Whether one shape is on the base link of the other's fixed robot."""
    base, other = (a, b) if not a.body else (b, a)
    root = model.support[other.body][0] if other.body else 0
    fixed = root and not isinstance(model.joint[root], Free)
    return bool(fixed and base.link and not isinstance(base.shape, _ENDLESS))


def _pieces_of_shapes(world) -> "list[Piece]":
    """``Piece`` of every shape of the world's model, in order."""
    return [piece for piece in world._pieces for _ in range(piece.shape_count)]
