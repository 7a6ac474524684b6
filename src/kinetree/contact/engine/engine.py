"""The engine: whole steps of rigid contact of one mechanism and scene, in compiled code."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.codegen.tied import run, tied_code
from kinetree.contact.collision.detect import detect, found_tables, touch_table
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.shape_tables import shape_tables
from kinetree.contact.collision.sweep import pair_tables
from kinetree.contact.collision.tables import SPHERE, TRIANGLES
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine import parts as of_step
from kinetree.contact.engine.actuator_tables import actuators_of, moving_arms, no_actuators
from kinetree.contact.engine.energy import balance_of, flight_of
from kinetree.contact.engine.joint_laws import joint_laws_of
from kinetree.contact.engine.joint_tables import joint_row_tables, row_kernel
from kinetree.contact.engine.known_contacts import known_again
from kinetree.contact.engine.loop_layout import lay_out_loops
from kinetree.contact.engine.mechanism import mechanism_of
from kinetree.contact.engine.messages import TURN, TURN_BY_MESH, no_inertia
from kinetree.contact.engine.options import EngineOptions
from kinetree.contact.engine.parts import Kernels, Parts, step_of
from kinetree.contact.engine.prescribed import (
    PrescribedMotion,
    prescribed_kernel,
    prescribed_places,
)
from kinetree.contact.engine.pushes import no_pushes
from kinetree.contact.engine.renewal import parts_as_made
from kinetree.contact.engine.shift import close_in_middle, loops_open
from kinetree.contact.engine.sleep import sleep_of
from kinetree.contact.engine.springs import springs_of
from kinetree.contact.engine.terms import (
    arm_kernel,
    carrying_kernel,
    fluid_kernel,
    moving_spring_kernel,
    term_kernel,
)
from kinetree.contact.engine.undoing import before_of, have_room
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.newton.problem import enlarge, problem_of, with_room, workspace
from kinetree.contact.scheme.constraints import NO_JOINT_ROWS
from kinetree.contact.settings import CLOSED, DEEP, SETTLED
from kinetree.errors import SingularError
from kinetree.model.gearing import Gearing
from kinetree.model.general.tables import data_of
from kinetree.model.limits import has_dynamics
from kinetree.model.model import Model

_MARGIN = 1e-3  # least distance at which contacts are looked at [m]
_ARRIVES = 3e-5  # overlap at the end of a step up to which nothing is solved again, likewise
_SPEED = 1e-4  # error of velocities of a step that can be trusted [m/s or rad/s]
_GAIN = 1e-3  # gain of energy in such a step, as a part of the kinetic energy
_TRUSTED = 1e-3  # overlap at the end of a step, likewise
_INSIDE = 0.01  # penetration from which on bodies are inside each other, in lengths of a mechanism


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
        **options: those of ``EngineOptions``.
    """

    def __init__(self, model: Model, scene: Any, *, joints: Any = NO_JOINT_ROWS, **options: Any):
        self.model, self.scene, self.joints = model, scene, joints
        self.options = EngineOptions(**options)
        tree = model.uncoupled.spanning_tree
        tree = self.tree = tree.replace() if self.options.own else tree
        every = np.arange(tree.nq), np.arange(tree.nv)
        self.of_q, self.of_v = model.independent_variables if model.couplings else every
        self._have_collision()
        self._have_mechanism()
        self._have_rows()
        self._have_step()
        self._have_actuators()
        self.parts = self._all_parts()
        self._names: dict[tuple[int, int], str] = {}
        self._as_made: Any = None

    def _have_collision(self):
        """Allocate the tables of shapes, near pairs and detected contacts."""
        self.tables = shape_tables(self.scene)
        self.pairs = pair_tables(self.tables.shapes, self.tree.body_count + 1)
        self.found, self.touch = found_tables(256), touch_table()

    def _have_mechanism(self):
        """Build the mechanism with its implicit resistance, and its contact problem."""
        given, tree = self.options, self.tree
        self.problem = problem_of(tree.expanded_parent, tolerance=given.tolerance)
        values = (given.stiffness, 0), (given.damping, 0), (self._free(), 1)
        spread = (self._spread(x, missing) for x, missing in values)
        self.mechanism = mechanism_of(tree, self.problem, *spread)
        self.mechanism.units, self.problem.alone = self._units(), self.mechanism.alone

    def _free(self):
        """Mask of velocity variables, 0 where prescribed and 1 else, (nv,); None if all free."""
        motions = self.options.prescription
        return None if motions is None else motions.others(self.model)

    def _have_rows(self):
        """Allocate the rows of joints, tendons and loops, with room for contact rows."""
        rows = self.rows = joint_row_tables(self.joints, self.model, self.of_q, self.of_v)
        rows.inside = _INSIDE * self.size
        rows.ball = (self.tables.shapes.kind == SPHERE).astype(np.int64)
        self._constraints = lay_out_loops(
            self.model, self.tree, self.problem, rows, self.mechanism.units
        )
        self._make_room(64)
        trees = self.problem.trees + 1
        rows.pile, rows.place, rows.rests = np.zeros((3, trees), dtype=np.int64)
        rows.moment = np.zeros(trees)

    def _have_step(self):
        """Set up settings and state of a step, sleep, energy balance and flight."""
        given, tree, mechanism, problem = self.options, self.tree, self.mechanism, self.problem
        self.work = workspace(problem)
        self.sleep = sleep_of(tree, mechanism, problem, given.sleeping)
        self.balance = balance_of(mechanism, problem)
        self.flight = flight_of(tree, mechanism, self.balance)
        s = self.s = step_of(tree, problem)
        s.rest, s.correction, s.margin = given.rest_velocity, given.correction_speed, _MARGIN
        s.deep, s.closed, s.settled = DEEP, CLOSED, SETTLED
        s.arrives, s.overlap = max(_ARRIVES * self.size, CLOSED), np.inf  # not known
        s.conserving, s.flying = int(given.conserving), int(given.flying)
        s.forced, s.resists = int(given.forces is not None), int(given.resistance is not None)
        s.springs = int(given.springs and _have_springs(tree))
        s.carries = int(bool(self.model.gravity_compensation))
        s.immersed = int(bool(self.model.fluid_forces))
        motions = given.prescription
        if motions is not None:
            s.guided, s.places = int(motions.traceable), prescribed_places(motions, self.model)
            s.placed = len(s.places)
        forces = given.forces
        s.inputs = np.zeros(given.inputs if forces is None else forces.inputs[-1].size)
        s.inputs_count = len(s.inputs)
        s.own_K, s.own_D = mechanism.stiffness.copy(), mechanism.damping.copy()

    def _have_actuators(self):
        """Build the tables of actuators, springs and external forces with their kernels."""
        model, problem, given = self.model, self.problem, self.options
        self._arms = arm_kernel(model, moving_arms(model)) if given.actuated else None
        self._springs = moving_spring_kernel(model)
        self.springs = springs_of(model, problem, self._springs)
        self.drives = no_actuators(self.tree.nv)
        if given.actuated:
            own = {"reads": given.reads, "drive": given.drive}
            self.drives = actuators_of(model, problem, self._arms, **own)
        self.pushes = no_pushes(self.tree.body_count + 1)

    def _all_parts(self) -> Parts:
        """``Parts`` record that joins all tables of the engine for the compiled step."""
        shapes = self.tables.shapes
        turn = TURN_BY_MESH if TRIANGLES in shapes.kind else TURN
        return Parts(
            step=self.s,
            mechanism=self.mechanism,
            problem=self.problem,
            work=self.work,
            rows=self.rows,
            shapes=shapes,
            special=self.tables.special,
            pairs=self.pairs,
            touch=self.touch,
            found=self.found,
            late=found_tables(256),
            worst=np.full((1, 2), -1, dtype=np.int64),
            balance=self.balance,
            flight=self.flight,
            kernels=self.bind_kernels(),
            sleep=self.sleep,
            before=before_of(self.rows, self.balance, self.sleep, self.tree.nv),
            drives=self.drives,
            springs=self.springs,
            pushes=self.pushes,
            joint_laws=joint_laws_of(*self.options.smooth, self.joints, self.of_v),
            total=np.zeros(11),
            limits=np.array([_SPEED, self.trusted_overlap, _GAIN]),
            since=np.zeros(12),
            counts=np.zeros(6, dtype=np.int64),
            strict=0,
            warned=1,
            most_turn=turn**2,
        )

    def keep_as_made(self) -> "Engine":
        """Save all numbers of a new engine, so that ``renew`` can restore them."""
        self._as_made = parts_as_made(self.parts)
        return self

    def renew(self) -> None:
        """Reset the engine to the state in which ``keep_as_made`` saved it, bit for bit."""
        self._as_made.again()
        self.found, self.pairs = self.parts.found, self.parts.pairs

    # --- tables -----------------------------------------------------------------------------------

    def _units(self):
        """Scales of the velocity variables: 1 for angles, the mechanism's size [m] for lengths."""
        shapes, joints = self.tables.shapes, self.tree.joint[1:]
        moving = shapes.body > 0
        spans = 2 * np.linalg.norm(shapes.box[:, 3:], axis=1)[moving & np.isfinite(shapes.radius)]
        self.size = float(spans.max(initial=0.0)) or 1.0
        of = {id(joint): joint.velocity_units() for joint in {id(j): j for j in joints}.values()}
        units = [unit for joint in joints for unit in of[id(joint)]]
        return np.array([1.0 if unit == "rad/s" else self.size for unit in units])

    @property
    def trusted_overlap(self) -> float:
        """Penetration at the end of a step up to which no warning is given [m]."""
        return max(_TRUSTED * self.size, CLOSED)

    def _make_room(self, groups):
        """Enlarge the lists of rows for this number of constraint groups."""
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
        """Values of the independent variables spread over all (nv,), others ``missing``."""
        found = np.full(self.tree.nv, float(missing))
        found[self.of_v] = missing if values is None else values
        return found

    # --- kernels ----------------------------------------------------------------------------------

    def bind_kernels(self) -> Kernels:
        """Bind the compiled kernels of a step to the arrays of this engine."""
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
            "fluid": (s.q_m, s.mean, s.fluid),
            "arms": (s.q_m, self.drives.length, self.drives.dense),
            "moving_springs": (s.q_m, self.springs.length, self.springs.dense),
            "moving_rows": (s.q_m, rows.moving_place, rows.moving_arm),
            "resistance": (*now, s.more_K, s.more_D),
            "prescribed": (
                s.time, s.part, s.q, s.v, s.given, s.given_v, s.given_x, s.end_q, s.end_v
            ),
            "energy_before": (s.q, s.v, b.of_motion, b.of_place),
            "energy_after": (s.q_e, s.v_e, b.of_motion, b.of_place),
            "loops": (s.q_m, rows.closed.dense, rows.closed.open),
            "loops_end": (s.q_e, rows.closed.dense, rows.closed.open),
        }  # fmt: skip
        kernels: dict[str, Any] = {
            name: term_kernel(self.tree, of) for name, of in _TERMS.items() if self.tree.nv
        }
        kernels["forces"] = self.options.forces
        kernels["resistance"] = self.options.resistance
        if s.guided:
            kernels["prescribed"] = prescribed_kernel(self.options.prescription, self.model)
        kernels["springs"] = term_kernel(self.tree, "springs") if s.springs else None
        kernels["loops"] = kernels["loops_end"] = self._constraints
        kernels["arms"], kernels["moving_springs"] = self._arms, self._springs
        kernels["moving_rows"] = row_kernel(self.joints, self.model)
        kernels["carried"] = carrying_kernel(self.model) if s.carries else None
        kernels["fluid"] = fluid_kernel(self.model) if s.immersed else None
        rows.closed.pose, rows.closed.S = m.pose, m.S
        rows.closed.pose_e, rows.closed.S_e = w.pose, w.S
        return Kernels(**{name: tied_code(kernels.get(name), *x) for name, x in arrays.items()})

    @property
    def numbers(self) -> dict[str, Array]:
        """Parameter tables that the compiled code reads, by name; empty without general code."""
        data = data_of(self.tree)
        return {} if data is None else data.numbers[BODIES] | data.numbers[SINGLE]

    # --- steps ------------------------------------------------------------------------------------

    @property
    def held(self) -> Array:
        """Array of inputs held during a step: of forces, of actuators, or joint forces."""
        return self.s.inputs if self.s.inputs_count else self.s.held

    def contacts(self, q: ArrayLike, margin: float = 0.0) -> Contacts:
        """``Contacts`` at configuration ``q``, up to a gap of ``margin`` [m]."""
        return self._contacts(self.find(q, margin))

    def opening(self, q: ArrayLike) -> float:
        """Largest position error of a loop or coupling at configuration ``q`` [m or rad]."""
        if not self.rows.loops:
            return 0.0
        self.s.q_m[:] = self._full(np.asarray(q, dtype=float))[0]
        run(self.parts.kernels.terms)
        close_in_middle(self.mechanism, self.problem, self.rows, self.parts.kernels)
        return float(loops_open(self.rows))

    def find(self, q: ArrayLike, margin: float = 0.0) -> Array:
        """Indices in ``found`` of the contacts at configuration ``q``, gaps to ``margin`` [m]."""
        m = self.mechanism
        q = self._full(np.asarray(q, dtype=float))[0]
        if self.tree.nv:
            self.s.q_m[:] = q
            run(self.parts.kernels.terms)
        place_shapes(self.tables.shapes, m.pose)
        self.pairs.motion[:] = 0.0
        while (
            detect(
                self.tables.shapes, self.tables.special, self.pairs, self.touch, margin, self.found
            )
            < 0
        ):
            self._help(of_step.FOUND_FULL)
        return np.flatnonzero(self.found.gap[: self.found.count] <= margin)

    def overlap(self, q: ArrayLike) -> float:
        """Largest penetration of shapes at configuration ``q`` [m]."""
        return float(np.max(-self.found.gap[self.find(q)], initial=0.0))

    @property
    def stiffness(self) -> Array:
        """Implicit stiffness of the independent velocity variables, (nv,): a copy."""
        return self.mechanism.stiffness[self.of_v]

    @property
    def damping(self) -> Array:
        """Implicit damping of the independent velocity variables, (nv,): a copy."""
        return self.mechanism.damping[self.of_v]

    def resist(self, own: tuple, more: tuple) -> None:
        """Add stiffness and damping of force laws to those that steps treat implicitly."""
        self.s.more_K[self.of_v], self.s.more_D[self.of_v] = more
        self.mechanism.stiffness[self.of_v] = own[0] + more[0]
        self.mechanism.damping[self.of_v] = own[1] + more[1]

    def prescribe(self, motion: PrescribedMotion) -> None:
        """Set the motion of prescribed variables for the next step."""
        s, given = self.s, (motion.qdd, motion.qd, motion.move, motion.end_qd)
        for to, values in zip((s.given, s.given_v, s.given_x, s.end_v), given, strict=True):
            to[self.of_v] = values
        s.end_q[self.of_q] = motion.end_q

    def _full(self, q, qd=None):
        """Positions and velocities of all joints, from those of the independent ones."""
        if not self.model.couplings:
            return q, qd
        if self._gears is None:  # ratios vary
            at = Gearing(self.model, q, qd)
            return at.q, at.qd
        ratios, follow = self._gears
        full = np.zeros(self.tree.nq)
        full[self.of_q] = q
        for coupling, at, leaders in follow:
            full[at] = coupling.position([full[k] for k in leaders])
        return full, None if qd is None else ratios @ qd

    @cached_property
    def _gears(self):
        """Constant velocity ratios and couplings with their positions; None if ratios vary."""
        model, at = self.model, self.tree.q_slice
        if not all(c.is_linear for c in model.couplings):
            return None
        follow = [
            (c, at[c.joint].start, [at[i].start for i in c.leaders])
            for c in model.couplings_in_order
        ]
        return Gearing(model, model.neutral()).G, follow

    def name_of(self, first: int, second: int, feature: int) -> str:
        """Name ``first/second:feature`` of the contact of two shapes with a feature number."""
        return f"{self.pair_name(first, second)}:{feature}"

    def _contacts(self, which):
        """``Contacts`` record of the detected contacts with these indices."""
        f = self.found
        first, second, bodies = f.first[which], f.second[which], f.bodies[which]
        keys = zip(first.tolist(), second.tolist(), f.feature[which].tolist(), strict=True)
        names = tuple(self.name_of(*key) for key in keys)
        return Contacts(
            bodies[:, 0],
            bodies[:, 1],
            f.point[which],
            f.normal[which],
            f.gap[which],
            names,
            f.friction[which, 0],
            f.restitution[which],
        )

    def pair_name(self, i: int, j: int) -> str:
        """Name ``first/second`` of a pair of shapes, by which their contacts are listed."""
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
        """Enlarge the tables that overflowed with this error code, or raise the error."""
        self.s.sharing.threads, self.s.sharing.helpers = 1, 0  # who have the lists as they were
        if code == of_step.NO_INERTIA:
            raise SingularError(no_inertia(self, self.s.culprit))
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
            enlarge(self.work, self.problem, 1)  # factors had enough
        else:
            enlarge(self.work, self.problem)

    def _list_found(self):
        """Allocate the per-contact lists for the capacity of detected contacts."""
        rows, n = self.rows, max(self.found.capacity, 1)
        rows.active, rows.order, rows.match = np.zeros((3, n), dtype=np.int64)
        rows.slept, rows.local = np.zeros((n, 6)), np.zeros((n, 3))


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
    """Whether any joint of a tree has stiffness or damping."""
    names = ("stiffness", "damping")
    return any(has_dynamics(body, name) for body in tree.bodies for name in names)
