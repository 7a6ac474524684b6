"""Elements taken out of MJCF before MuJoCo compiles it: flexible bodies, and plugins.

Kinetree has rigid bodies and runs no programs of a file. Each of these elements is left out with a
notice that says what is lost, and with it what refers to it; the rest of the robot is loaded.
"""

from kinetree.errors import LoadError
from kinetree.loaders.mjcf.actuators import INTEGRAL, SLEW
from kinetree.loaders.mjcf.values import mujoco
from kinetree.loaders.report import short

START = "its setpoint begins at zero, or at the activation of a posture, not with the first control"
_RIGID = "a flexible body, and kinetree has rigid ones only"
_PARTICLES = "particles, of older versions of MuJoCo, which no longer reads them"
_REFERENCES = {
    kind + number: kind
    for kind in ("geom", "mesh", "flex", "body", "joint", "site", "tendon")
    for number in ("", "1", "2")
}  # attributes that name something, and what they name
_MOST = 1000  # flexible bodies, whose names are compared with all that are referred to
_MOVING = ("joint", "freejoint", "attach")
_EFFECTS = {"contact": "contact", "sensor": "control", "actuator": "control"}


def leave_out(source) -> None:
    """Remove plugins, flexible bodies and references to these from MJCF, with notices."""
    lost = _Lost(source)
    flexes = source.root.findall("./deformable/flex")
    flexes += source.root.iter("flexcomp", "composite")
    if len(flexes) > _MOST:
        raise source.error(flexes[_MOST], f"more than {_MOST} flexible bodies")
    for element in flexes:
        lost.flexible(element)
    instances = {
        instance.get("name"): (plugin.get("plugin"), instance)
        for plugin in source.root.iterfind("./extension/plugin")
        for instance in plugin.iterfind("instance")
    }
    for element in list(source.root.iter("plugin")):
        if element.getparent() is None or element.getparent().tag == "extension":
            continue
        program, instance = instances.get(element.get("instance"), (None, element))
        lost.plugin(element, element.get("plugin") or program, instance)
    for element in source.root.findall("extension"):
        if not lost.plugins:
            source.drop(element, "kinetree runs no plugins, and nothing here uses it", "setting")
        else:
            source.root.remove(element)
    for key in source.root.iterfind("./keyframe/key") if lost.acts else ():
        key.attrib.pop("act", None)  # of plugins, too
    while lost.refers():
        pass
    if source.states_lost:
        drop_keyframes(source)
    moves = any(True for w in source.root.findall("worldbody") for _ in w.iter(*_MOVING))
    if lost.bodies and not moves:
        file, line, what = lost.bodies[0]
        raise LoadError(
            f"{file}:{line}: {what}: nothing moves here but what kinetree leaves out: flexible "
            f"bodies, and shapes of plugins"
        )


def drop_keyframes(source) -> None:
    """Remove keyframes, whose lengths do not fit after parts were removed."""
    for element in list(source.root.iterfind("./keyframe/key")):
        source.drop(element, "it has variables of what is left out", "control")


class _Lost:
    """Names that the file no longer has."""

    def __init__(self, source):
        self.source = source
        self.names, self.prefixes = set(), ()
        self.plugins, self.bodies, self.acts = 0, [], False

    def flexible(self, element):
        """Remove a flexible body and the bodies that MuJoCo would make for it."""
        name = element.get("name") or element.get("prefix") or ""
        self.names.add(("flex", name))
        if element.get("rigid") == "true":
            why = "a shape that collides as a flexible body does, which kinetree has not: left out"
            self.source.drop(element, why, "contact")
            return
        if element.tag == "flex":
            why = f"{_RIGID}: left out, so that nothing holds the bodies at its vertices together"
        else:
            what = _PARTICLES if element.get("type") == "particle" else _RIGID
            why = f"{what}: left out with its mass and shape; the rest is loaded"
            self.prefixes += (name if element.tag == "composite" else f"{name}_",)
            self.source.states_lost = True
        self.plugins += len(element.findall(".//plugin"))
        self._drop_mass(element, why)

    def plugin(self, element, program, instance):
        """Remove a plugin's effect from an MJCF element; ``instance`` has its configuration."""
        self.plugins += 1
        parent = element.getparent()
        by = f"plugin {short(program or '')}, which kinetree does not run"
        if parent.tag == "actuator" and program == "mujoco.pid":
            self._servo(element, instance)
        elif parent.tag == "actuator":
            self._powerless(element, by)
        elif parent.tag == "sensor":
            self.source.drop(element, f"a sensor of {by}: left out", "control")
        elif parent.tag == "mesh":
            self.names.add(("mesh", parent.get("name")))
            self.source.drop(parent, f"its shape comes from {by}: left out", "picture")
        elif parent.tag == "geom":
            self._shapeless(parent, f"its shape comes from {by}: left out")
        else:
            self.source.drop(element, f"passive forces of {by}: left out", "motion")

    def _servo(self, element, instance):
        """Replace a PID plugin by MuJoCo's servo with an integral, where that is equivalent."""
        given = {c.get("key"): c.get("value", "") for c in instance.iterfind("config")}
        names = ("kp", "ki", "kd", "slewmax", "imax")
        try:
            kp, ki, kd, slew, largest = (float(given.get(name) or 0) for name in names)
        except ValueError:
            raise self.source.error(instance, f"{', '.join(names)} must be numbers") from None
        if element.get("dyntype", "none") != "none":
            why = f"its setpoint is the control, not that of dyntype={element.get('dyntype')!r}"
            self.source.note(element, why, "control")
        if hasattr(mujoco().mjtDyn, "mjDYN_PID"):
            if slew > 0:
                self.source.note(element, START, "control")
            self._plain(element, "0", "0 0 0")
            for name in ("dyntype", "gaintype", "gainprm", "biastype", "biasprm"):
                element.attrib.pop(name)
            element.tag = "pid"
            law = {"kp": kp, "kv": kd, "ki": ki, "slewmax": slew}
            law["imax"] = largest / abs(ki) if ki else 0.0
            element.attrib.update({"input": "pos"} | {name: repr(x) for name, x in law.items()})
            return
        lost = [INTEGRAL] if ki else []
        lost += [SLEW] if slew > 0 else []
        for why in lost:
            self.source.note(element, why, "control")
        self._plain(element, f"{kp!r} 0 0", f"0 {-kp!r} {-kd!r}")

    def _powerless(self, element, by):
        """Replace an actuator by one without force, so that controls keep their order."""
        why = f"its force comes from {by}: the actuator exerts none"
        self.source.note(element, why, "control")
        self._plain(element, "0", "0 0 0")

    def _plain(self, element, gain, bias):
        """Replace an actuator by a general one with given gain and bias, without state."""
        for child in element.findall("*"):
            element.remove(child)
        for name in ("plugin", "instance", "actdim", "dynprm", "actlimited", "actrange"):
            element.attrib.pop(name, None)
        element.tag = "general"
        element.attrib.update({"dyntype": "none", "gaintype": "fixed", "gainprm": gain})
        element.attrib.update({"biastype": "affine", "biasprm": bias})
        self.acts = True

    def _shapeless(self, geom, why):
        """Remove a geom, and its mass if the body has no ``<inertial>``."""
        weighs = geom.getparent().find("inertial") is None and geom.getparent().tag == "body"
        self.names.add(("geom", geom.get("name")))
        if weighs:
            self._drop_mass(geom, f"{why}, with the mass that it gives the body")
        else:
            self.source.drop(geom, why, "contact")

    def _drop_mass(self, element, why):
        """Remove an MJCF element, and moving bodies that have no other mass."""
        body = next(element.iterancestors("body"), None)
        file, line = self.source.place(element)
        self.bodies.append((file, line, self.source.drop(element, why, "motion")))
        while body is not None and body.find("joint") is None and body.find("freejoint") is None:
            body = next(body.iterancestors("body"), None)  # part of the one that carries it
        if body is None or any(True for _ in body.iter("inertial", "geom", "attach")):
            return
        for inner in body.iter("body", "joint", "freejoint", "site"):
            self.names.add((inner.tag.replace("free", ""), inner.get("name")))
        self.source.states_lost = True
        self._drop_mass(body, "without what is left out it has no mass: left out, too")

    def refers(self) -> bool:
        """Remove elements that refer to removed parts; whether there were any."""
        if not self.names:
            return False
        tags = {"freejoint": "joint", "fixed": "tendon", "spatial": "tendon"}
        known = {(tags.get(e.tag, e.tag), e.get("name")) for e in self.source.root.iter("*")}
        found = False
        for section in self.source.root.findall("*"):
            if section.tag in ("default", "asset"):
                continue
            for element in list(section.iter("*")):
                name = self._lost_name(element, known)
                if name is not None:
                    found = True
                    why = f"it refers to {short(name)}, which is left out"
                    self._without(element, section.tag, why)
        return found

    def _lost_name(self, element, known):
        """Name of a removed part that an MJCF element refers to, or None."""
        for attribute, name in element.attrib.items():
            kind = _REFERENCES.get(attribute)
            if attribute in ("objname", "refname"):
                kind = element.get(attribute.replace("name", "type"), "").replace("xbody", "body")
            if kind is None or not name or element.getparent() is None:
                continue
            prefixed = name.startswith(self.prefixes)
            if (kind, name) in self.names or (prefixed and (kind, name) not in known):
                return name
        return None

    def _without(self, element, section, why):
        """Remove an MJCF element and what refers to it, with a notice."""
        if element.tag == "geom" and section == "worldbody":
            self._shapeless(element, why)
            return
        if section == "tendon":  # a path without one of its points is another path
            while element.getparent().tag != "tendon":
                element = element.getparent()
            self.names.add(("tendon", element.get("name")))
        self.source.states_lost |= section == "actuator"
        self.source.drop(element, why, _EFFECTS.get(section, "motion"))
