"""The text of a URDF file."""

import warnings

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError, ModelWarning
from kinetree.model.arrays import as_model
from kinetree.model.coupling import require_written
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.writers.urdf.elements import NAMESPACE, add, add_inertial, add_look, own
from kinetree.writers.urdf.joints import add_dynamics, add_fixed, add_joint, add_limits, add_loop

__all__ = ["to_urdf"]


def to_urdf(model) -> str:
    """A model as URDF.

    The base is the root link, and frames are links without mass. What URDF lacks is written as
    ``kinetree:`` elements, which other programs skip: loops, armature, springs, couplings that are
    no mimic, limits of planar and free joints, gravity other than the standard one, postures.

    Raises:
        InteropError: for joints of the tree that URDF does not have.
    """
    model = as_model(model)
    robot = etree.Element("robot", nsmap={"kinetree": NAMESPACE})
    _name(robot, model.name)
    _add_links(robot, model)
    _add_joints(robot, model)
    _add_frames(robot, model)
    for loop in model.loops:
        add_loop(robot, loop, model.body_names)
    _add_actuators(robot, model)
    _add_rest(robot, model)
    etree.cleanup_namespaces(robot)
    etree.indent(robot)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return declaration + etree.tostring(robot, encoding="unicode") + "\n"


def _name(robot, name):
    try:
        robot.set("name", name)
    except ValueError:
        raise InteropError(f"the model name {name!r} holds characters that XML cannot") from None


def _add_links(robot, model):
    links = [add(robot, "link", name=name) for name in model.body_names]
    for link, body in zip(links[1:], model.bodies, strict=True):
        add_inertial(link, body.inertia, f"body {body.name!r}")
    lost = [g for g in model.geometry if not add_look(links[g.body], g)]
    if lost:
        kinds = ", ".join(sorted({type(g.shape).__name__ for g in lost}))
        warnings.warn(
            f"model {model.name!r}: {len(lost)} shapes are not written, since URDF has no {kinds}",
            ModelWarning,
            stacklevel=4,
        )


def _add_joints(robot, model):
    mimics = {c.joint: c for c in model.couplings if c.is_mimic}
    for i, body in enumerate(model.bodies, start=1):
        element = add_joint(robot, body, model.body_names[body.parent])
        add_limits(element, body)
        add_dynamics(element, body)
        if i in mimics:
            c = mimics[i]
            offset, multiplier = c.coefficients
            source = model.joint_names[c.source - 1]
            add(element, "mimic", joint=source, multiplier=multiplier, offset=offset)


def _add_frames(robot, model):
    """Each frame as a link on a fixed joint of the same name, or nearly so."""
    taken = {*model.joint_names, *(x.name for x in (*model.loops, *model.couplings))}
    for frame in model.frames:
        add(robot, "link", name=frame.name)
        name = frame.name
        while name in taken:
            name += "_fixed"
        taken.add(name)
        add_fixed(robot, name, model.body_names[frame.body], frame.name, frame.placement)


def _add_actuators(robot, model):
    for a in model.actuators:
        element = add(robot, "transmission", name=f"{a.name}_transmission")
        etree.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
        joint = add(element, "joint", name=model.driven_joint(a))
        actuator = add(element, "actuator", name=a.name)
        for part in (joint, actuator):
            interface = "hardware_interface/EffortJointInterface"
            etree.SubElement(part, "hardwareInterface").text = interface
        if len(a.gear) == 1:
            etree.SubElement(actuator, "mechanicalReduction").text = repr(float(a.gear[0]))
        own_part = {"gear": a.gear} if len(a.gear) != 1 else {}
        for key in ("control", "effort"):
            if np.any(np.isfinite(getattr(a, key))):
                own_part[key] = " ".join(repr(float(x)) for x in getattr(a, key))
        if own_part:
            add(actuator, own("actuator"), **own_part)


def _add_rest(robot, model):
    if not np.array_equal(model.gravity, STANDARD_GRAVITY):
        add(robot, own("gravity"), xyz=model.gravity)
    for c in model.couplings:
        if not c.is_mimic:
            require_written(c, "a URDF")
            ends = {"source": model.joint_names[c.source - 1]} if c.source else {}
            if c.sources:
                ends["sources"] = " ".join(model.joint_names[i - 1] for i in c.sources)
            law = {"weights": c.shares} if c.sources else {}
            law["coefficients"] = c.coefficients
            joint = model.joint_names[c.joint - 1]
            add(robot, own("coupling"), name=c.name, joint=joint, **ends, **law)
    for posture in model.postures:
        element = add(robot, own("posture"), name=posture.name)
        for i, name in enumerate(model.joint_names, start=1):
            if model.joint[i].nq:
                part = add(element, "joint", name=name, q=posture.q[model.q_slice[i]].tolist())
                if posture.moves:
                    part.set("qd", " ".join(map(repr, posture.qd[model.v_slice[i]].tolist())))
