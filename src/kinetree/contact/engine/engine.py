"""The engine: whole steps of rigid contact of one mechanism and scene, in compiled code."""

from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.codegen.procedures.binding import bound
from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.codegen.tied import run, tied_code
from kinetree.contact.collision.detect import detect, found_tables, touch_table
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.shape_tables import shape_tables
from kinetree.contact.collision.sweep import pair_tables
from kinetree.contact.collision.tables import SPHERE, TRIANGLES
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine import parts as of_step
from kinetree.contact.engine.drives import (
    actuators_of,
    arms_that_occur,
    moving_arms,
    no_actuators,
)
from kinetree.contact.engine.energy import balance_of, flight_of
from kinetree.contact.engine.joint_laws import joint_laws_of
from kinetree.contact.engine.known_contacts import known_again
from kinetree.contact.engine.loops import is_tabled, loop_variables, loops_of, numbered_rows
from kinetree.contact.engine.mechanism import mechanism_of
from kinetree.contact.engine.parts import Kernels, Parts, step_of
from kinetree.contact.engine.pushes import no_pushes
from kinetree.contact.engine.renewal import parts_as_made
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.shift import close_in_middle, loops_open
from kinetree.contact.engine.sleep import sleep_of
from kinetree.contact.engine.springs import springs_of
from kinetree.contact.engine.step import take_steps
from kinetree.contact.engine.terms import (
    arm_kernel,
    carrying_kernel,
    constraint_kernel,
    loop_joint_kernel,
    loop_spring_kernel,
    term_kernel,
)
from kinetree.contact.engine.undoing import OF_CONTACTS, before_of, have_room
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.newton.problem import enlarge, problem_of, with_room, workspace
from kinetree.contact.scheme.constraints import NO_JOINT_ROWS
from kinetree.contact.settings import CLOSED, DEEP, SETTLED
from kinetree.errors import SimulationError, SimulationWarning, SingularError, warn
from kinetree.model.gearing import Gearing
from kinetree.model.general.tables import data_of
from kinetree.model.limits import has_dynamics, position_index
from kinetree.model.model import Model

_TURN = 1.0  # of a body in a step, beyond which its contacts are not those that were found [rad]
_TURN_BY_MESH = 0.125  # the same beside triangles: 0.2 rad let a rod pass [rad]
_MARGIN = 1e-3  # least distance at which contacts are looked at [m]
_ARRIVES = 3e-5  # overlap at the end of a step up to which nothing is solved again, likewise
_SPEED = 1e-4  # error of velocities of a step that can be trusted [m/s or rad/s]
_GAIN = 1e-3  # gain of energy in such a step, as a part of the kinetic energy
SLICE = 64
"""Steps that are taken without hearing Ctrl-C, at first: then as many as take a short time."""
_EXPLODED = 1e9  # velocity that no step can be about [m/s or rad/s]
_TRUSTED = 1e-3  # overlap at the end of a step, likewise
_INSIDE = 0.01  # penetration from which on bodies are inside each other, in lengths of a mechanism


class Memory:
    """What steps of one motion leave for the next: impulses, by which the next solution starts.

    Attributes:
        arrays: of ``Rows``, by name; empty before the first step.
    """

    def __init__(self, arrays: dict[str, Array] | None = None):
        self.arrays = {} if arrays is None else arrays

    def copy(self) -> "Memory":
        """Another one that begins with the same."""
        return Memory({name: np.array(a) for name, a in self.arrays.items()})


_OF_SLEEP = ("sleeps", "pile", "calm", "tau")
_OF_ROWS = ("stop_kept", "dry_kept", "loop_kept", "loop_ended")


class Stepped(NamedTuple):
    """The end of one or several steps.

    Attributes:
        q, qd: state.
        work: of all forces [J].
        residuals: of all steps, in the order of ``history.Residuals``.
        taken: number of steps; less than requested where flight was left to an integrator.
    """

    q: Array
    qd: Array
    work: float
    residuals: Array
    taken: int


class ContactForces(NamedTuple):
    """Contacts that had rows in the last step, and their forces."""

    contacts: Contacts
    """Where they are."""
    force: Array
    """Along normal and tangents [N], (n, 3)."""
    moment: Array
    """About normal and tangents [N·m], (n, 3)."""
    velocity: Array
    """Relative velocity along normal and tangents [m/s], (n, 3)."""


class Engine:
    """Steps of rigid contact of a mechanism in a scene.

    Args:
        model: the mechanism.
        scene: what can touch.
        joints: ends of travel and dry friction, ``scheme.constraints.JointRows``.
        tolerance: error of velocities and impulses relative to the largest impulse of an island.
        rest_velocity: as of ``TimeStepping``; so are the following.
        correction_speed: how fast penetration is taken out of positions.
        conserving: whether a step may gain no energy.
        stiffness: of a controller, added to that of the joints, (nv,) or one number.
        damping: likewise.
        springs: whether springs and dampers of joints in the tree act; otherwise they are in
            ``tau``. Those of tendons and of loop joints act, and so does gravity compensation.
        flying: whether steps in which nothing is near are left to the caller.
        sleeping: whether islands that rest are left alone until something touches them.
        free: 0 for variables that move prescribed, 1 for others, (nv,).
        forces: kernel of ``t, q, qd, inputs`` to joint forces, or None: ``tau`` of ``step`` are
            then its inputs. With couplings, of the variables of all joints.
        resistance: kernel of the same to stiffness and damping of these forces, or None.
        own: whether its code reads its own tables, ``numbers``.
        smooth: smooth friction and stiff limits of the joints that act, or None for each.
        actuated: whether actuators can act: where ``drives.acts`` is 1, by controls ``drives.u``.
        reads: whether they always do, with controls and activations that are inputs of ``forces``.
        inputs: without ``forces``, how many inputs are held in place of joint forces, to be read.
    """

    def __init__(
        self, model: Model, scene: Any, *, joints: Any = NO_JOINT_ROWS, tolerance: float = 1e-6,
        rest_velocity: float = 1e-2, correction_speed: float = 10.0, conserving: bool = True,
        stiffness: ArrayLike = 0.0, damping: ArrayLike = 0.0, springs: bool = True,
        flying: bool = False, free: ArrayLike | None = None, forces: Any = None,
        resistance: Any = None, sleeping: bool = False, own: bool = False, actuated: bool = False,
        reads: bool = False, smooth: tuple[Any, Any] = (None, None), inputs: int = 0,
    ):  # fmt: skip
        self.model, self.scene, self.joints = model, scene, joints
        tree = model.uncoupled.spanning_tree
        tree = self.tree = tree.replace() if own else tree
        every = np.arange(tree.nq), np.arange(tree.nv)
        self.of_q, self.of_v = model.independent_variables if model.couplings else every
        self.tables = shape_tables(scene)
        shapes = self.tables.shapes
        self.pairs = pair_tables(shapes, tree.body_count + 1)
        self.found, self.touch = found_tables(256), touch_table()
        self.problem = problem_of(tree.expanded_parent, tolerance=tolerance)
        spread = (
            self._spread(x, missing) for x, missing in ((stiffness, 0), (damping, 0), (free, 1))
        )
        self.mechanism = mechanism_of(tree, self.problem, *spread)
        self.mechanism.units, self.problem.alone = self._units(), self.mechanism.alone
        self.rows = _rows(joints, model, self.of_q, self.of_v)
        self.rows.inside = _INSIDE * self.size
        self.rows.ball = (self.tables.shapes.kind == SPHERE).astype(np.int64)
        self._loops()
        self._make_room(64)
        self.work = workspace(self.problem)
        self.sleep = sleep_of(tree, self.mechanism, self.problem, sleeping)
        self.s = step_of(tree, len(self.problem.M))
        self.balance = balance_of(self.mechanism, self.problem)
        trees = self.problem.trees + 1
        self.rows.pile, self.rows.place, self.rows.rests = np.zeros((3, trees), dtype=np.int64)
        self.rows.moment = np.zeros(trees)
        self.flight = flight_of(tree, self.mechanism, self.balance)
        for name, value in {
            "rest": rest_velocity, "correction": correction_speed, "deep": DEEP, "closed": CLOSED,
            "settled": SETTLED, "margin": _MARGIN, "conserving": int(conserving),
            "arrives": max(_ARRIVES * self.size, CLOSED),
            "flying": int(flying), "forced": int(forces is not None),
            "resists": int(resistance is not None),
            "springs": int(springs and _have_springs(tree)),
            "carries": int(bool(model.gravity_compensation)),
        }.items():  # fmt: skip
            setattr(self.s, name, value)
        self.s.overlap = np.inf  # not known
        self.s.inputs = np.zeros(inputs if forces is None else forces.inputs[-1].size)
        self.s.inputs_count = len(self.s.inputs)
        self.s.own_K, self.s.own_D = self.mechanism.stiffness.copy(), self.mechanism.damping.copy()
        self._applied = forces, resistance
        self._acts(actuated, reads)
        self._total, self.warns, self.pushes = np.zeros(11), False, no_pushes(tree.body_count + 1)
        self.parts = Parts(
            step=self.s, mechanism=self.mechanism, problem=self.problem, work=self.work,
            rows=self.rows, shapes=shapes, special=self.tables.special, pairs=self.pairs,
            touch=self.touch, found=self.found, late=found_tables(256),
            worst=np.full((1, 2), -1, dtype=np.int64), balance=self.balance, flight=self.flight,
            kernels=self.tied(),
            limits=np.array([_SPEED, self.trusted_overlap, _GAIN]), since=np.zeros(12),
            counts=np.zeros(6, dtype=np.int64), strict=0, warned=0,
            before=before_of(self.rows, self.balance, self.sleep, tree.nv),
            total=self._total, sleep=self.sleep, drives=self.drives, pushes=self.pushes,
            springs=self.springs, joint_laws=joint_laws_of(smooth[0], smooth[1], joints, self.of_v),
            most_turn=(_TURN_BY_MESH if TRIANGLES in shapes.kind else _TURN) ** 2,
        )  # fmt: skip
        self._current: Memory | None = None
        self._moves = tree.nv > 0
        self._names: dict[tuple[int, int], str] = {}
        self._as_made: Any = None

    def _acts(self, actuated, reads):
        """Tables of actuators and springs, and the kernels of their arms."""
        model, problem = self.model, self.problem
        self._arms = arm_kernel(model, moving_arms(model)) if actuated else None
        self._springs = loop_spring_kernel(model)
        self.springs = springs_of(model, problem, self._springs)
        self.drives = no_actuators(self.tree.nv)
        if actuated:
            self.drives = actuators_of(model, problem, self._arms, reads=reads)

    def keep_as_made(self) -> "Engine":
        """Remember all numbers of a new engine, for ``renew``."""
        self._as_made = parts_as_made(self.parts)
        return self

    def renew(self) -> None:
        """Forget all steps: the next ones are those of a new engine, to the bit."""
        self._as_made.again()
        self.found, self.pairs, self._current = self.parts.found, self.parts.pairs, None

    # --- tables -----------------------------------------------------------------------------------

    def _units(self):
        """Units of the velocity variables: 1 for angles, a length of the mechanism for lengths."""
        shapes, joints = self.tables.shapes, self.tree.joint[1:]
        moving = shapes.body > 0
        spans = 2 * np.linalg.norm(shapes.box[:, 3:], axis=1)[moving & np.isfinite(shapes.radius)]
        self.size = float(spans.max(initial=0.0)) or 1.0
        of = {id(joint): joint.velocity_units() for joint in {id(j): j for j in joints}.values()}
        units = [unit for joint in joints for unit in of[id(joint)]]
        return np.array([1.0 if unit == "rad/s" else self.size for unit in units])

    @property
    def trusted_overlap(self) -> float:
        """Overlap at the end of a step that is no reason for a warning [m]."""
        return max(_TRUSTED * self.size, CLOSED)

    def _make_room(self, groups):
        """Lists for a number of groups, with as many entries as paths through the tree may have."""
        p, rows = self.problem, self.rows
        depth = int(np.max(np.diff(p.node_blocks_first), initial=1))
        widest = int(np.max(p.node_count, initial=1))
        fixed = rows.stops + rows.dry + rows.loops
        groups += fixed
        longest = int(np.max(np.diff(rows.tendon_first), initial=0))
        entries = 2 * depth * groups + len(rows.loop_node) + longest * (rows.stops + rows.dry)
        numbers = entries * widest * 3 + 6 * 2 * depth * widest
        with_room(p, groups, 6 * groups, entries, numbers)
        capacity = groups + 1
        for name, shape in _OF_GROUPS.items():
            old = getattr(rows, name)
            new = np.zeros((capacity, *shape), dtype=old.dtype)
            new[: len(old)] = old[:capacity]
            setattr(rows, name, new)
        rows.groups_room, rows.rows_room = groups, len(p.impulse)
        rows.entries_room, rows.numbers_room = len(p.entry_node), len(p.J)
        rows.fixed = np.zeros(len(p.J))
        rows.slots = 2 * capacity + 1
        rows.slot, rows.pair_slot = np.zeros((2, rows.slots), dtype=np.int64)
        known_again(rows)
        self._list_found()

    def _spread(self, values, missing):
        """Values of the variables that follow nothing among those of all, (nv,)."""
        found = np.full(self.tree.nv, float(missing))
        found[self.of_v] = missing if values is None else values
        return found

    def _loops(self):
        """Rows of loops, constraints and couplings: those that the rank policy lets count."""
        model, rows, p, tree = self.model, self.rows, self.problem, self.tree
        counting = rank_policy(model).rows if model.is_constrained else None
        numbers, others, geared = numbered_rows(model, counting)
        tabled = [is_tabled(model, loop) for loop, _ in numbers]
        rest = [entry for entry, known in zip(numbers, tabled, strict=True) if not known]
        self._constraints = constraint_kernel(model, rest, others)
        dense = [s for own in (*(own for _, own in rest), others) for s in own if s >= 0] + geared
        rows.loops = len(dense) + sum(
            s >= 0 for (_, own), known in zip(numbers, tabled, strict=True) if known for s in own
        )
        nodes: list = [np.zeros(0, dtype=np.int64)] * rows.loops
        for (loop, own), known in zip(numbers, tabled, strict=True):
            moving = [k for k, _, _ in loop_variables(model, tree, loop)] if known else []
            for s in own:
                nodes[s] = np.unique(p.dof_node[moving]) if s >= 0 else nodes[s]
        if self._constraints is not None:
            # Numbers that may be other than zero, by configurations all over the place.
            rng = np.random.default_rng(0)
            places = [_random(tree, rng) for _ in range(3)]
            seen = np.sum([np.abs(self._constraints.reference((q,))[0]) for q in places], axis=0)
            for s, row in zip(dense, seen, strict=True):
                nodes[s] = np.unique(p.dof_node[np.flatnonzero(row)])
        rows.closed = loops_of(
            model, tree, [e for e, known in zip(numbers, tabled, strict=True) if known],
            self._layout(nodes, self._row_factors(counting)),
        )  # fmt: skip
        rows.closed.traced, rows.closed.traced_row = len(dense), np.array(dense, dtype=np.int64)
        rows.closed.dense, rows.closed.open = np.zeros(len(dense) * tree.nv), np.zeros(len(dense))
        p.condenses = int(rows.loops > 0)
        for name in ("loop_error", "loop_kept", "loop_ended"):
            setattr(rows, name, np.zeros(rows.loops))

    def _row_factors(self, counting):
        """Factors that make rows and their columns dimensionless, those of ``rank.scaling``.

        Rows of couplings have the numbers of their joints, and none is a rounding error.
        """
        model, columns = self.model, self.mechanism.units.copy()
        own = np.zeros(0)
        if model.is_constrained:
            units = scaling(model)
            own = units.rows if counting is None else units.rows[counting]
            columns[self.of_v] = units.columns
        return np.concatenate([own, np.full(len(model.couplings), np.inf)]), columns

    def _layout(self, nodes, factors):
        """Lists of the nodes of rows; where the rows begin, and the place of a variable in each.

        Args:
            nodes: of rows: the nodes that move them.
            factors: of rows and of columns, see ``_row_factors``.
        """
        rows, p = self.rows, self.problem
        rows.loop_first = np.cumsum([0, *map(len, nodes)]).astype(np.int64)
        rows.loop_node = np.concatenate([np.zeros(0, dtype=np.int64), *nodes]).astype(np.int64)
        width = [int(p.node_count[own].sum()) for own in nodes]
        at = np.cumsum([0, *width]).astype(np.int64)
        rows.loop_value = np.zeros(at[-1])
        rows.loop_rounding = np.zeros(at[-1])
        places = []
        for s, own in enumerate(nodes):
            dofs = [np.arange(p.node_first[a], p.node_first[a] + p.node_count[a]) for a in own]
            flat = np.concatenate([np.zeros(0, dtype=np.int64), *dofs])
            rounding = RANK_TOLERANCE / (factors[0][s] * factors[1][flat])
            rows.loop_rounding[at[s] : at[s + 1]] = rounding
            places.append({int(k): n for n, k in enumerate(flat)})
        return at, places

    # --- kernels ----------------------------------------------------------------------------------

    def tied(self) -> Kernels:
        """The code of a step, tied to the arrays here."""
        s, m, b, w, rows = self.s, self.mechanism, self.balance, self.flight, self.rows
        h, one, now = s.part, m.pose[1:], (s.time, s.q, s.v, s.inputs)
        arrays = {
            "to_middle": (s.q, s.v, s.ahead, h, m.alone, s.q_m, s.v_m),
            "to_end": (s.q_m, s.after, s.after, h, m.alone, s.q_e, s.v_e),
            "to_shifted": (s.q_m, s.after, s.x, h, m.alone, s.q_e, s.v_e),
            "terms": (s.q_m, one, m.S, m.F), "terms_before": (s.q, w.pose[1:], w.S, w.F),
            "terms_after": (s.q_e, w.pose[1:], w.S, w.F), "poses_after": (s.q_e, w.pose[1:]),
            "bias": (s.q_m, s.mean, s.given, m.alone, s.bias), "springs": (s.q, s.v, s.spring),
            "carried": (s.q_m, s.carried), "forces": (*now, s.held),
            "arms": (s.q_m, self.drives.length, self.drives.dense),
            "loop_springs": (s.q_m, self.springs.length, self.springs.dense),
            "loop_joints": (s.q_m, rows.joint_place, rows.joint_arm),
            "resistance": (*now, s.more_K, s.more_D),
            "energy_before": (s.q, s.v, b.of_motion, b.of_place),
            "energy_after": (s.q_e, s.v_e, b.of_motion, b.of_place),
            "loops": (s.q_m, rows.closed.dense, rows.closed.open),
            "loops_end": (s.q_e, rows.closed.dense, rows.closed.open),
        }  # fmt: skip
        kernels: dict[str, Any] = {
            name: term_kernel(self.tree, of) for name, of in _TERMS.items() if self.tree.nv
        }
        kernels["forces"], kernels["resistance"] = self._applied
        kernels["springs"] = term_kernel(self.tree, "springs") if s.springs else None
        kernels["loops"] = kernels["loops_end"] = self._constraints
        kernels["arms"], kernels["loop_springs"] = self._arms, self._springs
        kernels["loop_joints"] = loop_joint_kernel(self.model) if rows.loop_joints else None
        kernels["carried"] = carrying_kernel(self.model) if s.carries else None
        rows.closed.pose, rows.closed.S = m.pose, m.S
        rows.closed.pose_e, rows.closed.S_e = w.pose, w.S
        return Kernels(**{name: tied_code(kernels.get(name), *x) for name, x in arrays.items()})

    @property
    def numbers(self) -> dict[str, Array]:
        """Tables that the code reads, by name, to be written where the engine has its own."""
        data = data_of(self.tree)
        return {} if data is None else data.numbers[BODIES] | data.numbers[SINGLE]

    # --- steps ------------------------------------------------------------------------------------

    def step(
        self, q: ArrayLike, qd: ArrayLike, h: float, tau: ArrayLike = 0.0, *, count: int = 1,
        memory: Memory | None = None, t: float = 0.0, control: ArrayLike | None = None,
    ) -> Stepped:  # fmt: skip
        """The state after ``count`` steps of ``h`` seconds under the same forces and controls.

        Args:
            q: joint positions, (nq,).
            qd: joint velocities, (nv,).
            h: length of a step [s].
            tau: joint forces held, (nv,).
            count: number of steps.
            memory: of the motion; by default that of the last call.
            t: time at the start [s].
            control: of the actuators, (n,); None where they exert nothing.
        """
        s = self.s
        self._load(memory, np.asarray(q), np.asarray(qd))
        s.h, s.time[0] = h, t
        self.drives.acts = int(control is not None or self.drives.reads)
        if control is not None:
            self.drives.u[:] = control
        self.hold(tau)
        taken = self.go_on(count)
        return Stepped(
            s.q[self.of_q], s.v[self.of_v], float(self._total[10]), self._total[:10].copy(), taken
        )

    @property
    def held(self) -> Array:
        """What steps hold: inputs of forces or of actuators, or forces of all joints."""
        return self.s.inputs if self.s.inputs_count else self.s.held

    def hold(self, values: ArrayLike) -> None:
        """Let the next steps hold inputs, or joint forces, (nv,)."""
        if self.s.inputs_count:
            self.s.inputs[:] = values
        else:
            self.s.held[self.of_v] = values

    @cached_property
    def take(self) -> Any:
        """``take_steps`` of these parts, as a function of its further arguments."""
        return bound(take_steps, self.parts)

    def go_on(self, count: int) -> int:
        """Take more steps from where the last one ended, as it was taken; how many were."""
        if count <= SLICE and self._moves:
            code = self.take(count, False)
            return count if code == 0 else self.went_on(code, count)
        if not self._moves:
            return count
        with Interrupt() as interrupt:
            pace, end = Pace(SLICE), SLICE
            done = self.went_on(self.take(end, False), end)
            while done == end < count:
                interrupt.look()
                end = min(done + pace.next(), count)
                done = self.went_on(self.take(end - done, True), end)
        return done

    def went_on(self, code: int, count: int) -> int:
        """Help steps that ended with a code, until there are ``count`` in this call; how many."""
        while code < 0:
            if code in (of_step.IN_FLIGHT, of_step.NO_CONTROL):
                return self.parts.taken
            if code == of_step.NO_TRUST:
                why = self._untrusted()
                self.reported()
                raise SimulationError(f"{why}. Take shorter steps, or strict=False")
            self._help(code)
            code = self.take(count - self.parts.taken, True)
        if code > 0:
            self.warn_of_turning()
            self.warn_of_errors()
        return count

    @property
    def is_finite(self) -> bool:
        """Whether the work of the last call is a number: so are the states that it is made of."""
        return isfinite(self._total[10])

    def warn_of_errors(self) -> None:
        """Warn, once, of a step that cannot be trusted."""
        if self.parts.warned or not self.parts.counts[1] or not self.warns:
            return
        if not np.abs(self.s.v).max() < _EXPLODED:  # which is an error of its own
            return
        self.parts.warned = 1
        warn(
            f"{self._untrusted()}. Further ones are counted: report().unsolved, or "
            f"strict=True raises an error. Take shorter steps, or masses that differ less",
            SimulationWarning,
        )

    def _untrusted(self):
        """The first step that cannot be trusted, in words."""
        p, n = self.parts, self.parts.counts
        parts = []
        if n[3]:
            parts.append(f"velocities at contacts miss their laws by {p.since[0]:.2g} m/s")
        if n[4]:
            i, j = p.worst[0]
            pair = f" of {self.pair_name(int(i), int(j))!r}" if i >= 0 else ""
            parts.append(f"bodies overlap by {p.since[3]:.2g} m, the last ones{pair}")
        if n[5]:
            parts.append(f"contact has added {p.since[8]:.2g} J of energy")
        return (
            f"step {n[2]} of {self.s.h:g} s of {self.model.name!r} cannot be trusted: "
            f"{', '.join(parts)}"
        )

    def reported(self) -> None:
        """Begin to count steps anew, after a report."""
        self.parts.since[:] = 0.0
        self.parts.counts[:] = 0

    def warn_of_turning(self) -> None:
        """Warn, once, of a body that turns so far in a step that contacts may be missed."""
        s = self.s
        if s.turn <= self.parts.most_turn:
            return
        angle = float(np.sqrt(s.turn))
        sheets = TRIANGLES in self.tables.shapes.kind
        advised = s.h * (_TURN_BY_MESH if sheets else _TURN / 2) / 2 / angle
        self.parts.most_turn = np.inf
        warn(
            f"body {self.tree.body_names[s.turner]!r} turns by {angle:.2g} rad in one step of "
            f"{s.h:g} s. Contacts are found once a step: what turns by more than {_TURN:g} rad "
            f"({_TURN_BY_MESH:g} rad beside triangle meshes, which are thin sheets) may be inside "
            f"others, or beyond a sheet, before it is seen. Take steps of "
            f"{advised:.1g} s, or thick shapes in place of sheets",
            SimulationWarning,
        )

    def contacts(self, q: ArrayLike, margin: float = 0.0) -> Contacts:
        """Contacts at a configuration, up to a gap of ``margin`` [m]."""
        return self._contacts(self.find(q, margin))

    def opening(self, q: ArrayLike) -> float:
        """Largest error of a loop or coupling at a configuration [m or rad]."""
        if not self.rows.loops:
            return 0.0
        self.s.q_m[:] = self._full(np.asarray(q, dtype=float))[0]
        run(self.parts.kernels.terms)
        close_in_middle(self.mechanism, self.problem, self.rows, self.parts.kernels)
        return float(loops_open(self.rows))

    def find(self, q: ArrayLike, margin: float = 0.0) -> Array:
        """Numbers in ``found`` of the contacts at a configuration, up to a gap of ``margin``."""
        m = self.mechanism
        q = self._full(np.asarray(q, dtype=float))[0]
        if self.tree.nv:
            self.s.q_m[:] = q
            run(self.parts.kernels.terms)
        place_shapes(self.tables.shapes, m.pose)
        self.pairs.motion[:] = 0.0
        while detect(
            self.tables.shapes, self.tables.special, self.pairs, self.touch, margin, self.found
        ) < 0:  # fmt: skip
            self._help(of_step.FOUND_FULL)
        return np.flatnonzero(self.found.gap[: self.found.count] <= margin)

    def overlap(self, q: ArrayLike) -> float:
        """Largest overlap of shapes at a configuration [m]."""
        return float(np.max(-self.found.gap[self.find(q)], initial=0.0))

    @property
    def stiffness(self) -> Array:
        """Implicit stiffness of the variables, a copy."""
        return self.mechanism.stiffness[self.of_v]

    @property
    def damping(self) -> Array:
        """Implicit damping of the variables, a copy."""
        return self.mechanism.damping[self.of_v]

    def resist(self, own: tuple, more: tuple) -> None:
        """Take stiffness and damping that forces have beside those of the joints: implicitly."""
        self.s.more_K[self.of_v], self.s.more_D[self.of_v] = more
        self.mechanism.stiffness[self.of_v] = own[0] + more[0]
        self.mechanism.damping[self.of_v] = own[1] + more[1]

    def prescribe(self, qdd: ArrayLike, qd: ArrayLike, move: ArrayLike) -> None:
        """Motion of prescribed variables in the next step; zero for others.

        Args:
            qdd: accelerations.
            qd: velocities at the end.
            move: velocities with which they come to their places from the middle on.
        """
        for name, values in (("given", qdd), ("given_v", qd), ("given_x", move)):
            getattr(self.s, name)[self.of_v] = values

    def _load(self, memory, q, qd):
        """Have the impulses of a motion, and know whether its energy is that of the last step."""
        s, rows = self.s, self.rows
        if not (np.array_equal(s.q[self.of_q], q) and np.array_equal(s.v[self.of_v], qd)):
            self.balance.known = rows.follows = 0
            s.overlap = np.inf  # not known
            s.change[:] = s.last[:] = 0.0
            s.q[:], s.v[:] = self._full(q, qd)
            self._wake()
        if memory is None or memory is self._current:
            return
        if self._current is not None:
            self._current.arrays = self.saved()
        self._current = memory
        rows.slot[:] = rows.known = 0
        for name in _OF_ROWS:
            getattr(rows, name)[:] = memory.arrays.get(name, 0.0)
        key = memory.arrays.get("key", ())
        while len(key) >= rows.groups_room:
            self._help(of_step.FULL)
        for name in OF_CONTACTS if len(key) else ():
            getattr(rows, name)[: len(key)] = memory.arrays.get(name, 0.0)  # older files have less
        rows.known = len(key)
        same = np.array_equal(memory.arrays.get("state"), np.concatenate([q, qd]))
        rows.follows = int(same and memory.arrays.get("follows", 1))
        self.balance.known = int(same and memory.arrays["energy_known"])
        for name in ("change", "last"):
            getattr(s, name)[:] = memory.arrays[name] if same else 0.0
        self._wake()
        if same:
            self.balance.energy[:] = memory.arrays["energy"]
            for name in _OF_SLEEP:
                getattr(self.sleep, name)[:] = memory.arrays.get(name, 0)
            self.sleep.asleep = int(self.sleep.sleeps.sum())
        known_again(rows)

    def _wake(self):
        """Let nothing sleep."""
        self.sleep.sleeps[:] = self.sleep.calm[:] = self.sleep.asleep = 0

    def _full(self, q, qd=None):
        """The state of all joints."""
        if not self.model.couplings:
            return q, qd
        at = Gearing(self.model, q, qd)
        return at.q, at.qd

    def saved(self) -> dict[str, Array]:
        """Impulses that the next step starts from, by name."""
        rows = self.rows
        found = {name: getattr(rows, name)[: rows.known].copy() for name in OF_CONTACTS}
        found |= {name: getattr(rows, name).copy() for name in _OF_ROWS}
        state = np.concatenate([self.s.q[self.of_q], self.s.v[self.of_v]])
        more = {
            "state": state, "change": self.s.change.copy(), "last": self.s.last.copy(),
            "energy": self.balance.energy.copy(),
        }  # fmt: skip
        more |= {name: getattr(self.sleep, name).copy() for name in _OF_SLEEP}
        more |= {"energy_known": np.array(self.balance.known), "follows": np.array(rows.follows)}
        return found | more

    def forces(self) -> "ContactForces":
        """Contacts that had rows in the last step."""
        rows, n, force = self.rows, self.rows.contacts, self._forces()
        found = self._contacts(rows.contact[:n])
        return ContactForces(found, force[:, :3], force[:, 3:], rows.slip[:n].copy())

    def _forces(self):
        """Forces and moments of the contacts of the last step, (n, 6)."""
        rows, n = self.rows, self.rows.contacts
        return np.where(np.arange(6) < rows.dim[:n, None], rows.scale[:n] * rows.force[:n], 0.0)

    def name_of(self, first: int, second: int, feature: int) -> str:
        """Name of a contact of two shapes."""
        return f"{self.pair_name(first, second)}:{feature}"

    def _contacts(self, which):
        """Some of those that were found last."""
        f = self.found
        first, second, bodies = f.first[which], f.second[which], f.bodies[which]
        keys = zip(first.tolist(), second.tolist(), f.feature[which].tolist(), strict=True)
        names = tuple(self.name_of(*key) for key in keys)
        return Contacts(
            bodies[:, 0], bodies[:, 1], f.point[which], f.normal[which], f.gap[which], names,
            f.friction[which, 0], f.restitution[which],
        )  # fmt: skip

    @property
    def joint_forces(self) -> Array:
        """Forces of stops, dry friction and loops in the last step, in this order [N or N·m]."""
        rows = self.rows
        return np.concatenate([rows.stop_kept, rows.dry_kept, rows.loop_kept])

    def pair_name(self, i: int, j: int) -> str:
        """Name of a pair of shapes."""
        found = self._names.get((i, j))
        if found is None:
            own = names_of(self.model).own
            parts = []
            for k in (i, j):
                n = int(self.tables.numbers[k])
                g = self.model.geometry[n]
                parts.append(own[n] or g.name or g.link or self.model.body_names[g.body])
            found = self._names[i, j] = "/".join(parts)
        return found

    def _help(self, code):
        """More room, or an error."""
        if code == of_step.NO_INERTIA:
            raise SingularError(self._no_inertia(self.s.culprit))
        if code == of_step.FOUND_FULL:
            self.found = self.parts.found = found_tables(2 * self.found.capacity)
            self.parts.late = found_tables(self.found.capacity)
            self.pairs = self.parts.pairs = pair_tables(
                self.tables.shapes, self.tree.body_count + 1, 2 * self.pairs.capacity
            )
            self._list_found()
        elif code == of_step.FULL:
            self._make_room(2 * self.rows.groups_room)
            have_room(self.parts.before, self.rows)
            enlarge(self.work, self.problem)
        else:
            enlarge(self.work, self.problem)

    def _list_found(self):
        """Lists of the contacts found, as many as there is room for."""
        rows, n = self.rows, max(self.found.capacity, 1)
        rows.active, rows.order, rows.match = np.zeros((3, n), dtype=np.int64)
        rows.slept, rows.local = np.zeros((n, 6)), np.zeros((n, 3))

    def _no_inertia(self, k):
        model = self.tree
        i = next(i for i, at in enumerate(model.v_slice) if i and at.start <= k < at.stop)
        if not np.isfinite(self.s.q_m).all():
            return (
                f"joint {model.joint_names[i - 1]!r} does not stay finite in steps of "
                f"{self.s.h:g} s: forces or velocities are too large"
            )
        return (
            f"TimeStepping divides by the inertia that joints move with loops open, and joint "
            f"{model.joint_names[i - 1]!r} moves none: give body {model.body_names[i]!r}, or a "
            f"body beyond it, mass away from the joint axis, or the joint armature"
        )


_OF_GROUPS: dict[str, tuple] = {
    "contact": (), "axes": (3, 3), "scale": (6,), "before": (), "gap": (), "key": (3,),
    "kept": (6,), "force": (6,), "slip": (3,), "dim": (), "loop_of": (), "end": (),
    "ended": (3,), "spot": (3,), "bent": (3,), "turned": (2, 3), "claimed": (), "prior": (3,),
    "bend": (3,), "left": (),
}  # fmt: skip


_TERMS = {
    "to_middle": "moved", "to_end": "moved", "to_shifted": "moved", "terms": "terms",
    "terms_before": "terms", "terms_after": "terms", "poses_after": "poses", "bias": "bias",
    "energy_before": "energies", "energy_after": "energies",
}  # fmt: skip


def _have_springs(tree):
    """Whether joints have springs or dampers."""
    names = ("stiffness", "damping")
    return any(has_dynamics(body, name) for body in tree.bodies for name in names)


def _random(model, rng):
    return np.concatenate([np.zeros(0), *(joint.random(rng) for joint in model.joint[1:])])


def _column(values, kind: Any = float):
    return np.array(list(values), dtype=kind).reshape(-1)


def _rows(joints, model, of_q, of_v) -> Rows:
    """Rows of the joints and tendons of a model, which come after those of its joints."""
    stops = [(of_q[i], of_v[k], sign, bound) for i, k, sign, bound in joints.stops]
    stops += [(-1, -1 - t, sign, bound) for t, sign, bound in joints.tendon_stops]
    dry = [(of_v[i], level) for i, level in joints.friction]
    dry += [(-1 - t, level) for t, level in joints.tendon_friction]
    return Rows(
        stops=len(stops), stop_q=_column((s[0] for s in stops), np.int64),
        stop_v=_column((s[1] for s in stops), np.int64), stop_sign=_column(s[2] for s in stops),
        stop_at=_column(s[3] for s in stops), stop_kept=np.zeros(len(stops)),
        stop_bounce=np.full(len(stops), float(joints.restitution)), dry=len(dry),
        dry_v=_column((d[0] for d in dry), np.int64), dry_level=_column(d[1] for d in dry),
        dry_kept=np.zeros(len(dry)), loop_first=np.zeros(1, dtype=np.int64), slots=1,
        **_tendons(model, joints.has_loop_joints(model)),
    )  # fmt: skip


def _tendons(model, with_loops):
    """Variables and coefficients of the tendons of a model, in the variables of all joints.

    ``with_loops``: whether variables of loop joints follow, with arms that a kernel gives.
    """
    full, first, terms = model.uncoupled, [0], []
    for t in model.tendons:
        own = [
            (full.v_slice[i].start, full.q_slice[i].start, c)
            for i, c in zip(t.joints, t.coefficients, strict=True)
        ]
        terms += sorted(own)
        first.append(len(terms))
    arms = np.zeros((0, full.nv))
    if with_loops:
        seen, at = arms_that_occur(full, loop_joint_kernel(model)), position_index(full)
        arms = np.where(seen > 1e-9 * seen.max(axis=1, keepdims=True), seen, 0.0)
        for row in arms:
            terms += [(i, at[i], 0.0) for i in np.flatnonzero(row)]
            first.append(len(terms))
    return {
        "tendons": len(model.tendons), "loop_joints": len(arms),
        "joint_place": np.zeros(len(arms)), "joint_arm": np.zeros(arms.size),
        "tendon_first": _column(first, np.int64), "tendon_v": _column((x[0] for x in terms), int),
        "tendon_q": _column((x[1] for x in terms), int),
        "tendon_arm": _column(x[2] for x in terms),
        "tendon_offset": _column([*(t.offset for t in model.tendons), *np.zeros(len(arms))]),
    }  # fmt: skip
