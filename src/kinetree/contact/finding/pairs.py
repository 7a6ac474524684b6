"""Pairs of shapes that may touch, and their coefficients of friction and restitution."""

import re
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.collision.shapes import masks, placed_table
from kinetree.contact.collision.support import round_of, support
from kinetree.contact.finding.shapes import as_hull, place_shapes
from kinetree.errors import LoadError, ModelError, ModelWarning, ShapeError, UnknownNameError, warn
from kinetree.joints import Fixed
from kinetree.model.arrays import as_configuration
from kinetree.model.geometry import Geometry, HeightField, Plane, Surface, joined_surface
from kinetree.model.memo import remember
from kinetree.model.names import ShapeNames
from kinetree.model.parts import Posture
from kinetree.spelling import did_you_mean

FRICTION, RESTITUTION, TORSION, ROLLING = 0.8, 0.0, 0.005, 0.0001
"""Coefficients where neither the scene nor the surfaces have any; the last two as in MuJoCo [m]."""


class Pair(NamedTuple):
    """Two shapes that may touch, the one on the body with the lower number first.

    Attributes:
        first: the ``Geometry`` of the predecessor; in ``Scene(pairs=...)`` also the name of a
            shape, link, frame or body.
        second: that of the successor.
        friction: coefficient of friction, or None: that of the scene.
        restitution: coefficient of restitution, or None: that of the scene.
        surface: combined surface properties of the two, if any are set.
    """

    first: Any
    second: Any
    friction: float | None = None
    restitution: float | None = None
    surface: Surface | None = None

    @property
    def margin(self) -> float:
        """Distance at which the two shapes of the pair are kept apart [m]."""
        return 0.0 if self.surface is None else self.surface.margin


def names_of(model) -> ShapeNames:
    """``ShapeNames`` of a model, made once."""
    return remember(model, ("shape_names",), lambda: ShapeNames(model))


def pairs_of(model, pairs, ignore=(), posture=None):
    """Pairs of shapes of a scene by its rule or list, without the ignored ones."""
    if pairs is None or isinstance(pairs, str):
        if pairs not in (None, "base", "feet"):
            raise ModelError(
                f"pairs must be None, 'base', 'feet' or a list of pairs, got {pairs!r}"
            )
        found = all_pairs(model, with_base_only=pairs is not None)
        if pairs == "feet":
            found = _feet(model, found, posture)
    else:
        found = named_pairs(model, pairs)
    left_out = {(id(p.first), id(p.second)) for p in named_pairs(model, ignore)} if ignore else ()
    return tuple(p for p in found if (id(p.first), id(p.second)) not in left_out)


def all_pairs(model, with_base_only=False):
    """All pairs of a model's shapes that may touch, in the order of ``model.geometry``."""
    may, chosen = may_touch(model), chosen_pairs(model)
    shapes = model.geometry
    for i, j in chosen:
        may[i, j] = True
    if with_base_only:
        on_base = np.array(weld_of_bodies(model))[[g.body for g in shapes]] == 0
        may &= on_base[:, None] | on_base
    pairs = np.argwhere(np.triu(may, 1)).tolist() if len(shapes) else []
    joined = _Joined()
    return [_order(shapes[i], shapes[j], joined, chosen.get((i, j))) for i, j in pairs]


def may_touch(model, *, parents=False):
    """Symmetric matrix over ``model.geometry``: whether two shapes touch by default.

    Left out, as in MuJoCo: shapes whose masks do not fit; of one body, or of bodies welded
    together; with ``parents`` False, of a body and its parent, unless that is the base; those that
    ``contact_pairs`` of the model exclude. Here also those of bodies that a loop joint connects.
    """
    shapes, weld = model.geometry, weld_of_bodies(model)
    if not shapes:
        return np.zeros((0, 0), dtype=bool)
    contype, conaffinity = masks(shapes)
    body = np.array([weld[g.body] for g in shapes])
    endless = np.array([isinstance(g.shape, (HeightField, Plane)) for g in shapes])
    may = (contype[:, None] & conaffinity) | (conaffinity[:, None] & contype) != 0
    may &= (body[:, None] != body) & ~(endless[:, None] & endless)
    if not parents:
        parent = np.array(weld_parents(model, weld))[body]
        moving = (body[:, None] != 0) & (body != 0)
        may &= ~(moving & ((parent[:, None] == body) | (body[:, None] == parent)))
    for loop in model.loops:
        i, j = weld[loop.predecessor], weld[loop.successor]
        if i != 0 and j != 0:
            _leave_out(may, body == i, body == j)
    names = names_of(model) if model.contact_pairs else None
    for pair in model.contact_pairs:
        if names is not None and not pair.touch:
            _leave_out(may, names.of_link(pair.first), names.of_link(pair.second))
    return may


def _leave_out(may, ones, others):
    """Disable contact between two groups of shapes in the matrix ``may``."""
    may[np.ix_(ones, others)] = may[np.ix_(others, ones)] = False


def weld_of_bodies(model):
    """For each body, the first body of the rigid group that fixed joints weld it to."""
    weld = [0] * (model.body_count + 1)
    for i in range(1, model.body_count + 1):
        weld[i] = weld[model.parent[i]] if isinstance(model.joint[i], Fixed) else i
    return weld


def weld_parents(model, weld):
    """Parent weld of each weld's first body, massless links skipped; 0 for other bodies.

    Massless bodies with nothing that touches, which carry one other, are seen as part of that one:
    loaders make them of bodies with several joints.
    """
    solid = {weld[g.body] for g in model.geometry if g.collision}
    solid |= {weld[i] for i, b in enumerate(model.bodies, start=1) if not _is_massless(b.inertia)}
    roots = sorted(set(weld) - {0})
    parent = [0] * len(weld)
    carried = [0] * len(weld)
    for i in roots:
        parent[i] = weld[model.parent[i]]
        carried[parent[i]] += 1
    for i in roots:  # parents come first, and see through what carries them
        p = parent[i]
        if p != 0 and p not in solid and carried[p] == 1:
            parent[i] = parent[p]
    return parent


def _is_massless(inertia):
    """Whether all inertia parameters of a body are the number zero."""
    if isinstance(inertia.mass, float) and inertia.mass > 0.0:
        return False
    numbers = inertia.parameters()
    return numbers.dtype != object and not np.any(numbers)


def chosen_pairs(model):
    """Surfaces of the pairs that a model's ``contact_pairs`` enable, by shape numbers."""
    chosen, weld = {}, None
    for pair in model.contact_pairs:
        if not pair.touch:
            continue
        weld = weld or weld_of_bodies(model)
        for i, j in _between(names_of(model).find(pair.first), names_of(model).find(pair.second)):
            a, b = model.geometry[i], model.geometry[j]
            endless = all(isinstance(g.shape, (HeightField, Plane)) for g in (a, b))
            if weld[a.body] != weld[b.body] and not endless:
                chosen.setdefault((i, j), pair.surface)
    return chosen


def _between(ones, others):
    """All pairs between two groups of numbers, each with the lower number first."""
    return [(min(i, j), max(i, j)) for i in ones for j in others]


class _Joined(dict):
    """Surfaces of two shapes together, by the two surfaces."""

    def __missing__(self, key):
        self[key] = joined = joined_surface(*key)
        return joined


def _order(a, b, joined, surface=None, friction=None, restitution=None):
    """``Pair`` of two shapes, the one on the lower-numbered body first."""
    a, b = (a, b) if a.body <= b.body else (b, a)
    surface = joined[a.surface, b.surface] if surface is None else surface
    return Pair(a, b, friction, restitution, surface)


# --- Pairs by name -------------------------------------------------------------------------------


def named_pairs(model, given):
    """``Pair`` list from entries that are pairs, tuples of names, or names of contacts."""
    pairs, chosen, joined = [], chosen_pairs(model), _Joined()
    number = {id(g): k for k, g in enumerate(model.geometry)}
    for item in given:
        wanted = _pair_of(model, item)
        for a in _shapes_named(model, wanted.first):
            for b in _shapes_named(model, wanted.second):
                if a.body == b.body:
                    names = names_of(model).own
                    both = "/".join(names[number[id(g)]] for g in (a, b) if id(g) in number)
                    raise ModelError(
                        f"shapes {both} are on the same body "
                        f"{model.body_names[a.body]!r}: they cannot move against each other"
                    )
                i, j = sorted(number.get(id(g), -1) for g in (a, b))
                surface = chosen.get((i, j)) if wanted.surface is None else wanted.surface
                own = (wanted.friction, wanted.restitution)
                pairs.append(_order(a, b, joined, surface, *own))
    return pairs


def _pair_of(model, item):
    """``Pair`` that an entry of ``pairs`` describes, given as name, tuple or ``Pair``."""
    if isinstance(item, str):
        ends = _ends(model, item)
        if ends is not None:
            return Pair(*ends)
    elif isinstance(item, (tuple, list)) and 2 <= len(item) <= 5:
        return Pair(*item)
    raise ModelError(
        f"a pair must be a Pair, two names, of shapes, links, frames or bodies, or the name of a "
        f"pair such as 'ground/foot', got {item!r}"
    )


def _ends(model, name):
    """Two shape names in the name of a pair or contact; None if it has none."""
    names = names_of(model)
    for text in (name, re.sub(r":\d+$", "", name)):
        for cut in (m.start() for m in re.finditer("/", text)):
            ends = text[:cut], text[cut + 1 :]
            if all(map(names.find, ends)):
                return ends
    return None


def _shapes_named(model, what):
    """Shapes that a name of a shape, link, frame or body, or a ``Geometry``, refers to."""
    if isinstance(what, Geometry):
        return [what]
    names = names_of(model)
    found = names.find(what) if isinstance(what, str) else []
    if not found:
        if what in names.known:
            kind = "frame" if what in names.carrier else "body"
            raise ModelError(f"{kind} {what!r} has no shape that can touch others")
        known = list(dict.fromkeys((*names.own, *model.body_names, *sorted(names.known))))
        raise UnknownNameError(
            f"model {model.name!r} has no shape, link, frame or body {what!r}; "
            f"{did_you_mean(str(what), known)}"
        )
    return [model.geometry[k] for k in found]


def pair_names(model, pairs):
    """Names ``first/second`` of pairs, for names of contacts and messages."""
    names = {id(g): name for g, name in zip(model.geometry, names_of(model).own, strict=True)}

    def name(g):
        return names.get(id(g)) or g.name or g.link or model.body_names[g.body]

    return tuple(f"{name(p.first)}/{name(p.second)}" for p in pairs)


# --- Coefficients --------------------------------------------------------------------------------


def coefficients(pairs, field, value, names):
    """Friction or restitution coefficients of all pairs, (n,): own, scene's or surfaces'."""
    values = []
    for pair, name in zip(pairs, names, strict=True):
        x: Any = getattr(pair, field)
        if x is None:
            x = value(*pair[:2]) if callable(value) else value
        if x is None:
            x = _of_surface(pair.surface, field)
        check_coefficient(field, x, repr(name))
        values.append(float(x))
    return np.array(values)


def is_coefficient(field, value) -> bool:
    """Whether a value is valid as coefficient of friction or restitution."""
    try:
        return bool(0 <= value <= (1 if field == "restitution" else np.finfo(float).max))
    except (TypeError, ValueError):  # no number
        return False


def check_coefficient(field, value, where):
    """Raise ModelError for an invalid coefficient of friction or restitution."""
    if value is not None and not is_coefficient(field, value):
        limits = "from 0 to 1" if field == "restitution" else "zero or positive, and finite"
        raise ModelError(f"{field} of {where} must be {limits}, got {value!r}")


def _of_surface(surface, field):
    """Coefficient of a pair from its combined surface, or else the default."""
    x = None if surface is None else getattr(surface, field)
    if surface is not None and field == "friction" and surface.condim == 1:
        return 0.0
    return {"friction": FRICTION, "restitution": RESTITUTION}[field] if x is None else x


# --- Coefficients given by the caller ------------------------------------------------------------


def coefficients_of(given, own, n, name, most=np.inf):
    """Checked coefficients of ``n`` contacts, (n,), from given ones or the contacts' own.

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


# --- The shapes that a mechanism stands on: those that are lowest in a posture -------------------

_STANDS = 0.05  # a foot is at most so much higher than the lowest one, of the robot's height
_AS_LOW = 0.005  # and not higher than what its limb has besides by more than this
_USUAL = ("home", "qpos0")


def _feet(model, pairs, posture=None):
    """Pairs of fixed and moving shapes in which the moving shape is a foot.

    A shape does where its link is nearly as low as the lowest of all, no link that is farther out
    on the same limb, or on the same body, is lower, and no other shape of the link.

    Args:
        model: the mechanism.
        pairs: pairs of shapes with those fixed to the base, first.
        posture: name of a posture, a ``Posture``, or position variables (nq,); by default that
            called home, or where the file puts what floats, or else the neutral one.
    """
    shapes = list({id(p.second): p.second for p in pairs}.values())
    if not shapes:
        return []
    height = _lowest(model, _configuration(model, posture), shapes)
    tall = max(float(np.ptp(height[height < np.inf])), 1e-6)
    link: dict = {}
    for g, h in zip(shapes, height, strict=True):
        key = (g.body, g.link)
        link[key] = min(h, link.get(key, np.inf))
    low = {
        key: h
        for key, h in link.items()
        if h - height.min() <= _STANDS * tall
        and not any(
            other < h - _AS_LOW * tall
            for (body, _), other in link.items()
            if body == key[0] or key[0] in model.support[body]
        )
    }
    standing = {
        id(g)
        for g, h in zip(shapes, height, strict=True)
        if (g.body, g.link) in low and h - low[g.body, g.link] <= _AS_LOW * tall
    }
    return [p for p in pairs if id(p.second) in standing]


def _configuration(model, posture):
    """Configuration of a named posture, or of the model's usual standing posture."""
    if posture is None:
        known = {p.name: p for p in model.postures}
        posture = next((known[name] for name in _USUAL if name in known), None)
    if posture is None:
        return model.neutral()
    if isinstance(posture, str):
        posture = model.posture(posture)
    q = posture.q if isinstance(posture, Posture) else posture
    return np.asarray(as_configuration(model, q), dtype=float)


def _lowest(model, q, shapes):
    """Height of the lowest point of every shape along gravity [m]; inf if unreadable."""
    g = np.asarray(model.gravity, dtype=float)
    down = g / np.linalg.norm(g) if np.any(g) else np.array([0.0, 0.0, -1.0])
    heights, unread = [], []
    for placed in place_shapes(model, q, shapes):
        try:
            heights.append(-reach_along(placed, down))
        except LoadError as error:
            heights.append(np.inf)
            unread.append(error)
    if len(unread) == len(shapes):
        raise unread[0]
    if unread:
        warn(
            f"model {model.name!r}: {len(unread)} of its shapes are not looked at for feet, since "
            f"their meshes cannot be read, the first is {unread[0]}",
            ModelWarning,
        )
    return np.array(heights)


def reach_along(placed, direction):
    """Extent of a ``Placed`` shape along a unit direction from the base's origin [m]."""
    shapes, point = placed_table(as_hull(placed)), np.zeros(3)
    support(shapes, 0, np.zeros((6, 3)), np.zeros(3), direction, 0, point)
    return float(point @ direction) + round_of(shapes, 0)
