"""Tables of a scene: its shapes, and the pairs that the rules of who may touch do not cover."""

from typing import NamedTuple

import numpy as np

from kinetree.contact.collision.shapes import shapes_of
from kinetree.contact.collision.tables import (
    ALL,
    LEFT_OUT,
    LISTED,
    MAY_TOUCH,
    WITH_BASE,
    Shapes,
    Special,
)
from kinetree.contact.finding.pairs import (
    FRICTION,
    RESTITUTION,
    ROLLING,
    TORSION,
    chosen_pairs,
    named_pairs,
    names_of,
    weld_of_bodies,
    weld_parents,
)
from kinetree.model.geometry import Surface

_WORD = 2**32


class ShapeTables(NamedTuple):
    """The tables of a scene."""

    shapes: Shapes
    """``Shapes``."""
    special: Special
    """``Special``."""
    numbers: np.ndarray
    """Of the shapes in ``model.geometry``, (n,)."""


def shape_tables(scene) -> ShapeTables:
    """Shape tables of a ``Scene``, its pairs with own rules, and the shapes' numbers."""
    model, geometry = scene.model, scene.model.geometry
    if scene.rule not in (None, "base") or any(map(callable, scene.given.values())):
        at = {id(g): k for k, g in enumerate(geometry)}
        pairs = {_key(at[id(p.first)], at[id(p.second)]): k for k, p in enumerate(scene.pairs)}
        used = {k for pair in pairs for k in pair}
    else:
        pairs = None
        used = {k for k, g in enumerate(geometry) if g.collision}
        used |= {k for pair in chosen_pairs(model) for k in pair}
    numbers = np.array(sorted(used), dtype=np.int64)
    weld = weld_of_bodies(model)
    chosen = [geometry[k] for k in numbers]
    shapes = shapes_of(chosen, weld, weld_parents(model, weld), scene.given)
    return ShapeTables(shapes, _special(scene, numbers, pairs), numbers)


def _key(i, j):
    """Unordered pair (i, j) as a tuple with the smaller number first."""
    return (i, j) if i < j else (j, i)


# --- Special pairs -------------------------------------------------------------------------------


def _special(scene, numbers, pairs):
    """``Special`` table of the pairs with individual rules, by numbers of shapes in the tables.

    ``pairs`` are all that may touch, where they are listed; else None.
    """
    model, rows = scene.model, {}
    if pairs is not None:
        for pair, k in pairs.items():
            own = scene.friction[k], scene.restitution[k]
            rows[pair] = _row(scene.pairs[k].surface or Surface(), *own)
    else:
        number = {id(g): k for k, g in enumerate(model.geometry)}
        ignored = named_pairs(model, scene.ignore) if scene.ignore else ()
        rows |= dict.fromkeys(_left_out(model), _AS_SHAPES)
        for pair, surface in chosen_pairs(model).items():
            own = [scene.given[name] for name in ("friction", "restitution")]
            rows[pair] = (MAY_TOUCH, *_AS_SHAPES[1:]) if surface is None else _row(surface, *own)
        for p in ignored:
            rows[_key(number[id(p.first)], number[id(p.second)])] = _AS_SHAPES
    number = {k: i for i, k in enumerate(numbers.tolist())}
    keyed = [
        (number[i] * _WORD + number[j], *row)
        for (i, j), row in rows.items()
        if i in number and j in number
    ]
    columns = list(zip(*sorted(keyed, key=lambda row: row[0]), strict=True)) or [()] * 8
    key, allowed, condim = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 6))
    friction = np.array(columns[2:5], dtype=float).T.reshape(len(key), 3)
    margin = np.array(columns[7], dtype=float)
    rule = LISTED if pairs is not None else WITH_BASE if scene.rule == "base" else ALL
    return Special(
        count=len(key),
        rule=rule,
        reach=float(np.nanmax(margin, initial=0.0)),
        key=key,
        allowed=allowed,
        friction=np.ascontiguousarray(friction),
        restitution=np.array(columns[5], dtype=float),
        condim=condim,
        margin=margin,
    )


_AS_SHAPES = (LEFT_OUT, np.nan, np.nan, np.nan, np.nan, 0, np.nan)


def _row(surface, friction, restitution):
    """Whether a pair touches, friction (3), restitution, condim and margin of its own surface."""
    if friction is None:
        usual = FRICTION if surface.friction is None else surface.friction
        friction = 0.0 if surface.condim == 1 else usual
    if restitution is None:
        restitution = RESTITUTION if surface.restitution is None else surface.restitution
    torsion = TORSION if surface.torsion is None else surface.torsion
    rolling = ROLLING if surface.rolling is None else surface.rolling
    condim = max(surface.condim, 3)  # without friction it counts as 1 in any case
    return MAY_TOUCH, friction, torsion, rolling, restitution, condim, surface.margin


def _left_out(model):
    """Pairs of shapes that loops and the model's ``contact_pairs`` exclude from contact."""
    by_weld: dict[int, list[int]] = {}
    weld = weld_of_bodies(model) if model.loops else []
    for k, g in enumerate(model.geometry if model.loops else ()):
        by_weld.setdefault(weld[g.body], []).append(k)
    groups = [(weld[loop.predecessor], weld[loop.successor]) for loop in model.loops]
    groups = [(by_weld.get(i, ()), by_weld.get(j, ())) for i, j in groups if i and j]
    apart = [p for p in model.contact_pairs if not p.touch]
    of_link = names_of(model).of_link if apart else None
    groups += [(of_link(p.first), of_link(p.second)) for p in apart if of_link is not None]
    return {_key(i, j) for ones, others in groups for i in ones for j in others if i != j}
