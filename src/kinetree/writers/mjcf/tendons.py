"""Tendons as MJCF, with the geoms that they wind around."""

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.model.geometry import Cylinder, Sphere
from kinetree.model.tendon import Pulley, Wrap, is_wrap
from kinetree.writers.mjcf.elements import element, pose_attributes, range_attributes
from kinetree.writers.mjcf.geoms import geom_names
from kinetree.writers.mjcf.sites import Sites


def write_tendons(model, elements, root, armature):
    """Write tendons; MuJoCo's lengths are less by the offset.

    Args:
        model: without couplings.
        elements: of its bodies.
        root: of the file.
        armature: inertia along tendons, by name; MuJoCo has none where they wind around shapes.
    """
    sites, shapes = Sites(model, elements), _WrappedGeoms(model, elements, root)
    for t in model.tendons:
        if t.path and t.joints:
            raise InteropError(
                f"tendon {t.name!r} runs over joints and through space, which no tendon of MJCF "
                f"does; make it two tendons"
            )
        names = [model.joint_names[i - 1] for i in t.joints]
        rest = np.array(t.rest) - t.offset
        rest = np.nextafter(rest, 0) if tuple(rest) == (-1, -1) else rest  # which MuJoCo fills in
        attributes = {
            "stiffness": t.stiffness or None,
            "damping": t.damping or None,
            "frictionloss": t.friction or None,
            "armature": None if any(map(is_wrap, t.path)) else armature.get(t.name) or None,
            "springlength": rest if t.stiffness else None,
            **range_attributes("range", (t.lower - t.offset, t.upper - t.offset), "limited"),
        }
        if t.path:
            _spatial_tendon(model, _tendon(root, "spatial", t.name, attributes), t, sites, shapes)
        else:
            terms = zip(names, t.coefficients, strict=True)
            write_fixed_tendon(root, t.name, terms, **attributes)


def _tendon(root, tag, name, attributes):
    """Append a tendon to its section, which is created if needed."""
    section = root.find("tendon")
    section = etree.SubElement(root, "tendon") if section is None else section
    return element(section, tag, name=name, **attributes)


def write_fixed_tendon(root, name, terms, **attributes):
    """Write a fixed tendon over joints, by name and coefficient."""
    tendon = _tendon(root, "fixed", name, attributes)
    for joint, coefficient in terms:
        element(tendon, "joint", joint=joint, coef=coefficient)


def _spatial_tendon(model, tendon, t, sites, shapes):
    """Write a tendon along sites, around wrapping shapes and over pulleys."""

    def site(name):
        frame = model.frame(name)
        return sites.at(name, frame.body, frame.placement)

    for x in t.path:
        if isinstance(x, Pulley):
            element(tendon, "pulley", divisor=x.divisor)
        elif isinstance(x, Wrap):
            side = site(x.side) if x.side else None
            element(tendon, "geom", geom=shapes.at(x), sidesite=side)
        else:
            element(tendon, "site", site=site(x))


class _WrappedGeoms:
    """Geoms that tendons wind around: shapes that are there already, or new ones without mass."""

    def __init__(self, model, elements, root):
        self.model, self.elements = model, elements
        self.names = geom_names(model)
        self.taken = {e.get("name") for e in root.iter("geom")}

    def at(self, wrap) -> str:
        """Name of the geom that a tendon wraps around, written if there is none."""
        frame = self.model.frame(wrap.frame)
        kinds = {"sphere": Sphere, "cylinder": Cylinder}
        for k, g in enumerate(self.model.geometry):
            same = g.body == frame.body and not g.link and isinstance(g.shape, kinds[wrap.shape])
            same = same and g.shape.radius == wrap.radius and self.names.get(k)
            if same and all(
                np.array_equal(getattr(g.placement, x), getattr(frame.placement, x)) for x in "Er"
            ):
                return self.names[k]
        name = wrap.frame
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.names[len(self.model.geometry) + len(self.taken)] = name
        X = pose_attributes(frame.placement)
        size = [wrap.radius] if wrap.shape == "sphere" else [wrap.radius, wrap.radius]
        untouched = {"contype": 0, "conaffinity": 0, "mass": 0.0, "group": 3}
        given = {"name": name, "type": wrap.shape, "size": size, **untouched, **X}
        element(self.elements[frame.body], "geom", **given)
        return name
