"""State that a world keeps when parts are added or removed: that of the solver, by part.

The model, its tables and its engine are made anew. What the last step left for the next one is
stored by pieces, their bodies and shapes, whose numbers in the model change.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.model.actuator import states_of
from kinetree.worlds.starts import Reached

if TYPE_CHECKING:
    from kinetree.worlds.pieces import Piece
    from kinetree.worlds.whole import Whole

Key = tuple[int, int]
"""A body or shape: of which piece, and its number in it."""


class PiecePlaces:
    """Bodies and shapes of an assembled world by piece.

    Args:
        pieces: in the order in which they were put together.

    Attributes:
        bodies: of the bodies of the model, from 1 on: key of each.
        shapes: likewise of its shapes.
    """

    def __init__(self, pieces: "tuple[Piece, ...]"):
        self.bodies: list[Key] = [(0, 0)]
        self.shapes: list[Key] = []
        for piece in pieces:
            of = id(piece)
            self.bodies += [(of, i) for i in range(1, piece.body_count + 1)]
            self.shapes += [(of, k) for k in range(piece.shape_count)]


class Carried:
    """Memory of the solver by pieces.

    Attributes:
        pieces: those of the world that it was taken from, which keeps their numbers unique.
        activation: of actuators, by name.
        contacts: shapes (two keys), feature, impulses, velocities and place of each.
        rows: of bodies by key: change of the velocities, that of the last step, and forces with
            which they sleep.
        trees: of first bodies by key: whether they sleep, the key of the first of the pile, and for
            how long they have been calm.
        stops, dry: forces of ends of travel and of dry friction, by body, variable and side.
        loops: arrays of the rows of loops, in order.
        follows: whether the next step begins where the last one ended.
        counted: what the next report covers so far, whether a warning was given, the last report.
        is_new: whether fixed shapes or pairs have changed, which wakes everything.
        is_reached: whether steps have led to the state, which then needs no check;  by_rules:
            whether pairs have changed, so that all of them do.
    """

    def __init__(self, pieces: "tuple[Piece, ...]"):
        self.pieces, self.is_new, self.follows = pieces, False, 0
        self.is_reached = self.by_rules = False
        self.activation: dict[str, float] = {}
        self.contacts: list[tuple[Any, ...]] = []
        self.rows: dict[Key, dict[str, np.ndarray]] = {}
        self.trees: dict[Key, tuple[int, Key, int]] = {}
        self.stops: dict[tuple, float] = {}
        self.dry: dict[tuple, float] = {}
        self.loops: dict[str, np.ndarray] = {}
        self.counted: tuple | None = None


def carried_from(whole: "Whole") -> Carried:
    """Solver memory and activations of an assembled world, for the next assembly."""
    steps = whole.__dict__.get("steps")
    found = Carried(whole.pieces)
    if steps is None:  # not stepped since it was assembled
        found = whole.carried or found
    elif whole.model.nv and (memory := steps.copy_memory()):
        _take(found, PiecePlaces(whole.pieces), steps.engine, memory)
        found.is_reached = steps.checked
        b, warned = steps.machine.motions, steps.engine.parts.warned
        found.counted = b.since.copy(), b.counts.copy(), warned, steps.reported
    named = states_of(whole.model.actuators)
    found.activation = dict(zip(named, whole.activation.tolist(), strict=True))
    return found


def activation_of(model, carried: Carried | None) -> np.ndarray:
    """Activations of a model's actuators by carried values; zero for new ones."""
    known = {} if carried is None else carried.activation
    return np.array([known.get(name, 0.0) for name in states_of(model.actuators)])


_OF_VARIABLES = ("change", "last", "tau")


def _take(found, places, engine, memory):
    """Fill ``found`` with contacts, rows and trees of a solver memory, keyed by piece."""
    numbers, rows, tree = engine.tables.numbers.tolist(), engine.rows, engine.tree
    shapes = [places.shapes[k] for k in numbers]
    numbers_kept = (memory[x] for x in ("kept", "ended", "spot", "bent"))
    keys = zip(memory["key"].tolist(), *numbers_kept, strict=True)
    found.contacts = [(shapes[i], shapes[j], f, *kept) for (i, j, f), *kept in keys]
    for key, at in zip(places.bodies[1:], tree.v_slice[1:], strict=True):
        found.rows[key] = {x: memory[x][at] for x in _OF_VARIABLES}
    roots = _roots(engine)
    for t, i in roots.items():
        pile = places.bodies[roots[int(memory["pile"][t])]]
        found.trees[places.bodies[i]] = int(memory["sleeps"][t]), pile, int(memory["calm"][t])
    of = _variables(places, engine)
    of_stops = (memory["stop_kept"], memory["stop_was"])
    for v, sign, *x in zip(rows.stop_v, rows.stop_sign, *of_stops, strict=True):
        found.stops[(*of[v], float(sign))] = tuple(map(float, x))
    found.dry = {of[v]: float(x) for v, x in zip(rows.dry_v, memory["dry_kept"], strict=True)}
    found.loops = {x: memory[x] for x in ("loop_kept", "loop_ended")}
    found.follows = int(memory["follows"])


def _variables(places, engine) -> dict[int, tuple]:
    """Velocity variables by key (piece, body, number in joint); tendons as ``-1 - t``.

    Those are the numbers that rows of joints and tendons have.
    """
    keys = zip(places.bodies[1:], engine.tree.v_slice[1:], strict=True)
    found = enumerate((*key, k) for key, at in keys for k in range(at.stop - at.start))
    return dict(found) | {-1 - t: (x.name,) for t, x in enumerate(engine.model.tendons)}


def _roots(engine) -> dict[int, int]:
    """Number of the first body of every moving tree of an engine, by tree."""
    found: dict[int, int] = {}
    for i, t in enumerate(engine.sleep.tree.tolist()):
        if t >= 0:
            found.setdefault(t, i)
    return found


def restore_memory(carried: Carried, whole: "Whole", engine: Any) -> dict[str, np.ndarray]:
    """Solver memory for a new engine from the one carried over from the last assembly."""
    places, rows, tree = PiecePlaces(whole.pieces), engine.rows, engine.tree
    shape = {places.shapes[k]: n for n, k in enumerate(engine.tables.numbers.tolist())}
    kept = [x for x in carried.contacts if x[0] in shape and x[1] in shape]
    n, of = len(kept), _variables(places, engine)
    pairs = zip(rows.stop_v, rows.stop_sign, strict=True)
    stops = [carried.stops.get((*of[v], float(sign)), (0.0, 0.0)) for v, sign in pairs]
    stops = np.array(stops).reshape(-1, 2).T
    arrays = {
        "key": np.array([(shape[a], shape[b], f) for a, b, f, *_ in kept], np.int64).reshape(n, 3),
        "kept": np.array([x[3] for x in kept]).reshape(n, 6),
        "ended": np.array([x[4] for x in kept]).reshape(n, 3),
        "spot": np.array([x[5] for x in kept]).reshape(n, 3),
        "bent": np.array([x[6] for x in kept]).reshape(n, 3),
        **dict(zip(("stop_kept", "stop_was"), stops, strict=True)),
        "dry_kept": np.array([carried.dry.get(of[v], 0.0) for v in rows.dry_v]),
        "state": np.concatenate([whole.q, whole.qd]),
        "follows": np.array(carried.follows),
        "energy": np.zeros(engine.problem.trees),
        "energy_known": np.array(0),
    }
    for name in _OF_VARIABLES:
        arrays[name] = np.zeros(tree.nv)
        for key, at in zip(places.bodies[1:], tree.v_slice[1:], strict=True):
            if key in carried.rows:
                arrays[name][at] = carried.rows[key][name]
    for name, old in carried.loops.items():
        same = old.shape == getattr(rows, name).shape  # other loops start without memory
        arrays[name] = old if same else np.zeros(getattr(rows, name).shape)
    return arrays | _asleep(carried, places, engine, shape)


def reached_faults(carried: Carried, whole: "Whole", engine: Any) -> Reached | None:
    """Overlaps and exceeded limits that steps led to, which the next check must ignore."""
    if not carried.is_reached:
        return None
    places, old = PiecePlaces(whole.pieces), {id(piece) for piece in carried.pieces}
    numbers = enumerate(engine.tables.numbers.tolist())
    shapes = {n for n, k in numbers if places.shapes[k][0] in old and not carried.by_rules}
    known = np.zeros(whole.model.nq, dtype=bool)
    for piece, (at, _) in zip(whole.pieces, whole.slices, strict=True):
        known[at] = id(piece) in old
    return Reached(shapes, known)


def _asleep(carried, places, engine, shape):
    """Trees that can stay asleep: their island lost no body and touches nothing new."""
    roots = _roots(engine)
    tree = {places.bodies[i]: t for t, i in roots.items()}
    woken = {pile for key, (_, pile, _) in carried.trees.items() if key not in tree}
    body = {k: places.bodies[whole] for k, whole in _bodies_of(engine, shape).items()}
    root = {
        places.bodies[i]: places.bodies[roots[t]]
        for i, t in enumerate(engine.sleep.tree.tolist())
        if t >= 0
    }
    for a, b, *_ in carried.contacts:
        for gone, other in ((a, b), (b, a)):
            first = root.get(body.get(other, (0, 0)))
            if gone not in shape and first in carried.trees:
                woken.add(carried.trees[first][1])
    names = ("sleeps", "pile", "calm")
    arrays = {name: np.zeros(engine.problem.trees, dtype=np.int64) for name in names}
    for key, (sleeps, pile, calm) in carried.trees.items():
        if key in tree and pile not in woken and not carried.is_new and pile in tree:
            for name, x in zip(names, (sleeps, tree[pile], calm), strict=True):
                arrays[name][tree[key]] = x
    return arrays


def _bodies_of(engine, shape):
    """Body number of every shape, by the shape's key."""
    return {key: int(engine.tables.shapes.body[n]) for key, n in shape.items()}
