"""Free bodies that MuJoCo compiles without their joints, where a file has many.

MuJoCo's compiler solves for the apparent inertia of every body, in time quadratic in the number of
free joints: 0.6 s for 1,000 boxes, against 6 ms without the joints. A free joint on the world adds
nothing to a compiled model but its variables, whose start is the pose of its body; so the joints
are taken out of the text, and ``tree_of`` puts the bodies on kinetree's free joints. Whatever may
depend on such a joint keeps it: see ``free_joints`` and ``as_if_free``.
"""

import numpy as np

FEWEST = 64
"""So many free bodies are compiled without their joints, and fewer as they are written."""
_SMALLEST = 1e-15  # mjMINVAL: mass and moments of inertia of bodies that move are larger
_ON_STATIC = (0, 1)  # mjtGeom: planes and height fields, which no body that moves may have

_COPIES = ("replicate", "attach", "composite", "flexcomp")
_INSIDE = {"body", "geom", "site", "inertial", "camera", "light"}
_OF_BODIES = {
    "name", "pos", "quat", "axisangle", "xyaxes", "zaxis", "euler", "childclass", "gravcomp",
}  # fmt: skip
_WITHOUT_REFERENCES = {
    "worldbody", "asset", "default", "compiler", "option", "size", "visual", "statistic", "custom",
    "contact",
}  # fmt: skip


def free_joints(source) -> dict:
    """Free joints that can be removed before MuJoCo compiles, by body number; may be empty.

    Such a joint has no attribute but its name, stands on a body of the world without other joints
    in or below it, and nothing outside ``<worldbody>`` and ``<contact>`` names a part of the body.
    """
    root = source.root
    if source.attached or root.find("keyframe/key") is not None:
        return {}
    if next(root.iter(*_COPIES), None) is not None or not _compiles_bodies_apart(root):
        return {}
    plain = not any(joint.attrib for d in root.iter("default") for joint in d.iter("joint"))
    found, joints = {}, {}
    for number, body in enumerate(_bodies(root), start=1):
        joint = _free_joint(body, plain)
        if joint is not None:
            found[number] = joint
    if len(found) < FEWEST:
        return {}
    for joint in root.iter("joint", "freejoint"):  # MuJoCo rejects a name that comes twice
        joints[joint.get("name")] = joints.get(joint.get("name"), 0) + 1
    referred = {
        value
        for section in root.findall("*")
        if section.tag not in _WITHOUT_REFERENCES
        for element in section.iter("*")
        for value in element.attrib.values()
    }
    found = {
        number: joint
        for number, joint in found.items()
        if (joint.get("name") is None or joints[joint.get("name")] == 1)
        and not (referred and any(e.get("name") in referred for e in joint.getparent().iter("*")))
    }
    return found if len(found) >= FEWEST else {}


def _compiles_bodies_apart(root):
    """Whether no compiler option merges fixed bodies or aligns free ones."""
    return all(
        compiler.get(option, "false") == "false"
        for compiler in root.iter("compiler")
        for option in ("fusestatic", "alignfree")
    )


def _bodies(root):
    """Elements of all bodies in the order of MuJoCo's numbers."""
    return (body for world in root.findall("worldbody") for body in world.iter("body"))


def _free_joint(body, plain):
    """Free joint of a body that nothing refers to, or None; ``plain``: no joint defaults."""
    above = body.getparent()
    while above.tag == "frame":
        above = above.getparent()
    if above.tag != "worldbody" or set(body.attrib) - _OF_BODIES:
        return None
    found = None
    for element in body.iter("*"):
        if element.tag in _INSIDE:
            continue
        given = set(element.attrib) - {"name"}
        free = element.tag == "freejoint" and not given
        free |= (
            element.tag == "joint" and plain and given == {"type"} and element.get("type") == "free"
        )
        if not free or found is not None or element.getparent() is not body or len(element):
            return None
        found = element
    return None if found is None or not found.get("name", "joint") else found


def without(source, joints) -> str:
    """MJCF text without the lines of some free joints."""
    left_out = set(joints.values())
    lines = zip(source.text.split("\n")[:-1], source.lines, strict=True)
    return "\n".join(line for line, element in lines if element not in left_out) + "\n"


def as_if_free(mj_model, source, joints) -> bool:
    """Whether the model compiled without free joints is the same apart from them."""
    bodies = list(_bodies(source.root))
    if mj_model.nbody != len(bodies) + 1:
        return False
    number = {None: 0} | {body: b for b, body in enumerate(bodies, start=1)}
    parents = [number[next(body.iterancestors("body"), None)] for body in bodies]
    names = bytes(mj_model.names)
    given = [(body.get("name") or "").encode() + b"\0" for body in bodies]
    starts = mj_model.name_bodyadr[1:].tolist()
    at = np.zeros(mj_model.nbody, dtype=bool)
    at[list(joints)] = True
    weight = np.minimum(mj_model.body_mass, mj_model.body_inertia.min(axis=1))
    root = np.maximum.accumulate(
        np.where(mj_model.body_parentid == 0, np.arange(mj_model.nbody), 0)
    )
    held = np.isin(mj_model.geom_type, _ON_STATIC) & at[root[mj_model.geom_bodyid]]
    return (
        mj_model.body_parentid[1:].tolist() == parents
        and all(names.startswith(name, start) for name, start in zip(given, starts, strict=True))
        and bool(np.all(weight[at] > _SMALLEST))
        and not held.any()
    )
