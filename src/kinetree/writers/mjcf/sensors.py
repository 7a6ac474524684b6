"""Sensors as MJCF."""

from lxml import etree  # type: ignore[import-untyped]

from kinetree.model.parts import is_identity
from kinetree.model.sensors import KINDS, Sensor
from kinetree.writers.mjcf.attachments import Sites
from kinetree.writers.mjcf.elements import element, numbers, parts_of
from kinetree.writers.mjcf.geoms import links_of, shape_attributes

_AT_SITES = (
    "accelerometer", "gyro", "velocimeter", "magnetometer", "force", "torque", "touch",
    "rangefinder",
)  # fmt: skip


def write_sensors(model, elements, root, left_out):
    """Sensors; ``left_out`` collects what MJCF does not say."""
    if not model.sensors:
        return
    section, writer = etree.SubElement(root, "sensor"), _Writer(model, elements, root)
    for s in model.sensors:
        attributes = writer.attributes(s)
        if attributes is None:
            left_out.append(f"sensor {s.name!r} ({s.kind})")
            continue
        if s.offset:
            left_out.append(f"the offset {s.offset:.4g} of sensor {s.name!r}")
        numbers_of = {key: x for key in ("cutoff", "noise") if (x := getattr(s, key))}
        element(section, s.kind, name=s.name, **attributes, **numbers_of)
    if not len(section):
        root.remove(section)


class _Writer:
    def __init__(self, model, elements, root):
        self.model, self.elements, self.root = model, elements, root
        self.sites, self.links = Sites(model, elements), links_of(model)

    def attributes(self, s: Sensor):
        """What a sensor is of; None where MJCF has no word for it."""
        of = KINDS[s.kind].of
        if s.inertia is not None or (s.data and s.kind != "magnetometer"):
            return None
        if of == "frame":
            if s.kind in _AT_SITES:
                return self._of_site(s)
            if s.kind.startswith("subtree"):
                return {"body": self._body(self.model.frame(s.of).body)}
            kind, name = self._frame(s, "of", s.placement)
            found = {"objtype": kind, "objname": name}
            if s.reference:
                kind, name = self._frame(s, "reference", s.reference_placement)
                found |= {"reftype": kind, "refname": name}
            return found
        if of == "joint":
            parts = parts_of(self.model.joint[self.model.joint_index(s.of)], s.of)
            return {"joint": parts[0].name} if len(parts) == 1 else None
        if of == "shape":
            ends = [end for end in (self._shape(s.of), self._shape(s.reference)) if end is not None]
            found = {f"{kind}{k}": name for k, (kind, name) in enumerate(ends, start=1)}
            return found if len(ends) == 2 else None
        return {of: s.of} if of else {}

    def _body(self, i):
        return self.model.body_names[i] if i else "world"

    def _frame(self, s, which, placement):
        """Kind and name of a frame: a site, or a body."""
        frame = self.model.frame(getattr(s, which))
        if is_identity(placement) and frame.name in self.model.body_names:
            return "xbody", self._body(frame.body)
        if is_identity(placement) and frame.name in self.links:
            return "xbody", frame.name
        if is_identity(placement):
            return "site", frame.name
        return "site", self.sites.at(f"{s.name}_{which}", frame.body, placement @ frame.placement)

    def _of_site(self, s):
        frame = self.model.frame(s.of)
        name = s.of
        if s.of in {*self.model.body_names, *self.links} or not is_identity(s.placement):
            name = self.sites.at(f"{s.name}_site", frame.body, s.placement @ frame.placement)
        if s.kind == "magnetometer":
            option = self.root.find("option")
            if option.get("magnetic", numbers(s.data)) != numbers(s.data):
                return None  # there is one field for all
            option.set("magnetic", numbers(s.data))
        if s.shape is not None:
            site = next(e for e in self.root.iter("site") if e.get("name") == name)
            shape = shape_attributes(s.shape)
            if site.get("type") not in (None, shape["type"]):
                return None
            site.attrib.update(shape)
        return {"site": name}

    def _shape(self, name):
        """Kind and name of a geom or body."""
        if any(e.get("name") == name for e in self.root.iter("geom")):
            return "geom", name
        bodies = self.model.body_names
        return ("body", self._body(bodies.index(name))) if name in bodies else None
