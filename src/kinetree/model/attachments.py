"""Attachments of a mechanism besides bodies and joints, by names before anything has a number.

``ModelBuilder`` and ``MechanismGraph`` collect couplings, geometry, actuators, tendons, postures,
pairs of shapes and sensors in the same way, and put numbers to the names when the tree is known.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.errors import ModelError, require_known
from kinetree.model.actuator import UNBOUNDED, Actuator, commands_of, fit_postures, servo_law
from kinetree.model.cameras import Camera
from kinetree.model.coupling import as_given
from kinetree.model.fluid import FluidForce
from kinetree.model.geometry import ContactPair, Geometry, Surface
from kinetree.model.names import Group
from kinetree.model.numbering import (
    Numbering,
    check_followers,
    commands_by_number,
    posture_of,
    with_joints,
)
from kinetree.model.parts import Coupling, as_floats, as_placement, relabel
from kinetree.model.sensors import KINDS, Sensor
from kinetree.model.tendon import Tendon
from kinetree.model.transfer import loop_state
from kinetree.spelling import explains_methods

_OF_ACTIVATION = (
    "time_constant", "deactivation_time", "activation_range", "muscle", "crank", "adhesion",
    "integral", "integral_zero", "integral_range",
)  # fmt: skip
"""What an actuator can have beside what it drives and an affine law."""
_OF_FLUIDS = ("wind", "coefficients", "added_mass", "added_inertia")
"""What a fluid force can have beside its shape, density and viscosity."""
_ALONG = ("stiffness", "damping", "friction")
"""What a tendon can have along it."""


@explains_methods
class Attachments:
    """The calls that add couplings, geometry, actuators and so on. Each returns the caller."""

    def __init__(self):
        self._couplings: list[Coupling] = []  # these parts have names where a model has numbers
        self._geometry: list[Geometry] = []
        self._tendons: list[Tendon] = []
        self._actuators: list[tuple] = []
        self._gravity_compensation: list[tuple] = []
        self._fluid_forces: list[FluidForce] = []
        self._postures: list[tuple] = []
        self._contact_pairs: list[ContactPair] = []
        self._sensors: list[Sensor] = []
        self._cameras: list[Camera] = []
        self._groups: list[Group] = []
        self._complete_postures: set[str] = set()  # of models: these speak of all joints

    def coupling(
        self,
        name: str,
        *,
        joint: str,
        source: str | None = None,
        coefficients=(0.0, 1.0),
        sources=(),
        weights=(),
        function=None,
        tendon="",
    ):
        """Couple a joint to others: ``q = c0 + c1 x + c2 x² + ...``, see ``Coupling``.

        Args:
            name: unique name, among the joints.
            joint: name of the joint that follows.
            source: name of the joint that leads, ``x`` is its position; without one the joint is
                held at ``c0``.
            coefficients: of the polynomial, the constant first.
            sources: names of several joints that lead, as those of a differential.
            weights: of each of them in the sum ``x``; one each by default.
            function: from the positions of the leaders to that of the joint, in place of the
                polynomial.
            tendon: name of a tendon whose length is the position of the joint, in their place.
        """
        what, law = f"of coupling {name!r}", {"coefficients": coefficients, "weights": weights}
        values: dict[str, Any] = {k: as_floats(x, f"{k} {what}") for k, x in law.items()}
        values |= {"joint": joint, "source": 0 if source is None else source}
        values |= {"sources": tuple(sources), "function": function, "tendon": tendon}
        self._couplings.append(Coupling(name, **values))
        return self

    def geometry(
        self,
        shape,
        *,
        on: str | None = None,
        at=None,
        name="",
        visual=True,
        collision=True,
        color=None,
        surface: Surface | None = None,
        link="",
    ):
        """Fix a shape to the body ``on`` (the base by default), centred at ``at``.

        Args:
            shape: such as ``geometry.Box((0.1, 0.1, 0.5))``.
            on: name of the body.
            at: position (3,), pose (4, 4) as ``kt.pose`` returns it, or ``Plucker`` on the body.
            name: what to call it; need not be unique.
            visual: whether it is drawn.
            collision: whether it can touch others.
            color: red, green, blue and opacity, each from 0 to 1.
            surface: its friction and so on, and which others it touches.
            link: name of the part of the body that it belongs to, if that has a name.
        """
        color = color if color is None else as_floats(color, "color")
        looks = (name, visual, collision, color, surface, link)
        given: Any = (on, shape, as_placement(at), *looks)
        self._geometry.append(Geometry(*given))
        return self

    def contact_pair(
        self, first: str, second: str, *, surface: Surface | None = None, name: str = ""
    ):
        """Let shapes collide that would not by default, such as those of a body and its parent.

        Args:
            first: name of a shape, link, frame or body.
            second: name of the other.
            surface: coefficients of the pair; those of its shapes by default.
            name: what to call it; need not be unique.
        """
        self._contact_pairs.append(ContactPair(first, second, True, surface, name))
        return self

    def exclude(self, first: str, second: str, *, name: str = ""):
        """Exclude pairs of shapes from collision, by names of shapes, links, frames or bodies."""
        self._contact_pairs.append(ContactPair(first, second, False, name=name))
        return self

    def actuator(
        self,
        name: str,
        *,
        joint: str | None = None,
        gear=(1.0,),
        control=UNBOUNDED,
        effort=UNBOUNDED,
        tendon: str = "",
        frame: str = "",
        reference: str = "",
        kp: float | None = None,
        kv: float | None = None,
        gain=None,
        bias=None,
        activation: str = "",
        **more,
    ):
        """Add an actuator: a motor or servo that drives a joint, tendon or frame, see ``Actuator``.

        Without ``kp``, ``kv``, ``gain`` and ``bias`` it is a motor: the joint force is ``gear``
        times the control. With ``kp`` the control of a position servo is the position to hold,
        with ``kv`` alone that of a velocity servo is the velocity.

        Args:
            name: unique name, among the actuators.
            joint: name of the joint, which may be one that closes a loop.
            gear: joint force for a unit of force of the actuator, one entry per velocity variable;
                of a frame a wrench (moment, force), six entries.
            control: smallest and largest control.
            effort: smallest and largest force before the gear.
            tendon: name of a tendon to pull, in place of a joint.
            frame: name of a frame or body to push, in place of a joint.
            reference: name of the frame relative to which ``frame`` is pushed.
            kp: stiffness of a position servo, force for a unit of length.
            kv: damping of a position servo, or the gain of a velocity servo.
            gain: of the control, a number or three: ``g0 + g1 length + g2 velocity``.
            bias: force without control, three numbers alike.
            activation: ``"integrator"``, ``"filter"``, ``"muscle"`` or ``"ramp"`` for one with a
                state.
            **more: further attributes of ``Actuator``: ``time_constant``, ``deactivation_time`` and
                ``activation_range`` of the activation; ``muscle``, in place of gain and bias;
                ``crank``, the length of a rod between ``frame`` and ``reference``; ``adhesion``;
                ``integral``, ``integral_zero`` and ``integral_range`` of integral action.
        """
        what, law = f"of actuator {name!r}", {"gain": gain, "bias": bias}
        law = {k: x for k, x in servo_law(name, law, kp, kv).items() if x is not None}
        for key in more:
            require_known(key, _OF_ACTIVATION, f"actuator {name!r} has no {key!r}")
        bounds = {"control": control, "effort": effort}
        for key in ("activation_range", "integral_range"):
            bounds[key] = more.pop(key, UNBOUNDED)
        numbers = {k: as_floats(x, f"{k} {what}") for k, x in {"gear": gear, **bounds}.items()}
        on = {"tendon": tendon, "frame": frame, "reference": reference}
        state: dict[str, Any] = {"activation": activation, **more}
        self._actuators.append((joint, Actuator(name, **numbers, **on, **law, **state)))
        return self

    def tendon(
        self,
        name: str,
        *,
        joints=None,
        path=(),
        offset=0.0,
        lower=-math.inf,
        upper=math.inf,
        rest=(0.0, 0.0),
        **forces,
    ):
        """Add a tendon over joints or along a path in space, see ``Tendon``.

        Args:
            name: unique name, among the tendons.
            joints: coefficients by joint name, such as ``{"upper": 0.02, "lower": -0.01}``:
                ``L = offset + c1 q_1 + c2 q_2 + ...``.
            path: frames or bodies that it runs through, such as ``("shoulder", "hand")``, with
                ``Wrap`` and ``Pulley`` between them.
            offset: length where all positions are zero, without the path.
            lower: smallest length.
            upper: largest length.
            rest: length at which the spring is slack, or the two between which it is.
            **forces: ``stiffness`` of its spring, ``damping`` against the rate of the length,
                ``friction``, the largest force of dry friction.
        """
        joints = {} if joints is None and path else joints
        if not isinstance(joints, dict):
            raise ModelError(
                f"joints of tendon {name!r} must be coefficients by joint name, such as "
                f"{{'upper': 1.0, 'lower': -0.5}}, got {joints!r}"
            )
        over = tuple(joints), as_floats(list(joints.values()), f"joints of tendon {name!r}")
        for key in forces:
            require_known(key, _ALONG, f"tendon {name!r} has no {key!r}")
        given: Any = (name, *over, offset, lower, upper)
        self._tendons.append(Tendon(*given, rest=rest, path=path, **forces))
        return self

    def gravity_compensation(self, body: str, *, mass, center=(0.0, 0.0, 0.0)):
        """Compensate the weight of a mass on a body, see ``GravityCompensation``.

        Args:
            body: name of the body.
            mass: the mass whose weight is balanced [kg].
            center: where, in coordinates of the body [m], (3,).
        """
        self._gravity_compensation.append((body, mass, center))
        return self

    def fluid_force(self, shape, *, on: str, at=None, density=0.0, viscosity=0.0, **rest):
        """Add fluid forces on a shape of a body, see ``FluidForce``.

        Args:
            shape: a ``geometry.Box`` or ``geometry.Ellipsoid`` that the fluid flows around.
            on: name of the body.
            at: where the shape is on it: position (3,), pose (4, 4) or ``Plucker``.
            density: of the fluid [kg/m³].
            viscosity: of the fluid [Pa·s].
            **rest: further attributes of ``FluidForce``: ``wind``, and ``coefficients``,
                ``added_mass`` and ``added_inertia`` of an ellipsoid.
        """
        for key in rest:
            require_known(key, _OF_FLUIDS, f"a fluid force has no {key!r}")
        where: Any = on
        force = FluidForce(where, shape, as_placement(at), density, viscosity, **rest)
        self._fluid_forces.append(force)
        return self

    def group(self, name: str, *, joints, tip=""):
        """Name a group of joints, see ``Group``.

        Args:
            name: unique name, among the groups and joints.
            joints: names of joints, and of groups that were added before.
            tip: name of the frame or body at its end.
        """
        known = {g.name: g.joints for g in self._groups}
        names = (joints,) if isinstance(joints, str) else joints
        found = dict.fromkeys(j for each in names for j in known.get(each, (each,)))
        self._groups.append(Group(name, tuple(found), tip))
        return self

    def posture(self, name: str, *, q=None, qd=None, controls=None, activation=None):
        """Store a named state (posture) of the model: positions, velocities, controls.

        Args:
            name: unique name, among the postures.
            q: position variables by joint name, a number or (nq,), or by group, one after the
                other; the rest are neutral.
            qd: velocity variables in the same way; the rest are zero.
            controls: of actuators by name, such as those that hold the posture; the rest zero.
            activation: of actuators that have one, by their names; the rest are zero.
        """
        given = {"q": q, "qd": qd, "controls": controls, "activation": activation}
        for what, values in given.items():
            if values is not None and not isinstance(values, dict):
                by = "joint" if what in ("q", "qd") else "actuator"
                raise ModelError(
                    f"{what} of posture {name!r} must be given by {by} name, such as "
                    f"{{'elbow': 0.5}}, got {values!r}"
                )
        self._postures.append((name, q, qd, controls, activation))
        return self

    def sensor(self, name: str, kind: str, *, of="", reference="", at=None, **rest):
        """Add a sensor by kind and object, see ``Sensor``.

        Args:
            name: unique name, among the sensors.
            kind: what it measures, such as "gyro" or "jointpos".
            of: name of the joint, tendon, actuator, frame, body or shape that it is a sensor of.
            reference: name of the frame or body that a frame is measured with respect to.
            at: where it sits on the frame: a position (3,) or a ``Plucker``.
            **rest: further attributes of ``Sensor``, such as ``cutoff`` and ``noise``.
        """
        return self.add_sensor(Sensor(name, kind, of, reference, as_placement(at), **rest))

    def add_sensor(self, sensor: Sensor):
        """Add an existing ``Sensor`` object."""
        self._sensors.append(sensor)
        return self

    def camera(self, name: str = "camera", *, of: str = "", at=None, **rest):
        """Add a camera on a body or frame, see ``Camera``.

        Args:
            name: unique name, among the cameras.
            of: name of the frame or body that carries it; empty for the base.
            at: where it sits there: a position (3,) or a ``Plucker``; it looks along its -z axis.
            **rest: further attributes of ``Camera``, such as ``angle`` and ``size``.
        """
        return self.add_camera(Camera(name, of, as_placement(at), **rest))

    def add_camera(self, camera: Camera):
        """Add a ``Camera``, such as one of ``kinetree.camera``."""
        self._cameras.append(camera)
        return self

    def _add_attachments(self, model, without=()):
        """Add the attachments of ``model``, except those on the joints ``without``."""
        body, joint = model.body_names, (0, *model.joint_names)
        self._geometry += [replace(g, body=body[g.body]) for g in model.geometry]
        self._contact_pairs += model.contact_pairs
        tendons = [with_joints(t, lambda i, _: joint[i]) for t in model.tendons]
        lost = {t.name for t in tendons if set(t.joints) & set(without)}
        self._tendons += [t for t in tendons if t.name not in lost]
        couplings = (with_joints(c, lambda i, _: joint[i]) for c in model.couplings)
        self._couplings += [
            as_given(c)
            for c in couplings
            if not {c.joint, *c.leaders} & set(without) and c.tendon not in lost
        ]
        own = [(model.driven_joint(a) or None, a) for a in model.actuators]
        own = [(joint, a) for joint, a in own if joint not in without and a.tendon not in lost]
        self._actuators += own
        for g in model.gravity_compensation:
            self.gravity_compensation(body[g.body], mass=g.mass, center=g.center)
        self._fluid_forces += [relabel(f, body=body[f.body]) for f in model.fluid_forces]
        driven = {a.name: model.driven_joint(a) for a in model.actuators}
        self._sensors += [s for s in model.sensors if not {s.of, driven.get(s.of)} & set(without)]
        self._cameras += model.cameras
        joints = {*model.joint_names, *model.loop_names} - {*without}
        frames = (*model.frame_names, *model.body_names)
        self._groups += [g.within(joints, frames) for g in model.groups]
        model = model.uncoupled  # whose postures tell of all joints
        for p in model.postures:
            kept = [(i, name) for i, name in enumerate(joint) if i and name not in without]
            q = {name: p.q[model.q_slice[i]] for i, name in kept}
            qd = {name: p.qd[model.v_slice[i]] for i, name in kept if p.moves}
            for loop in model.loops:  # which another tree may give variables to
                if loop.name not in without and loop.joint.nv:
                    state = p.q, p.qd if p.moves else model.zero_velocity
                    q[loop.name], qd[loop.name] = loop_state(model, loop, *state)
            commands = fit_postures([p], model.actuators, [a for _, a in own])[0]
            commands = {k: x or None for k, x in commands_of(commands, [a for _, a in own]).items()}
            self.posture(p.name, q=q, qd=qd if p.moves else None, **commands)
            self._complete_postures.add(p.name)

    def _model_fields(self, known: Numbering):
        """Fields of the model for all attachments, with names resolved to numbers."""
        couplings = [with_joints(c, known.joint) for c in self._couplings]
        actuators = [known.actuator(joint, a) for joint, a in self._actuators]
        return {
            "couplings": tuple(couplings),
            "geometry": tuple(known.geometry(g) for g in self._geometry),
            "actuators": tuple(actuators),
            "postures": tuple(
                self._posture(known, given, couplings, actuators) for given in self._postures
            ),
            "tendons": tuple(known.tendon(t) for t in self._tendons),
            "gravity_compensation": (
                *(known.gravity_compensation(*given) for given in self._gravity_compensation),
                *(known.fluid_force(f) for f in self._fluid_forces),
            ),
            "contact_pairs": tuple(self._contact_pairs),
            "sensors": (
                *(known.sensor(s) for s in self._sensors),
                *(known.camera(c) for c in self._cameras),
            ),
            "groups": tuple(self._groups),
        }

    def _posture(self, known, given, couplings, actuators):
        """Posture for the tree's joints, with values of groups resolved and couplings checked."""
        name, q, qd, *commands = given
        bodies = known.bodies
        q, qd = (self._by_joint(name, x, bodies, k) for x, k in ((q, "nq"), (qd, "nv")))
        of_tree = self._of_tree(name, q, qd, known.loop_names)
        posture = posture_of(name, of_tree[0] or {}, of_tree[1], bodies, known.joint)
        check_followers(posture, {*(of_tree[0] or ())}, couplings, bodies)
        return replace(posture, **commands_by_number(name, commands, actuators))

    def _by_joint(self, name, given, bodies, size):
        """Values of a posture by joint name, those of groups distributed over their joints."""
        groups = {g.name: g.joints for g in self._groups}
        if not given or not groups.keys() & given.keys():
            return given
        sizes = {b.joint_name: getattr(b.joint, size) for b in bodies}
        found = {}
        for key, value in given.items():
            if key not in groups:
                found[key] = value
                continue
            joints = [j for j in groups[key] if j in sizes]
            ends = np.cumsum([sizes[j] for j in joints]).tolist()
            value = as_floats(value, f"group {key!r} in posture {name!r}")
            if len(value) != (ends or [0])[-1]:
                raise ModelError(
                    f"group {key!r} in posture {name!r} needs {(ends or [0])[-1]} entries, got "
                    f"{len(value)}"
                )
            found |= {j: value[e - sizes[j] : e] for j, e in zip(joints, ends, strict=True)}
        return found

    def _of_tree(self, name, q, qd, loop_names):
        """Values of a posture without those of loop joints, which have no variables in the tree."""
        if name not in self._complete_postures:
            return q, qd
        return tuple(
            given and {joint: x for joint, x in given.items() if joint not in loop_names}
            for given in (q, qd)
        )

    def _attached_joints(self):
        """Names of the joints that attachments need as variables, and of those with actuators."""
        couplings = {name for c in self._couplings for name in (c.joint, *c.leaders)}
        named = (p for p in self._postures if p[0] not in self._complete_postures)
        groups = {g.name: g.joints for g in self._groups}
        told = (key for _, q, qd, *_ in named for key in (*(q or ()), *(qd or ())))
        postures = {joint for key in told for joint in groups.get(key, (key,))}
        tendons = {joint for t in self._tendons for joint in t.joints}
        sensed = {s.of for s in self._sensors if s.kind in KINDS and KINDS[s.kind].of == "joint"}
        driven = {joint for joint, _ in self._actuators if joint}
        return couplings | postures | tendons | sensed, driven
