"""Names and units of the entries in the arrays of a model, for exports, tables and legends."""

from typing import NamedTuple

from kinetree.model.memo import remember


def labels(model):
    """Number and name of the body of each array entry, by ``(argument, index)``."""
    labels = {}
    for i in range(1, model.body_count + 1):
        label = (i, model.body_names[i])
        labels.update((("q", (k,)), label) for k in _range(model.q_slice[i]))
        for name in ("qd", "qdd", "tau"):
            labels.update(((name, (k,)), label) for k in _range(model.v_slice[i]))
        labels.update((("f_ext", (i - 1, k)), label) for k in range(6))
    return labels


def _range(part):
    """Index range (``range``) of a slice."""
    return range(part.start, part.stop)


def layout(model):
    """Table of joints, entries of ``q`` and of joint vectors, with units."""
    positions, velocities = [], []
    for i in range(1, model.body_count + 1):
        joint, name = model.joint[i], model.joint_names[i - 1]
        kind = f"{name} ({type(joint).__name__})"
        for k, unit in zip(_range(model.q_slice[i]), joint.position_units(), strict=True):
            positions.append(f"  q[{k}]  {unit:4} {kind}")
        for k, unit in zip(_range(model.v_slice[i]), joint.velocity_units(), strict=True):
            force = "N m" if unit == "rad/s" else "N"
            velocities.append(f"  [{k}]  {unit}, {unit}^2, {force}  {kind}")
    lines = [f"Model {model.name!r}: {model.body_count} bodies, nq = {model.nq}, nv = {model.nv}"]
    if positions:
        lines += ["Joint positions (unit 1: part of a unit quaternion w, x, y, z):", *positions]
    if velocities:
        lines += ["Joint velocities, accelerations and forces:", *velocities]
    gravity = ", ".join(f"{g:g}" for g in model.gravity)
    return [*lines, f"Gravity ({gravity}) m/s^2 in base coordinates."]


class Variable(NamedTuple):
    """An entry of ``q`` or ``qd``."""

    name: str
    """The joint's, with its part where it has several, such as ``base.x``."""
    joint: str
    """Name of the joint."""
    unit: str
    """Of the position or velocity; ``1`` for entries of quaternions."""

    @property
    def is_turn(self) -> bool:
        """Whether the variable is an angle or angular rate."""
        return self.unit.startswith("rad")

    @property
    def force_unit(self) -> str:
        """Unit of the joint force along the variable: N or N·m."""
        return "N·m" if self.is_turn else "N"


def positions(model) -> tuple[Variable, ...]:
    """Joint, index and unit of every entry of ``q``."""
    return remember(model, ("layout.positions",), lambda: tuple(_each(model, 0)))


def velocities(model) -> tuple[Variable, ...]:
    """Joint, index and unit of every entry of ``qd`` and of joint forces."""
    return remember(model, ("layout.velocities",), lambda: tuple(_each(model, 1)))


def actuators(model) -> dict[str, tuple]:
    """Actuators of the entries of ``controls`` and ``activation``."""
    return {
        "controls": model.actuators,
        "activation": tuple(
            a for a in model.actuators for _ in range(bool(a.activation) + bool(a.integral))
        ),
    }


def _each(model, which):
    """Position or velocity variables one by one: body, label and unit."""
    for i, body in enumerate(model.bodies, start=1):
        joint = body.joint
        if joint.nv != model.joint[i].nv:
            continue  # it follows others
        units = joint.velocity_units() if which else joint.position_units()
        parts = (joint.velocity_parts if which else joint.position_parts) or range(len(units))
        for part, unit in zip(parts, units, strict=True):
            name = body.joint_name if len(units) == 1 else f"{body.joint_name}.{part}"
            yield Variable(name, body.joint_name, unit)
