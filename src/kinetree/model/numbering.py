"""Names of attachments as numbers of a model, and placements in the frames of its tree."""

from dataclasses import replace

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.actuator import Actuator, command_vectors, states_of
from kinetree.model.cameras import Camera
from kinetree.model.coupling import GravityCompensation
from kinetree.model.fluid import FluidForce
from kinetree.model.gearing import FOLLOWING_TOLERANCE, in_order
from kinetree.model.geometry import Geometry
from kinetree.model.names import number_of
from kinetree.model.parts import OF_JOINTS, Posture, as_floats
from kinetree.model.sensors import KINDS, Sensor
from kinetree.model.tendon import Tendon


class Numbering:
    """Numbers of names in a model, and placements in the frames of its tree.

    Args:
        bodies: of the model, in order.
        loop_names: names of the joints that close loops, which only actuators can act on.
        body_number: from name and role to the number of the body and its ``Y``, which takes
            the coordinates in which it was described to those of the tree.
        joints: names of all joints, for suggestions.
        where: what has these names, in error messages.
    """

    def __init__(self, bodies, loop_names, body_number, joints, where):
        self.bodies, self.loop_names, self.body_number = bodies, loop_names, body_number
        self.where = where
        self._names = [b.joint_name for b in bodies]
        self._known = list(dict.fromkeys((*joints, *loop_names)))
        self._body_names = {b.name for b in bodies}

    def closes_loop(self, name) -> bool:
        """Whether a joint closes a loop, so that it has no variables."""
        return name in self.loop_names and name not in self._names

    def joint(self, name, role) -> int:
        """Number of a joint of the tree by name; an error for loop joints."""
        if self.closes_loop(name):
            raise ModelError(
                f"{role} is {name!r}, which closes a loop and has no variables in the model; "
                f"use a joint of the tree (MechanismGraph.to_model(tree_joints=...) chooses it)"
            )
        found = self._known[number_of(name, self._known, role, self.where)]
        return self._names.index(found) + 1

    def geometry(self, g) -> Geometry:
        """Shape with its body's number, placed in the tree's frame of that body."""
        body, Y = self.body_number(g.body, f"body of geometry {g.name!r}")
        at = g.placement if Y is None else g.placement @ Y.inverse()
        return replace(g, body=body, placement=at)

    def actuator(self, joint, a) -> Actuator:
        """Actuator with the number of the tree or loop joint that it drives."""
        role = f"actuator {a.name!r}"
        if self.closes_loop(joint):
            a = replace(a, joint=0, loop=self.loop_names.index(joint) + 1)
        elif joint is not None:
            a = replace(a, joint=self.joint(joint, f"joint of {role}"), loop=0)
        ends = {of: self._frame(getattr(a, of), f"{of} of {role}") for of in ("frame", "reference")}
        return replace(a, **ends)

    def _frame(self, name, role):
        """Name of a frame; a body's original frame is ``<body>_link`` if the tree moved it."""
        moved = name in self._body_names and self.body_number(name, role)[1] is not None
        return f"{name}_link" if moved else name

    def tendon(self, t) -> Tendon:
        """Tendon with the numbers of its joints and its frames in the tree."""
        role = f"frame of tendon {t.name!r}"
        return with_joints(t, self.joint).rename(lambda name: self._frame(name, role))

    def gravity_compensation(self, on, mass, center) -> GravityCompensation:
        """Gravity compensation with its body's number, placed in the tree's frame."""
        body, Y = self.body_number(on, "body of gravity compensation")
        found = GravityCompensation(body, mass, center)
        return found if Y is None else found.moved(body, Y.inverse())

    def fluid_force(self, f) -> FluidForce:
        """Fluid force with its body's number, placed in the tree's frame."""
        body, Y = self.body_number(f.body, "body of a fluid force")
        return replace(
            f, body=body, placement=f.placement if Y is None else f.placement @ Y.inverse()
        )

    def sensor(self, s) -> Sensor:
        """Copy of a sensor with placements expressed in the tree's body frames."""
        kind = KINDS[s.kind].of if s.kind in KINDS else ""
        if kind == "joint":
            self.joint(s.of, f"joint of sensor {s.name!r}")
        for of, placement in (("of", "placement"), ("reference", "reference_placement")):
            name = getattr(s, of)
            if kind == "frame" and name in self._body_names:
                Y = self.body_number(name, f"body of sensor {s.name!r}")[1]
                if Y is not None:
                    s = replace(s, **{placement: getattr(s, placement) @ Y.inverse()})
        return s

    def camera(self, c) -> Camera:
        """Camera placed in the tree's frame of its body."""
        if c.of not in self._body_names:
            return c
        Y = self.body_number(c.of, f"body of camera {c.name!r}")[1]
        return c if Y is None else replace(c, placement=c.placement @ Y.inverse())


def with_joints(part, found):
    """Coupling or tendon with joints replaced by ``found``, from numbers or names."""
    changes = {}
    for name in OF_JOINTS:
        x = getattr(part, name, 0)
        role = f"{name.removesuffix('s')} of {type(part).__name__.lower()} {part.name!r}"
        if isinstance(x, tuple):
            changes[name] = tuple(found(i, role) for i in x)
        elif x != 0:
            changes[name] = found(x, role)
    return replace(part, **changes)


def posture_of(name, q, qd, bodies, joint_number) -> Posture:
    """Posture from positions and velocities by joint name; others neutral and zero."""
    moves, qd = qd is not None, qd or {}
    positions: list = [b.joint.neutral() for b in bodies]
    velocities: list = [np.zeros(b.joint.nv) for b in bodies]
    for what, given, parts in (("position", q, positions), ("velocity", qd, velocities)):
        for joint, value in given.items():
            role = f"joint of posture {name!r}"
            i = joint_number(joint, role) - 1
            value = as_floats(value, f"{what} of joint {joint!r} in posture {name!r}")
            if len(value) != len(parts[i]):
                raise ModelError(
                    f"{what} of joint {joint!r} in posture {name!r} needs {len(parts[i])} "
                    f"entries, got {len(value)}"
                )
            parts[i] = value
    q, qd = (tuple(float(x) for part in parts for x in part) for parts in (positions, velocities))
    return Posture(name, q, qd if moves else ())


def commands_by_number(name, given, actuators):
    """Control and activation vectors of a posture, from values by actuator name."""
    known = {"controls": [a.name for a in actuators], "activation": states_of(actuators)}
    commands = {}
    for (what, those), values in zip(known.items(), given, strict=True):
        role, commands[what] = f"{what} of posture {name!r}", {}
        for actuator, value in (values or {}).items():
            number_of(actuator, those, f"actuator in {role}", "model")
            found = as_floats(value, f"{role} for actuator {actuator!r}")
            if len(found) != 1:
                raise ModelError(f"{role} needs one number for {actuator!r}, got {len(found)}")
            commands[what][actuator] = found[0]
    return command_vectors(commands, actuators)


def check_followers(posture, named, couplings, bodies):
    """Raise ModelError where a posture contradicts the coupling of a joint."""
    starts = np.cumsum([0, *(b.joint.nq for b in bodies)])
    q = np.array(posture.q)
    for c in in_order(couplings):
        at, name = starts[c.joint - 1], bodies[c.joint - 1].joint_name
        belongs = c.position([q[starts[i - 1]] for i in c.leaders])
        if name in named and abs(q[at] - belongs) > FOLLOWING_TOLERANCE * (1 + abs(belongs)):
            raise ModelError(
                f"posture {posture.name!r} puts joint {name!r} at {q[at]:.6g}, where coupling "
                f"{c.name!r} does not have it: it belongs at {belongs:.6g}; tell where what leads "
                f"it is"
            )
        q[at] = belongs
