"""Facts of a URDF file, faults included: reading goes on where a loader would stop."""

import math

import numpy as np

from kinetree.doctor.facts import Facts, JointFacts, LinkFacts, corners
from kinetree.doctor.findings import Place, finding_of, part_name
from kinetree.errors import LoadError
from kinetree.loaders.report import label, short, tag_of
from kinetree.loaders.urdf.joints import JOINT_TYPES
from kinetree.loaders.xml import numbers_in, parse
from kinetree.model.geometry import solids_of_format
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rx, ry, rz
from kinetree.spelling import close_names, did_you_mean

_SOLIDS = solids_of_format("urdf")
_ZERO, _LIMITS = (0.0, 0.0, 0.0), ("lower", "upper", "effort", "velocity")


def read_facts(source, path, folders):
    """Facts and findings of a URDF file; LoadError if the text is not XML."""
    reader = _Reader(path, folders)
    for element in parse(source, path).findall("*"):
        if tag_of(element) == "link":
            reader.link(element)
        elif tag_of(element) == "joint":
            reader.joint(element)
    reader.mimics()
    return reader.facts, reader.findings


class _Reader:
    """Collects facts, and findings about what cannot be read."""

    def __init__(self, path, folders):
        self.path, self.folders = path, folders
        self.facts, self.findings = Facts(from_file=True), []
        self.following = []  # names of joints that follow another, its name, and the element

    def link(self, element):
        """Read a link with its inertia and shapes."""
        name = self.text(element, "name", "link")
        place = self.place(element)
        link = LinkFacts(name or "", place=place, mass_place=place, inertia_place=place)
        inertial = _child(element, "inertial")
        if inertial is not None:
            self.inertial(link, inertial)
        for tag in ("visual", "collision"):
            for part in _children(element, tag):
                self.geometry(link, part)
        self.facts.links.append(link)

    def inertial(self, link, inertial):
        """Read the mass and inertia of a link from URDF."""
        mass, inertia = _child(inertial, "mass"), _child(inertial, "inertia")
        if mass is None:
            self.report("incomplete", link.part, "<inertial> has no <mass>", inertial)
        else:
            link.mass = self.number(mass, "value", link.part)
            link.mass_place = self.place(mass)
        origin = self.origin(inertial, link.part)
        link.center = np.array(origin.r)
        if inertia is None:
            self.report("incomplete", link.part, "<inertial> has no <inertia>", inertial)
            return
        link.inertia_place = self.place(inertia)
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        xx, xy, xz, yy, yz, zz = (
            self.number(inertia, n, link.part, 0.0 if n in ("ixy", "ixz", "iyz") else None)
            for n in names
        )
        link.inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def geometry(self, link, part):
        """Read a shape of a link from URDF."""
        placement = self.origin(part, link.part)
        holder = _child(part, "geometry")
        shape = None if holder is None else next(iter(holder.findall("*")), None)
        if shape is None:
            text = f"<{tag_of(part)}> has no shape in a <geometry>"
            self.report("incomplete", link.part, text, part)
            return
        tag = tag_of(shape)
        if tag == "mesh":
            link.has_meshes = True
            self.mesh(link, shape)
        elif tag in _SOLIDS:
            counts = _SOLIDS[tag].counts().items()
            given = [self.sizes(shape, name, count, link.part) for name, count in counts]
            solid = _SOLIDS[tag].from_sizes([x for sizes in given for x in sizes])
            link.extent += corners(solid, placement)

    def mesh(self, link, element):
        """Read a mesh of a link; a finding if its file is missing."""
        name = self.text(element, "filename", "mesh", link.part)
        if name:
            try:
                self.folders.resolve(name)
            except LoadError as error:
                reason = str(error).partition("; pass folders=")[0]
                self.report("mesh-missing", link.part, reason, element)

    def joint(self, element):
        """Read a joint with its limits, axis and mimic."""
        name = self.text(element, "name", "joint") or ""
        part = part_name("joint", name)
        kind = self.text(element, "type", "joint", part) or ""
        if kind and kind not in JOINT_TYPES:
            hint = did_you_mean(kind, JOINT_TYPES, f"known are {', '.join(JOINT_TYPES)}")
            text = f"its type is {short(kind)}; {hint}"
            self.report("joint-type", part, text, element)
        parent, child = (self.end(element, tag, part) for tag in ("parent", "child"))
        offset = self.origin(element, part).r
        joint = JointFacts(name, kind, parent, child, offset, place=self.place(element))
        joint.parent_place, joint.child_place, joint.limit_place = (
            joint.place if part is None else self.place(part)
            for part in (_child(element, tag) for tag in ("parent", "child", "limit"))
        )
        axis = _child(element, "axis")
        if axis is not None and joint.moves:
            direction = self.numbers(axis, "xyz", 3, part, (1.0, 0.0, 0.0))
            if not np.any(direction):
                self.report("axis", part, "its axis is 0 0 0", axis)
        self.limits(joint, _child(element, "limit"))
        mimic = _child(element, "mimic")
        if mimic is not None:
            source = self.text(mimic, "joint", "mimic", part)
            for attribute in ("multiplier", "offset"):
                self.number(mimic, attribute, part, 0.0)
            self.following.append((part, name, source, mimic))
        self.facts.joints.append(joint)

    def end(self, element, tag, part):
        """Name of the link at one end of a joint; a finding if it is missing."""
        child = _child(element, tag)
        if child is None:
            self.report("incomplete", part, f"it has no <{tag}>", element)
            return ""
        return self.text(child, "link", tag, part) or ""

    def limits(self, joint, element):
        """Read the limits of a joint."""
        if element is None:
            return
        joint.has_limits = True
        for name in _LIMITS:
            default = 0.0 if name in ("lower", "upper") else math.inf
            value = self.numbers(element, name, 1, joint.part, (default,), finite=False)[0]
            setattr(joint, name, value)
        if joint.kind in ("revolute", "continuous", "prismatic"):
            for name in ("effort", "velocity"):
                if element.get(name) is None:
                    self.report(f"limit-{name}", joint.part, f"<limit> has no {name}", element)

    def mimics(self):
        """Add findings about joints that mimic themselves or unknown joints."""
        known = {joint.name for joint in self.facts.joints}
        for part, name, source, element in self.following:
            if source == name:
                self.report("unknown-name", part, "it follows itself", element)
            elif source and source not in known:
                close = close_names(source, known)
                hint = f"; did you mean {short(close[0])}?" if close else ""
                text = f"it follows a joint {short(source)}, which does not exist{hint}"
                self.report("unknown-name", part, text, element)

    # --- numbers and text, or a finding ----------------------------------------------------------

    def origin(self, element, part):
        """Placement by ``<origin>``; the identity without one."""
        origin = _child(element, "origin")
        if origin is None:
            return Plucker.identity()
        xyz = self.numbers(origin, "xyz", 3, part, _ZERO)
        roll, pitch, yaw = self.numbers(origin, "rpy", 3, part, _ZERO)
        return Plucker(rx(roll) @ ry(pitch) @ rz(yaw), np.array(xyz))

    def sizes(self, element, name, count, part):
        """Sizes of a shape; a finding if one is negative."""
        sizes = self.numbers(element, name, count, part)
        if any(size < 0 for size in sizes):
            self.report("number", part, f"{label(element)}: {name} is negative", element)
        return tuple(abs(size) for size in sizes)

    def number(self, element, name, part, default=None):
        """Number of an XML attribute; a finding if it is wrong."""
        return self.numbers(element, name, 1, part, None if default is None else (default,))[0]

    def numbers(self, element, name, count, part, default=None, *, finite=True):
        """Numbers of an XML attribute; a finding, and the default or NaN, if it has none."""
        text = element.get(name)
        if text is None:
            if default is None:
                self.report("incomplete", part, f"{label(element)} has no {name}", element)
            return default or (math.nan,) * count
        try:
            return numbers_in(text, count, finite=finite)
        except ValueError as error:
            self.report("number", part, f"{label(element)}: {name} {error}", element)
            return default or (math.nan,) * count

    def text(self, element, name, kind, part=None):
        """Text of an XML attribute; a finding if it is missing."""
        value = element.get(name)
        if not value:
            text = f"<{kind}> has no {name}"
            self.report("incomplete", part or f"<{kind}>", text, element)
        return value

    def place(self, element):
        """File and line of an XML element, as text."""
        return Place(self.path, element.sourceline)

    def report(self, code, part, message, element):
        """Add a finding."""
        self.findings.append(finding_of(code, part, message, self.place(element)))


def _child(element, tag):
    """First child with a tag, or None."""
    return next(iter(_children(element, tag)), None)


def _children(element, tag):
    """Children with a tag."""
    return [child for child in element.findall("*") if tag_of(child) == tag]
