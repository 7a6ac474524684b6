"""``to_srdf``: what a URDF file has no words for, as the SRDF file beside it."""

import warnings

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import ModelWarning
from kinetree.joints import Free, Planar, Spherical
from kinetree.model.arrays import as_model
from kinetree.writers.urdf import add


def to_srdf(model) -> str:
    """Groups, postures and contact pairs of a model as SRDF, beside the URDF of ``to_urdf``.

    Postures are group states of the smallest group that has all of their joints.
    """
    robot = etree.Element("robot", name=as_model(model).name)
    for g in model.groups:
        element = add(robot, "group", name=g.name)
        for name in g.joints:
            add(element, "joint", name=name)
    for p in model.postures:
        _add_state(robot, model, p)
    for g in model.groups:
        if g.tip:
            link = {"parent_link": g.tip, "group": g.name, "parent_group": g.name}
            add(robot, "end_effector", name=g.tip, **link)
    _add_pairs(robot, model)
    etree.indent(robot)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return declaration + etree.tostring(robot, encoding="unicode") + "\n"


def _add_state(robot, model, posture):
    moving = [i for i in range(1, model.body_count + 1) if model.joint[i].nq]
    names = {model.joint_names[i - 1] for i in moving}
    groups = sorted((len(g.joints), g.name) for g in model.groups if names <= {*g.joints})
    group = {"group": groups[0][1]} if groups else {}
    element = add(robot, "group_state", name=posture.name, **group)
    for i in moving:
        values = _values(model.joint[i], np.asarray(posture.q[model.q_slice[i]], dtype=float))
        add(element, "joint", name=model.joint_names[i - 1], value=values.tolist())


def _values(joint, q):
    """Position variables in the order of SRDF: quaternions with w last, x y before an angle."""
    if isinstance(joint, Free):
        return q[[0, 1, 2, 4, 5, 6, 3]]
    if isinstance(joint, Spherical):
        return q[[1, 2, 3, 0]]
    return q[[1, 2, 0]] if isinstance(joint, Planar) else q


def _add_pairs(robot, model):
    links, lost = {*model.body_names, *model.frame_names}, 0
    for p in model.contact_pairs:
        if not {p.first, p.second} <= links:
            lost += 1
            continue
        tag = "enable_collisions" if p.touch else "disable_collisions"
        element = add(robot, tag, link1=p.first, link2=p.second)
        element.set("reason", p.name or "User")
    if lost:
        warnings.warn(
            f"model {model.name!r}: {lost} contact pairs of single shapes are not written, since "
            f"SRDF has pairs of links",
            ModelWarning,
            stacklevel=5,
        )
