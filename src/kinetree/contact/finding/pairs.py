"""Pairs of shapes that may touch, and their coefficients of friction and restitution."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.joints import Fixed
from kinetree.model.geometry import Geometry, HeightField, Plane
from kinetree.spelling import did_you_mean


class Pair(NamedTuple):
    """Two shapes that may touch, the one on the lower body first.

    Attributes:
        first: the ``Geometry`` of the predecessor; in ``Scene(pairs=...)`` also the name of a
            shape or body.
        second: that of the successor.
        friction: coefficient of friction, or None: that of the scene.
        restitution: coefficient of restitution, or None: that of the scene.
    """

    first: Any
    second: Any
    friction: float | None = None
    restitution: float | None = None


def pairs_of(model, pairs, ignore=()):
    """The pairs of a scene, without those to leave out."""
    if pairs is None or isinstance(pairs, str):
        if pairs not in (None, "base"):
            raise ModelError(f"pairs must be None, 'base' or a list of pairs, got {pairs!r}")
        found = all_pairs(model, with_base_only=pairs == "base")
    else:
        found = named_pairs(model, pairs)
    left_out = {(id(p.first), id(p.second)) for p in named_pairs(model, ignore)}
    return tuple(p for p in found if (id(p.first), id(p.second)) not in left_out)


def all_pairs(model, with_base_only=False):
    """All pairs that can touch, in the order of ``model.geometry``.

    Left out, as in MuJoCo: shapes of one body, or of bodies welded together; of a body and its
    parent, unless that is the base; and here also of bodies that a loop joint connects.
    """
    touching = [g for g in model.geometry if g.collision]
    weld, apart = _welded(model), _jointed(model)
    pairs = []
    for k, a in enumerate(touching):
        for b in touching[k + 1 :]:
            i, j = sorted((weld[a.body], weld[b.body]))
            unbounded = all(isinstance(g.shape, (HeightField, Plane)) for g in (a, b))
            if i == j or (i, j) in apart or unbounded or (with_base_only and i != 0):
                continue
            pairs.append(_ordered(a, b))
    return pairs


def _welded(model):
    """For every body, the first of those that it is welded to."""
    weld = [0] * (model.body_count + 1)
    for i in range(1, model.body_count + 1):
        weld[i] = weld[model.parent[i]] if isinstance(model.joint[i], Fixed) else i
    return weld


def _jointed(model):
    weld = _welded(model)
    links = [(model.parent[i], i) for i in range(1, model.body_count + 1)]
    links += [(loop.predecessor, loop.successor) for loop in model.loops]
    ends = {tuple(sorted((weld[i], weld[j]))) for i, j in links}
    return {(i, j) for i, j in ends if i != 0}


def _ordered(a, b, friction=None, restitution=None):
    a, b = (a, b) if a.body <= b.body else (b, a)
    return Pair(a, b, friction, restitution)


def named_pairs(model, given):
    """Pairs given as ``Pair`` or as pairs of names, of shapes or of bodies."""
    pairs = []
    for item in given:
        if not isinstance(item, (tuple, list)) or not 2 <= len(item) <= 4:
            raise ModelError(
                f"a pair must be a Pair or two names, of shapes or bodies, got {item!r}"
            )
        wanted = Pair(*item)
        for a in _found(model, wanted.first):
            for b in _found(model, wanted.second):
                if a.body == b.body:
                    raise ModelError(
                        f"shapes {pair_name(model, a, b)} are on the same body "
                        f"{model.body_names[a.body]!r}: they cannot move against each other"
                    )
                pairs.append(_ordered(a, b, wanted.friction, wanted.restitution))
    return pairs


def _found(model, what):
    """The shapes that a name of a shape or body, or a ``Geometry``, stands for."""
    if isinstance(what, Geometry):
        return [what]
    found = [g for g in model.geometry if g.name == what and what]
    if not found and what in model.body_names:
        body = model.body_names.index(what)
        found = [g for g in model.geometry if g.body == body and g.collision]
        if not found:
            raise ModelError(f"body {what!r} has no shape that can touch others")
    if not found:
        known = [*(g.name for g in model.geometry if g.name), *model.body_names]
        raise UnknownNameError(
            f"model {model.name!r} has no shape or body {what!r}; {did_you_mean(str(what), known)}"
        )
    return found


def pair_name(model, a, b):
    """Name of a pair, for names of contacts and messages."""
    return f"{_name(model, a)}/{_name(model, b)}"


def _name(model, g):
    if g.name:
        return g.name
    body = [other for other in model.geometry if other.body == g.body]
    name = model.body_names[g.body]
    return name if len(body) == 1 else f"{name}[{body.index(g)}]"


def coefficients(pairs, field, value, names):
    """The coefficient of every pair: its own, or that of the scene, (n,)."""
    values = []
    for pair, name in zip(pairs, names, strict=True):
        own = getattr(pair, field)
        x: Any = value(*pair[:2]) if own is None and callable(value) else value
        x = x if own is None else own
        values.append(float(x))
        most = 1 if field == "restitution" else np.finfo(float).max
        if not 0 <= values[-1] <= most:
            limits = "from 0 to 1" if field == "restitution" else "zero or positive, and finite"
            raise ModelError(f"{field} of {name!r} must be {limits}, got {x!r}")
    return np.array(values)


# --- Coefficients given by the caller ------------------------------------------------------------


def coefficients_of(given, own, n, name, most=np.inf):
    """Coefficients of ``n`` contacts, (n,).

    Args:
        given: a number, or one for each; None: those of the contacts.
        own: those of the contacts; None: zero.
        n: number of contacts.
        name: what to call them.
        most: the largest that there may be.
    """
    given = (0.0 if own is None else own) if given is None else given
    values = np.asarray(given, dtype=float)
    if values.shape not in ((), (n,)) or not np.all((values >= 0) & (values <= most)):
        bounds = "from 0 to 1" if most == 1 else "finite, not negative"
        bounds = "not negative" if most == np.inf else bounds
        raise ShapeError(f"{name} must be a number or {n} numbers, {bounds}; got {given!r}")
    return np.array(np.broadcast_to(values, (n,)))
