"""``read_mjcf``: a model from an MJCF file, and notices of what it does not represent."""

import numpy as np

from kinetree.errors import LoadError
from kinetree.loaders.mjcf import actuators, cameras, geoms, joints, sensors, tendons, tree
from kinetree.loaders.mjcf.compiled import ATTRIBUTES, from_compiled
from kinetree.loaders.mjcf.free_bodies import as_if_free, free_joints, without
from kinetree.loaders.mjcf.source import prepare
from kinetree.loaders.mjcf.values import AllBut, compile_quietly, mujoco
from kinetree.loaders.report import Effect, Notice, short, tag_of
from kinetree.model import Model


def read_mjcf(source: bytes, report, folders, options) -> Model:
    """Model from an MJCF file.

    MuJoCo's own compiler settles defaults, classes, units, orientations and inertia; what it
    computes is read.
    """
    library = mujoco()
    mjcf = prepare(source, report.path, folders)

    def make(text=None):
        files = {"include": mjcf.models, "assets": mjcf.assets}
        return library.MjSpec.from_string(text or mjcf.text, **files).compile()

    refusals = (
        ValueError,
        TypeError,
        RuntimeError,
        MemoryError,
        library.FatalError,
        library.UnexpectedError,
    )
    mj_model, messages, joints = None, [], free_joints(mjcf)
    if joints:
        try:
            mj_model, messages = compile_quietly(lambda: make(without(mjcf, joints)))
        except refusals:  # said of the whole file below
            mj_model = None
        if mj_model is None or messages or not as_if_free(mj_model, mjcf, joints):
            mj_model, joints = None, {}
    try:
        try:
            if mj_model is None:
                mj_model, messages = compile_quietly(make)
        except refusals as error:
            why = mjcf.refusal(str(error))
            if not mjcf.leave_out("sensor"):
                raise
            mj_model, messages = compile_quietly(make)
            report.ignore(None, "<sensor>", f"{why}; all sensors are left out", "control")
    except refusals as error:
        raise mjcf.refusal(str(error)) from None
    for message in messages:
        report.ignore(None, "MuJoCo", message, "setting")
    _check_finite(mj_model, mjcf)
    report.settings["timestep"] = float(mj_model.opt.timestep)
    model = from_compiled(
        mj_model,
        _noter(mjcf, report),
        lump=options.lump,
        floating_base=options.floating_base,
        paths=mjcf.paths,
        references=mjcf.references,
        keys=[key.attrib for key in mjcf.root.iter("key")],
        free={b: joint.get("name", "") for b, joint in joints.items()},
    )
    for part in (mjcf, *mjcf.attached):
        report.notices += part.notices
        note_unused(part, report)
    return model


def _noter(mjcf, report):
    """Function that adds notices at the line of the element with a name."""
    elements: dict = {}
    for element in mjcf.root.iter("*"):
        parent = element.getparent()
        tag = "actuator" if parent is not None and parent.tag == "actuator" else element.tag
        tag = f"equality/{tag}" if parent is not None and parent.tag == "equality" else tag
        elements.setdefault((tag, element.get("name", "")), element)

    noted = set()

    def note(tag, name, why, effect: Effect = "motion"):
        element = elements.get((tag, name), elements.get((tag, "")))
        file, line = (report.path, None) if element is None else mjcf.place(element)
        tag = tag.rpartition("/")[2]
        what = f"<{tag} name={short(name)}>" if name else f"<{tag}>"
        notice = Notice(file, line, what, why, effect)
        if notice not in noted:
            noted.add(notice)
            report.notices.append(notice)

    return note


def _check_finite(mj_model, mjcf):
    """Raise LoadError for infinite numbers that MuJoCo accepts without sense."""
    for field in ("body_pos", "body_quat", "body_mass", "body_inertia", "body_ipos", "jnt_pos"):
        if not np.all(np.isfinite(getattr(mj_model, field))):
            raise LoadError(
                f"{mjcf.path}: {field.partition('_')[2]} of a {field.partition('_')[0]} is not "
                f"finite after MuJoCo compiled the model"
            )


# --- Notices of what a model does not represent, one for each kind of thing ----------------------
# What a model represents stands beside the functions that read it: ``ATTRIBUTES`` of the modules.

_ATTRIBUTES = ATTRIBUTES | geoms.ATTRIBUTES | joints.ATTRIBUTES | tree.ATTRIBUTES
_ATTRIBUTES |= {"deformable": AllBut(), **sensors.ATTRIBUTES, **cameras.ATTRIBUTES}
_UNKNOWN = ("kinetree does not use it", "motion")
_PICTURES = ("it is for pictures", "picture")
_SIMULATION = ("it is a setting of MuJoCo's simulation", "setting")
_EXACT = ("constraints of kinetree are exact", "setting")
_WHY = {
    **dict.fromkeys(
        ("camera", "light", "visual", "texture", "layer", "skin", "site", "material"), _PICTURES
    ),
    **dict.fromkeys(("option", "flag", "size", "statistic"), _SIMULATION),
    "flexstrain": ("flexible bodies are left out", "motion"),
    "custom": ("kinetree does not use it", "setting"),
    "key": ("kinetree does not use it", "control"),
    "geom": ("kinetree does not use it", "contact"),
    "mesh": ("kinetree does not use it", "picture"),
}
"""Why an MJCF element is left out, and what is different without it; also for its attributes."""
_WHY_ATTRIBUTE = {
    "margin": _EXACT,
    **dict.fromkeys(("group", "width", "rgba", "material"), _PICTURES),
    **dict.fromkeys(
        ("actuatorfrclimited", "actuatorfrcrange"),
        ("the actuators of a tendon are bounded one by one, not together", "motion"),
    ),
    "torquescale": _EXACT,
    "adhesion": ("surfaces do not stick to each other", "contact"),
    "time": ("a posture has no time", "setting"),
    "sleep": ("worlds find out themselves what can sleep", "setting"),
    **dict.fromkeys(("mpos", "mquat"), ("mocap bodies stay where they are defined", "motion")),
    "user": ("numbers for programs of the user", "setting"),
    "collision": ("an option of older versions of MuJoCo, which said what can touch", "contact"),
}
_WHY_FLAG = {
    "override": ("the surfaces of the shapes hold all the same", "contact"),
    "actuation": ("it switches actuators off, which a model does not say", "control"),
}
_SOFT = (
    "soft contact (solref, solimp, solmix)",
    ("rigid contact has no such parameters; SoftContact has its own stiffness", "setting"),
)
_WHY_SENSOR = ("kinetree has no such sensor, and it is left out", "control")
_WHY_DRIVE = ("kinetree does not use it", "control")
_WHY_OF_DRIVE = {
    **dict.fromkeys(("delay", "nsample", "interp"), ("controls act without delay", "control")),
    "actearly": ("an activation acts at its time, not a step ahead", "control"),
}


SECTIONS = ("equality", "actuator", "tendon", "sensor")
"""Elements inside which the same tag means something else than outside."""


def represented_attributes(tag, section):
    """Attributes of an MJCF element that a model represents; None if the element is left out."""
    if section == "sensor":
        return _ATTRIBUTES.get(f"{section}/{tag}")
    return _ATTRIBUTES.get(f"{section}/{tag}", _ATTRIBUTES.get(tag))


def noted_by_name(tag) -> dict:
    """Reason and effect of attributes for which notices name the element."""
    of_joints = joints.NOTED | tendons.NOTED
    effect = "motion" if tag in of_joints else "control"
    return {name: (why, effect) for name, why in (of_joints | actuators.NOTED).get(tag, {}).items()}


def left_out_by_name(tag):
    """Reason why an MJCF element is left out with a notice of its name; None for others."""
    why = actuators.LEFT_OUT.get(tag)
    return None if why is None else (f"{why}, and is left out", "control")


def why_left_out(tag, section):
    """Reason why an MJCF element is left out, and the effect."""
    return _WHY_SENSOR if section == "sensor" else _WHY.get(tag, _UNKNOWN)


def note_unused(source, report):
    """Add notices for elements and attributes that the model does not represent."""
    found: dict = {}
    waiting = [(source.root, "")]
    while waiting:
        element, section = waiting.pop()
        tag = tag_of(element)
        known = represented_attributes(tag, section)
        if known is None:
            why = why_left_out(tag, section)
            key = (source.place(element)[0], f"<{tag}>", *why)
            found.setdefault(key, {})[element] = ()
            continue
        for name in element.attrib:
            if name not in known and not name.startswith("{"):  # of another XML namespace
                what, why = f"<{tag}>", why_attribute(name, tag, section)
                names = (name,)
                if name.startswith("sol") and tag in ("geom", "pair"):
                    (what, why), names = _SOFT, ()
                elements = found.setdefault((source.place(element)[0], what, *why), {})
                elements[element] = (*elements.get(element, ()), *names)
        inner = tag if tag in SECTIONS else section
        waiting += [(child, inner) for child in reversed(element.findall("*"))]
    for (file, what, why, effect), elements in found.items():
        line = min(e.sourceline for e in elements)
        names = dict.fromkeys(name for given in elements.values() for name in given)
        if names:
            listed = ", ".join(map(repr, names))
            what = f"attribute{'s' if len(names) > 1 else ''} {listed} of {what}"
        times = f" ({len(elements)} times)" if len(elements) > 1 else ""
        report.notices.append(Notice(file, line, what + times, why, effect))


def why_attribute(name, tag, section):
    """Reason why an attribute is left out, and the effect."""
    if tag == "flag" and name in _WHY_FLAG:
        return _WHY_FLAG[name]
    if name.startswith("sol") and tag not in ("option", "default"):
        return _EXACT
    if section != "sensor" and name in _WHY_OF_DRIVE:  # of defaults, too
        return _WHY_OF_DRIVE[name]
    usual = _WHY_DRIVE if section in ("actuator", "sensor") else _UNKNOWN
    return _WHY_ATTRIBUTE.get(name, _WHY.get(tag, usual))
