"""Implausible numbers: wrong units, impossible inertias, massless bodies, meshes."""

import os
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from kinetree.doctor.findings import Place, finding_of, part_name
from kinetree.errors import LoadError
from kinetree.loaders.report import label, short, tag_of
from kinetree.loaders.xml import numbers_in
from kinetree.model.geometry import Mesh
from kinetree.model.triangles import FORMATS, read_triangles

LONGEST = 20.0
"""Longest distance from joint to joint, and largest body, taken for metres."""
FARTHEST = 100.0
"""Farthest that a sliding joint goes, taken for metres; crude numbers for "no limit" are larger."""
DENSEST = 30_000.0
"""Density that nothing has [kg/m³]; osmium has 22,600."""

LIGHTEST, LITRE = 1.0, 1e-3
"""Density of a body that would float in air [kg/m³], and of which volume on it counts [m³]."""

POINT = 1e-6
"""Radius up to which a body counts as a point [m]."""
FAR = 3.0
"""Distance of a mass centre from the geometry, in sizes of the geometry."""


def lengths(facts):
    """Findings about distances and sizes of dozens of metres."""
    far = [j for j in facts.joints if j.kind != "floating" and _norm(j.offset) > LONGEST]
    if far:
        worst = max(far, key=lambda j: _norm(j.offset))
        text = f"it sits {_norm(worst.offset):.4g} m from its parent"
        if len(far) > 1:
            text += f"; {len(far)} of {len(facts.joints)} joints are more than {LONGEST:g} m away"
        yield finding_of("unit-length", worst.part, text, worst.place)
    for joint in facts.joints:
        bounds = [abs(x) for x in (joint.lower, joint.upper) if x is not None and np.isfinite(x)]
        if joint.kind == "prismatic" and FARTHEST < max(bounds, default=0.0) < 10_000:
            text = f"it can slide to {max(bounds):.4g} m"
            yield finding_of("unit-length", joint.part, text, joint.limit_place)
    large = [link for link in facts.links if link.extent and _norm(_box(link)) > LONGEST]
    if large:
        worst = max(large, key=lambda link: _norm(_box(link)))
        text = f"its geometry measures {_norm(_box(worst)):.4g} m across"
        text += f"; {len(large)} bodies are as large" if len(large) > 1 else ""
        yield finding_of("unit-length", worst.part, text, worst.place)


def masses(facts):
    """Findings about bodies denser than any material, or lighter than air."""
    fixed = {j.child for j in facts.joints if not j.moves}  # these count as part of another
    for link, size in _sizes(facts):
        if _is_too_heavy(link, size):
            text = f"{link.mass:.4g} kg within {size:.3g} m is denser than any metal"
            yield finding_of("unit-mass", link.part, text, link.mass_place)
        elif link.has_mass and link.extent and not link.has_meshes and link.name not in fixed:
            volume = float(np.prod(_box(link)))
            if volume > LITRE and link.mass < LIGHTEST * volume:
                sides = " x ".join(f"{side:.3g}" for side in _box(link))
                text = f"{link.mass:.3g} kg in a box of {sides} m is lighter than air"
                yield finding_of("mass-light", link.part, text, link.mass_place)


def _is_too_heavy(link, size):
    """Whether a link is denser than any material; small ones may be incompletely drawn."""
    least = 1.0 if link.extent and not link.has_meshes else 20.0
    return link.has_mass and link.mass > least and size > 0 and link.mass > DENSEST * size**3


def inertias(facts):
    """Findings about radii of gyration that do not fit a body's size."""
    sizes = list(_sizes(facts))
    largest = max((size for _, size in sizes), default=0.0)
    for link, size in sizes:
        if not link.has_mass or link.inertia is None or not np.all(np.isfinite(link.inertia)):
            continue
        radius = float(np.sqrt(np.max(np.abs(np.diag(link.inertia))) / link.mass))
        if radius > 3 * largest > 0:
            text = f"its mass would have to lie {radius:.3g} m from its centre, and no body of "
            text += f"the robot is larger than {largest:.3g} m"
            yield finding_of("unit-inertia", link.part, text, link.inertia_place)
        elif 0 < radius < size / 300:
            text = f"its mass would have to lie within {radius:.2g} m, and the body is {size:.3g} m"
            yield finding_of("unit-inertia", link.part, f"{text} large", link.inertia_place)
        elif _density(link) > DENSEST and not _is_too_heavy(link, size):
            text = f"{link.mass:.4g} kg with so small an inertia would be denser than any metal, "
            text += f"{_density(link):.1g} kg/m³ at least"
            yield finding_of("unit-inertia", link.part, text, link.inertia_place)


def _density(link) -> float:
    """Smallest possible density of a body's densest part [kg/m³]; 0 for points.

    Of all bodies that are no denser than that, a ball has the smallest moments: ``3 I = tr(I)``
    and ``I = 2/5 m r²``.
    """
    radius = np.sqrt(max(5 / 6 * np.trace(link.inertia) / link.mass, 0.0))
    return float(link.mass / (4 / 3 * np.pi * radius**3)) if radius > POINT else 0.0


def centers(facts):
    """Findings about mass centres far from the body's geometry."""
    for link in facts.links:
        if link.center is None or not link.has_mass:
            continue
        if link.extent:
            low, high = np.min(link.extent, axis=0), np.max(link.extent, axis=0)
            away = _norm(link.center - np.clip(link.center, low, high))
            if away > max(FAR * _norm(high - low), 0.05):
                text = f"its mass centre is {away:.3g} m outside its geometry, which measures "
                text += f"{_norm(high - low):.3g} m"
                yield finding_of("center-outside", link.part, text, link.inertia_place)
        elif _norm(link.center) > LONGEST:
            text = f"its mass centre is {_norm(link.center):.4g} m from its origin"
            yield finding_of("center-outside", link.part, text, link.inertia_place)


def angles(facts):
    """Findings about angle limits that look like degrees."""
    for joint in facts.joints:
        bounds = [abs(x) for x in (joint.lower, joint.upper) if x is not None]
        if joint.kind == "revolute" and any(20 < x <= 1080 for x in bounds):
            text = f"its limits are {joint.lower:g} to {joint.upper:g} rad, many turns"
            yield finding_of("unit-angle", joint.part, text, joint.limit_place)


def rotations(root, path):
    """Findings about roll-pitch-yaw or Euler angles in XML that look like degrees."""
    compiler = root.find("{*}compiler")  # of MJCF, where angles are in degrees by default
    in_radians = compiler is not None and compiler.get("angle") == "radian"
    for element in root.iter("*"):
        name, text = "rpy", element.get("rpy")
        if text is None and in_radians and element.get("euler"):
            name, text = "euler", element.get("euler")
        if text is None and tag_of(element) == "pose" and element.get("degrees") != "true":
            name, text = "pose", " ".join((element.text or "").split()[3:6])
        try:
            angles = numbers_in(text, None) if text else ()
        except ValueError:
            continue  # which the loader says
        many = [x for x in angles if abs(x) > 2 * np.pi + 1e-3 and x % 5 == 0]
        if many:
            listed = " ".join(f"{x:g}" for x in angles)
            text = f"the angles of its {name} are {listed} rad, and {many[0]:g} rad is "
            text += f"{abs(many[0]) / (2 * np.pi):.1f} turns"
            yield finding_of("unit-angle", _owner(element), text, Place(path, element.sourceline))


def _owner(element):
    """Named part (link, joint, ...) around an XML element."""
    for e in (element, *element.iterancestors()):
        if e.get("name") and tag_of(e) not in ("visual", "collision"):
            return part_name({"link": "body"}.get(tag_of(e), tag_of(e)), e.get("name"))
    return label(element)


def gravity(model):
    """Finding about gravity stronger than on Jupiter."""
    strength = _norm(np.real(model.gravity).astype(float))
    if strength > 30:
        yield finding_of(
            "unit-gravity", part_name("model", model.name), f"gravity is {strength:.4g} m/s²"
        )


def _sizes(facts):
    """Links with their size: of their geometry and the distances to joints."""
    reach = {}
    for joint in facts.joints:
        if joint.kind != "floating":
            reach[joint.parent] = max(reach.get(joint.parent, 0.0), _norm(joint.offset))
    for link in facts.links:
        size = _norm(_box(link)) if link.extent else 0.0
        center = 0.0 if link.center is None else _norm(link.center)
        yield link, max(size, reach.get(link.name, 0.0), center)


def _box(link):
    """Edge lengths of the box around a link."""
    return np.ptp(np.array(link.extent), axis=0)


def _norm(x):
    """Norm of a vector, zero if it is not finite."""
    return float(np.linalg.norm(x)) if np.all(np.isfinite(x)) else 0.0


# --- Meshes --------------------------------------------------------------------------------------


def missing_meshes(model):
    """Findings about meshes whose file does not exist."""
    for part, mesh in _meshes(model):
        if not os.path.isfile(mesh.path):
            yield finding_of("mesh-missing", part, f"there is no file {mesh.path!r}")


def unusable_meshes(model):
    """Findings about meshes that cannot be read, or are dozens of metres large."""
    there = [
        (part, mesh)
        for part, mesh in _meshes(model)
        if os.path.isfile(mesh.path) and mesh.path.lower().endswith(FORMATS)
    ]
    if there and find_spec("trimesh") is None:
        text = f"its {len(there)} meshes were not opened, since trimesh is not installed"
        yield finding_of("mesh-unseen", part_name("model", model.name), text)
        return
    for part, mesh in dict.fromkeys(there):
        try:
            size = _size(mesh.path, os.stat(mesh.path).st_mtime_ns, *mesh.scale)
        except (LoadError, OSError) as error:
            yield finding_of("mesh-broken", part, str(error))
            continue
        if size > LONGEST:
            text = f"the mesh {os.path.basename(mesh.path)!r} measures {size:.4g} m across"
            yield finding_of("unit-length", part, text)


def _meshes(model):
    """Names of bodies with the meshes of their shapes."""
    for geometry in model.geometry:
        if isinstance(geometry.shape, Mesh):
            yield part_name("body", model.body_names[geometry.body]), geometry.shape


@lru_cache(maxsize=1024)
def _size(path, changed, *scale):
    """Diagonal of a mesh's bounding box [m]."""
    del changed  # a file that has changed is read again
    return float(np.linalg.norm(np.ptp(read_triangles(path, scale).bounds, axis=0)))


# --- Inertias ------------------------------------------------------------------------------------

ROUNDING = 0.01
"""Part of the largest moment by which published, rounded numbers may break the rules."""

NOTHING = 1e-16
"""Square of a radius of gyration [m²] that counts as zero."""


def impossible_inertias(facts):
    """Findings about bodies whose mass and moments contradict each other."""
    for link in facts.links:
        if link.mass is None or not np.isfinite(link.mass):
            continue
        I = link.inertia
        if link.mass < 0:
            text = f"its mass is {link.mass:g} kg"
            yield finding_of("inertia-mass", link.part, text, link.mass_place)
        if I is None or not np.all(np.isfinite(I)):
            continue
        if link.mass == 0 and np.any(I):
            text = "it has a rotational inertia and no mass"
            yield finding_of("inertia-mass", link.part, text, link.inertia_place)
        yield from _moments(link, I)


def _moments(link, I):
    """Findings about physically impossible moments of inertia."""
    size = float(np.max(np.abs(I)))
    asymmetry = float(np.max(np.abs(I - I.T)))
    if asymmetry > 1e-6 * size:
        text = f"entries on either side of the diagonal differ by {asymmetry:.3g} kg m²"
        yield finding_of("inertia-symmetry", link.part, text, link.inertia_place)
        return
    scaled = I / max(size, np.finfo(float).tiny)
    low, middle, high = size * np.linalg.eigvalsh((scaled + scaled.T) / 2)
    if size <= NOTHING * abs(link.mass):
        if link.mass > 0:
            text = f"its rotational inertia is {'zero' if size == 0 else 'next to nothing'}, "
            text += f"its mass {link.mass:g} kg"
            yield finding_of("inertia-zero", link.part, text, link.inertia_place)
        return
    moments = (x if abs(x) > 1e-12 * size else 0.0 for x in (low, middle, high))
    listed = ", ".join(f"{x:.4g}" for x in moments) + " kg m²"
    if low < -1e-9 * size:
        yield finding_of(
            "inertia-positive", link.part, f"principal moments are {listed}", link.inertia_place
        )
    elif high > (low + middle) * (1 + 1e-9):
        excess = (high - low - middle) / high
        text = f"principal moments are {listed}: the largest exceeds the sum of the others by "
        text += f"{100 * excess:.3g} %"
        severity = "error" if excess > ROUNDING else "warning"
        yield finding_of("inertia-triangle", link.part, text, link.inertia_place, severity=severity)


def idle_joints(facts) -> dict:
    """Joints all of whose bodies are massless, by name, with these bodies."""
    massless = facts.subtrees()
    return {
        joint.name: (joint, massless[joint.child])
        for joint in facts.joints
        if joint.moves and joint.armature == 0 and joint.child in massless
    }


def massless_leaves(facts):
    """Findings about chains of joints that move no mass."""
    idle = idle_joints(facts)
    below = {x.name for joint, moved in idle.values() for x in moved if x.name != joint.child}
    for joint, moved in idle.values():
        if joint.child not in below:
            names = ", ".join(short(x.name) for x in moved[:3]) + (" ..." if len(moved) > 3 else "")
            text = f"it moves nothing that has mass: {names}"
            yield finding_of("massless", joint.part, text, joint.place)
