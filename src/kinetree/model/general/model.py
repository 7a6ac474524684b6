"""A model that stands for every robot: algorithms run on it once and leave loops over tables.

Texts walk over ``model.outward()`` and ``model.inward()`` and keep what they compute per body in
``model.table()``. Of one robot these are ranges and lists: see ``model.tree``. Of a
``GeneralModel`` a walk yields one row for each kind of body, and what the loop's body does with it
is recorded as one case: see ``codegen.loops``.

The parent of a body on the base is 0, as it is for one robot, so ``if lam[i] != 0`` works
unchanged, the base's values fold, and the base needs no row.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.loops.assembly import assemble, outline_of
from kinetree.codegen.loops.language import BODIES, Chain, Declaration, Domain, LoopProgram
from kinetree.codegen.loops.recording import LoopRecorder, Outline
from kinetree.codegen.loops.stores import ANY
from kinetree.codegen.loops.values import Array, LoopRow
from kinetree.errors import TraceError
from kinetree.joints import Revolute
from kinetree.model.arrays import require_unit_parts
from kinetree.model.general.tables import (
    COLUMNS,
    NUMBERS,
    PARAMETERS,
    VARIABLES,
    WORLD,
    BodyKind,
    instance,
)
from kinetree.model.parts import JointDynamics
from kinetree.spatial import Force, Inertia, Motion, Plucker
from kinetree.spatial.ops import less, select
from kinetree.spatial.vector3 import ZERO3

REPRESENTATIVES = tuple(BodyKind(Revolute("z"), at_base, False) for at_base in (False, True))
"""Kinds that show what an algorithm does to other bodies, and to totals from the base on."""

EXTENTS = {"nq": "q", "nv": "v", "body_count": "b", "parameters": "p"}


class _PerBody:
    """Properties of bodies by their index."""

    def __init__(self, get):
        self._get = get

    def __getitem__(self, i):
        return self._get(i)


class _Zeros:
    """A vector of zeros with entries for every joint."""

    def __getitem__(self, at):
        return np.zeros(0 if isinstance(at, slice) else at.size, dtype=int)


class _Forces:
    """An argument with a force for every body."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, i):
        return Force.from_array(self._array[i.span("b", 1), :][0])


class _Unit:
    """The vector that is 1 for one variable and 0 for all others."""

    def __init__(self, model, k):
        self._model, self._k = model, k

    def __getitem__(self, at):
        recorder = self._model.recorder
        (first,), (k,) = (
            recorder.numbers(n, 1, row) for n, row in (("first", at.row), ("number", self._k))
        )
        places = [first + n for n in range(at.size)]
        found = np.empty(at.size, dtype=object)
        found[:] = [select(less(x, k - 0.5), 0, select(less(k + 0.5, x), 0, 1)) for x in places]
        return found


class _Armature:
    """The joints that have armature."""

    def __contains__(self, i):
        return i.kind.armature


class _Chain:
    """The bodies from the base to a body that the robot will name."""

    def __init__(self, recorder, path):
        self._recorder, self._rows = recorder, Chain(path, "parent")

    def __iter__(self):
        return self._recorder.walk(self._rows, backwards=True)

    def __reversed__(self):
        return self._recorder.walk(self._rows)


class _Laden:
    """All bodies: data of a robot says whether those on the base have mass."""

    def __getitem__(self, i):
        return isinstance(i, LoopRow)


class _Body(NamedTuple):
    """A body as algorithms about its joint use it."""

    joint: Any
    dynamics: Any

    def active_subspace(self, q: Any) -> Force:
        """Active force subspace ``T_a`` of the joint: forces along its degrees of freedom."""
        return self.joint.active_subspace(q)


class GeneralFrame(NamedTuple):
    """A frame that the robot will have; ``body`` is a row, or 0 for the base."""

    name: str
    body: Any
    placement: Plucker


class GeneralModel:
    """Model as algorithms use it, for a body of any robot.

    Args:
        recorder: what algorithms do is recorded there.
        frames: names that stand for frames of the robot, and whether each is fixed to the base.
    """

    loops = couplings = constraints = tendons = gravity_compensation = fluid_forces = ()
    is_constrained, is_general = False, True
    name = "any robot"

    def __init__(self, recorder: LoopRecorder, frames: dict[str, bool] | None = None):
        self.recorder, self.frames = recorder, frames or {}
        for name, size in NUMBERS.items():  # all of them, whatever the kinds recorded now read
            recorder.declared[name] = Declaration(name, "model", BODIES, (size,))
        for name, size in (*WORLD.items(), *((name, 12) for name in self.frames)):
            recorder.declared[name] = Declaration(name, "model", "", (size,))
        self.zero_motion, self.identity_transform = Motion.zero(), Plucker.identity()
        self.parent = _PerBody(self._parent)
        self.joint = _PerBody(self._joint)
        self.q_slice = _PerBody(lambda i: i.span("q", _kind(i).joint.nq))
        self.v_slice = _PerBody(lambda i: i.span("v", _kind(i).joint.nv))
        self.tree_transform = _PerBody(self._placement)
        self.inertia = _PerBody(self._inertia)
        self.bodies = _PerBody(self._body)
        self.armature = _PerBody(lambda at: self._numbers("armature", at.row, at.size))
        self.zero_velocity, self.armature_joints = _Zeros(), _Armature()
        self.laden, self.first_laden = _Laden(), None

    def __getattr__(self, name):
        raise TraceError(f"a model that stands for every robot has no {name!r}")

    @property
    def gravity(self) -> np.ndarray:
        """Traced gravity acceleration, (3,)."""
        return self.recorder.numbers("gravity", 3)

    @property
    def a_g(self) -> Motion:
        """Traced gravity as a spatial acceleration."""
        return Motion(ZERO3, self.gravity)

    @property
    def uncoupled(self) -> "GeneralModel":
        """The model itself, as couplings are handled outside the loops."""
        return self

    spanning_tree = uncoupled

    def scalar_type(self, *arrays: Any) -> np.dtype:
        """NumPy type of traced numbers: object."""
        return np.dtype(object)

    def frame(self, name: str) -> GeneralFrame:
        """Frame of the robot by the name that an option gives it."""
        body = 0 if self.frames[name] else LoopRow(self.recorder, BODIES, f"world.{name}", ANY)
        return GeneralFrame(name, body, _transform(self.recorder.numbers(name, 12)))

    def jcalc(self, i: LoopRow, q: Any, qd: Any) -> tuple:
        """Transform, axes, velocity and velocity product ``X_J, S, v_J, c_J`` of joint ``i``."""
        return self.joint[i].jcalc(q[self.q_slice[i]], qd[self.v_slice[i]])

    def _parent(self, i):
        """Row of the parent of body ``i``."""
        return 0 if _kind(i).at_base else i.column("parent")

    def _joint(self, i):
        """Joint of body ``i`` with traced parameters."""
        kind = _kind(i)
        return instance(kind, self._numbers("joint", i, kind.count) if kind.count else ())

    def _inertia(self, i):
        """Inertia of body ``i`` with traced parameters."""
        return (
            Inertia.from_parameters(self._numbers("inertia", i)) if isinstance(i, LoopRow) else None
        )

    def _body(self, at):
        """Body with number ``i - 1`` in ``bodies``: its joint, springs and dampers, traced."""
        joint, p = self.joint[at.row], self._numbers("dynamics", at.row)
        k, d, c = (tuple(p[n : n + joint.nv]) for n in (0, 6, 12))
        law = JointDynamics(stiffness=k, damping=d, friction=c, rest=tuple(p[18 : 18 + joint.nq]))
        return _Body(joint, law)

    def _placement(self, i):
        """Placement of joint ``i`` on the parent, traced."""
        return _transform(self._numbers("placement", i))

    def _numbers(self, name, i, size=None):
        """Traced parameters of body ``i`` by name, (size,)."""
        return self.recorder.numbers(name, NUMBERS[name] if size is None else size, i)

    # --- walks and tables: as ``model.tree`` has them for one robot ------------------------------

    def outward(self) -> Iterable:
        """Loop over all bodies, parents first."""
        return self.recorder.walk(BODIES)

    def inward(self) -> Iterable:
        """Loop over all bodies, children first."""
        return self.recorder.walk(BODIES, backwards=True)

    def _again(self):
        """Loop over all bodies in the direction of the last one, so that both can be fused."""
        return self.recorder.walk(BODIES, self.recorder.goes_backwards)

    def above(self, i: LoopRow, bodies: Any = None) -> Iterable:
        """The bodies between body ``i`` and the base, its parent first.

        None where ``i`` is not among ``bodies``, if such are given.
        """
        chain = Chain(f"{i.path}.{'parent' if bodies is None else 'above'}", "parent")
        none = _kind(i).at_base or (bodies is not None and i not in bodies)
        return self.recorder.walk(chain, kinds=() if none else None)

    def chain(self, i: Any) -> Iterable:
        """The bodies from the base to body ``i``, each after its parent; none for the base."""
        return _Chain(self.recorder, i.path) if isinstance(i, LoopRow) else ()

    def variables(self) -> Iterable:
        """Loop over the velocity variables."""
        return self.recorder.walk(VARIABLES)

    def unit(self, k: LoopRow) -> Any:
        """Unit vector of variable ``k`` in the velocity variables."""
        return _Unit(self, k)

    def parameter_columns(self) -> Iterable:
        """Loop over the inertial parameters of all bodies, or of those marked."""
        return (k.span("p", 1, single=True) for k in self.recorder.walk(PARAMETERS))

    def parameter_slice(self, i: LoopRow) -> Any:
        """Indices of the ten inertial parameters of body ``i``."""
        return i.span("p", 10)

    def table(self, base: Any = None) -> Any:
        """New table with a value per body; ``base`` is that of the fixed base."""
        return self.recorder.table(BODIES, base)

    def copy_table(self, rows: Any) -> Any:
        """New table that starts as a copy of another, for sums over subtrees."""
        table = self.table(getattr(rows, "base", None))
        for i in self._again():
            table[i] = rows[i]
        return table

    def fill_table(self, value: Any) -> Any:
        """New table with the same value for all bodies."""
        return self.table(value)  # rows are set before they are read

    def sums(self, zero: Any) -> Any:
        """New table of sums: loops may add to the rows of parents and of the base."""
        return self.recorder.sums(BODIES, zero)

    def total(self, zero: Any = 0) -> Any:
        """New sum over bodies, initially ``zero``."""
        return self.recorder.total(zero)

    def join_rows(self, rows: Any, by: str = "v") -> Array:
        """Vector of all joints' arrays in a table, concatenated."""
        result = self.recorder.result((by,), rows, zeros=False)
        at = self.v_slice if by == "v" else self.q_slice
        for i in self._again():
            result[at[i]] = rows[i]
        return result

    def of_body(self, array: Any, i: LoopRow) -> np.ndarray:
        """Row of an array (body_count, ...) for body ``i``."""
        return array[(i.span("b", 1), *[slice(None)] * (len(array.axes) - 1))][0]

    def stack_rows(self, rows: Any, *shape: int) -> Array:
        """Array (body_count, *shape) of a table's values."""
        result = self.recorder.result(("b", *shape), zeros=False)
        for i in self._again():
            result[(i.span("b", 1), *[slice(None)] * len(shape))] = np.asarray(rows[i])[None]
        return result

    def columns(self, rows: Any, size: int, *like: Any) -> Array:
        """Matrix (size, nv) of all joints' blocks (size, n_i) in a table, side by side."""
        result = self.recorder.result((size, "v"), zeros=False)
        for i in self._again():
            part = rows[i]
            result[:, self.v_slice[i]] = part.to_array() if hasattr(part, "to_array") else part
        return result

    def zeros(self, shape: tuple, *like: Any) -> Array:
        """Result array of zeros, filled block by block."""
        return self.recorder.result(tuple(EXTENTS.get(n, n) for n in shape))

    def matrix(self, *like: Any) -> Array:
        """Matrix of zeros, (nv, nv)."""
        return self.zeros(("nv", "nv"))


def _transform(p):
    """Plücker transform from twelve numbers: rotation by rows, then position."""
    return Plucker(p[:9].reshape(3, 3), p[9:])


def _kind(i) -> BodyKind:
    """Kind of body ``i``; TraceError where it depends on the robot."""
    if i.kind is ANY:
        raise TraceError(
            f"what kind of body {i.path} is cannot be known where the code is made: only body i "
            f"of a walk and its own parent can be requested, not the parent's joint or parent"
        )
    return i.kind


# --- recording -----------------------------------------------------------------------------------


class Source:
    """An algorithm that can be recorded for any kinds of bodies.

    Args:
        text: function of a model and arrays.
        arguments: shapes of the arrays by name, as in ``kinetree.model.array_arguments.Array``.
        name: of the program.
        configurations: names of the arrays with quaternions whose lengths are checked.
        frames: as of ``GeneralModel``.
        marks: whether it does something else for bodies that are marked.

    Attributes:
        typical: kinds that show what all do.
    """

    def __init__(
        self,
        text: Callable,
        arguments: dict[str, tuple],
        name: str = "",
        configurations: Iterable[str] = (),
        frames: dict[str, bool] | None = None,
        marks: bool = False,
    ):
        marked = tuple(replace(kind, marked=True) for kind in REPRESENTATIVES if marks)
        self.typical = (*marked, *REPRESENTATIVES)
        self.text, self.name = text, name or text.__name__
        self.arguments = {n: tuple(EXTENTS.get(k, k) for k in a) for n, a in arguments.items()}
        self.configurations, self.frames = tuple(configurations), frames or {}

    @cached_property
    def outline(self) -> Outline:
        """Outline of the loops, recorded with representative kinds of bodies."""
        first = outline_of(*self._record(self.typical))
        return outline_of(*self._record(self.typical, first))

    def program(self, kinds: Any, pairs: Any = None) -> LoopProgram:
        """Loop program of the algorithm, with cases for some kinds of bodies.

        Those of nested walks are for all pairs of these kinds, or those given.
        """
        kinds = tuple(kinds[BODIES] if isinstance(kinds, dict) else kinds)
        recorder, results = self._record(kinds, self.outline, pairs)
        return assemble(recorder, self.name, tuple(self.arguments), results)

    def _record(self, kinds, outline=None, pairs=None):
        """Recorder after running the algorithm on it, and the names of its results."""
        frames = {name: BODIES for name, on_base in self.frames.items() if not on_base}
        domains = [Domain(BODIES, COLUMNS), Domain(VARIABLES, {"v": "v"}), Domain("", frames)]
        domains.append(Domain(PARAMETERS, {"p": "p"}))
        recorder = LoopRecorder(domains, {BODIES: kinds}, outline, pairs)
        model = GeneralModel(recorder, self.frames)
        given = {name: recorder.argument(name, axes) for name, axes in self.arguments.items()}
        recorder.keeps = True  # of joints with quaternions alone
        for name in self.configurations:
            require_unit_parts(model, given[name])
        recorder.keeps = False
        arrays = [_Forces(a) if n == "f_ext" else a for n, a in given.items()]
        found = self.text(model, *arrays)
        found = found if isinstance(found, tuple) else (found,)
        return recorder, tuple(recorder.given_back(x) for x in found)
