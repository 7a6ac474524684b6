"""Geoms of a compiled MuJoCo model: shapes, surfaces, and which of them can touch.

MuJoCo's contacts are soft, by ``solref`` and ``solimp``; ours hold exactly, so that these have no
meaning here. All the rest of what a file says about contact is kept: ``geometry.Surface``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.loaders.mjcf.joints import is_disabled
from kinetree.loaders.mjcf.tree import HERE
from kinetree.loaders.mjcf.values import POSE, AllBut, names_of, placement, shift
from kinetree.model import geometry
from kinetree.model.decomposition import kept_mesh
from kinetree.model.geometry import ContactPair, Geometry, Surface
from kinetree.model.names import ShapeNames
from kinetree.spatial import Plucker

ATTRIBUTES = {
    "geom": POSE | {
        "name", "class", "type", "size", "fromto", "contype", "conaffinity", "group", "mass",
        "density", "shellinertia", "mesh", "hfield", "fitscale", "rgba", "material", "condim",
        "friction", "margin", "gap", "priority", "fluidshape", "fluidcoef", "surfacevel",
    },
    "mesh": {
        "name", "class", "file", "content_type", "vertex", "face", "scale", "inertia", "builtin",
        "params", "maxhullvert", "smoothnormal", "normal", "refpos", "refquat",
    },
    "material": {"name", "class", "rgba"},
    "pair": {"name", "class", "geom1", "geom2", "condim", "friction", "margin", "gap"},
    **dict.fromkeys(("contact", "exclude", "hfield"), AllBut()),
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)  # mjtGeom
_GEOMS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_SOLIDS = {_GEOMS.index(name): s for name, s in geometry.solids_of_format("mjcf").items()}
_DEFAULT_COLOR = np.array([0.5, 0.5, 0.5, 1], dtype=np.float32)
_SHOWN_GROUPS = 3  # MuJoCo's viewers show groups 0, 1 and 2
_MOST_HEIGHTS = 2**16


def geometry_of(mj_model, tree, note, paths=None, references=None):
    """Shapes for MuJoCo's geoms; ``paths`` are mesh files by MuJoCo's name."""
    meshes = _Meshes(mj_model, paths or {}, references or {}, note)
    found, off = [], is_disabled(mj_model, "CONTACT") or is_disabled(mj_model, "CONSTRAINT")
    if off and mj_model.ngeom:
        note("flag", "", "contact is switched off: no shape of the model can touch", "contact")
    kinds, sizes, bodies = (
        getattr(mj_model, f"geom_{what}").tolist() for what in ("type", "size", "bodyid")
    )
    touch = ((mj_model.geom_contype | mj_model.geom_conaffinity) != 0).tolist()
    shown = (mj_model.geom_group < _SHOWN_GROUPS).tolist()
    colors, surfaces = _colors(mj_model), _surfaces(mj_model, note)
    alike: dict = {}  # shapes of the same size are one object, which is checked once
    wet = mj_model.geom_fluid[:, 0] > 0
    for g, name in enumerate(names_of(mj_model, "geom")):
        if wet[g] and not (touch[g] or shown[g]):  # nothing but a shape that a fluid flows around
            continue
        X = placement(mj_model.geom_pos[g], mj_model.geom_quat[g])
        kind = kinds[g]
        if kind in (MESH, SDF):
            shape, X = meshes.shape(int(mj_model.geom_dataid[g]), X, name)
        elif kind == HFIELD:
            shape = _height_field(mj_model, mj_model.geom_dataid[g], name, note)
        else:
            shape = shape_of(kind, sizes[g])
            shape = alike.setdefault(shape, shape)
        collides = touch[g] and not off
        if shape is None:
            why = "its shape has no counterpart here, and it is left out"
            if kind in (MESH, SDF):
                why = "its mesh has no file, and none could be written: it is left out"
            note("geom", name, why, "contact" if collides else "picture")
            continue
        b = bodies[g]
        place, link = tree.places[b], tree.body_names[b]
        carrier = tree.bodies[place.body - 1].name if place.body else tree.body_names[0]
        found.append(
            Geometry(
                place.body,
                shape,
                X if place.X is HERE else X @ place.X,
                name,
                visual=shown[g],
                collision=collides,
                color=colors[g],
                surface=surfaces[g] if collides else None,
                link="" if link == carrier else link,
            )
        )
    return tuple(found)


def _surfaces(mj_model, note):
    """Contact surface of each geom; equal ones share one object."""
    motion = np.array(getattr(mj_model, "geom_surfacevel", np.zeros((mj_model.ngeom, 6))))
    turned = np.isin(mj_model.geom_type, (MESH, SDF)) & np.any(motion, axis=1)
    for g in np.flatnonzero(np.any(motion[:, 3:], axis=1) | turned):
        why = (
            "its surface moves as a mesh or turns, where surfaces here move along: it stands still"
        )
        note("geom", names_of(mj_model, "geom")[g], why, "contact")
        motion[g] = 0.0
    names = ("margin", "gap", "condim", "priority", "contype", "conaffinity")
    rows = zip(
        map(tuple, mj_model.geom_friction.tolist()),
        *(getattr(mj_model, f"geom_{name}").tolist() for name in names),
        map(tuple, motion[:, :3].tolist()),
        strict=True,
    )
    known: dict = {}
    for row in (rows := list(rows)):
        if row not in known:
            given = dict(zip((*names, "velocity"), row[1:], strict=True))
            known[row] = Surface(*row[0], **given)
    return [known[row] for row in rows]


def shape_of(kind, size):
    """Shape for a kind of geom, except meshes and height fields; sizes are half lengths."""
    if kind == PLANE:
        return geometry.Plane((2 * size[0], 2 * size[1]))  # 0: without end, as there
    solid = _SOLIDS.get(kind)
    return None if solid is None else solid.from_half_sizes(size)


class _Meshes(NamedTuple):
    """MuJoCo moves a mesh to its principal frame; the file has it where it was."""

    mj_model: Any
    paths: dict
    references: dict
    note: Any

    def shape(self, mesh, X, geom):
        """Mesh file of a geom and its placement, undoing MuJoCo's principal frame; or None.

        A mesh that the file lists itself, or that MuJoCo has made, becomes a file of the cache.
        """
        start = int(self.mj_model.mesh_pathadr[mesh]) if mesh >= 0 else -1
        if start < 0:
            return (self._mesh_file(mesh) if mesh >= 0 else None), X
        text = bytes(self.mj_model.paths)
        file = text[start : text.index(b"\0", start)].decode("utf-8", "replace")
        moved = placement(self.mj_model.mesh_pos[mesh], self.mj_model.mesh_quat[mesh])
        x, y, z = (float(s) for s in self.mj_model.mesh_scale[mesh])
        X = moved.inverse() @ X
        if file in self.references:
            position, quaternion = self.references[file]
            X = self._from_file(position, quaternion, (x, y, z), geom) @ X
        return geometry.Mesh(self.paths.get(file, file), (x, y, z)), X

    def _mesh_file(self, mesh):
        """Mesh of the compiled model written to a cache file, in MuJoCo's frame."""
        parts = []
        for what in ("vert", "face"):
            first = int(getattr(self.mj_model, f"mesh_{what}adr")[mesh])
            count = int(getattr(self.mj_model, f"mesh_{what}num")[mesh])
            parts.append(np.array(getattr(self.mj_model, f"mesh_{what}")[first : first + count]))
        try:
            return geometry.Mesh(kept_mesh(*parts))
        except (OSError, KinetreeError):
            return None

    def _from_file(self, position, quaternion, scale, geom):
        """Transform of MuJoCo's mesh frame: vertices ``scale * R^T (v - position)`` of the file."""
        w, *turn = quaternion or (1.0, 0.0, 0.0, 0.0)
        if any(turn) and len(set(scale)) > 1:
            why = "its mesh is turned by refquat before it is stretched: placed without it"
            self.note("geom", geom, why, "contact")
            return Plucker.identity()
        X = placement((0, 0, 0), (w, *turn)).inverse()
        return shift(-np.multiply(scale, position)) @ X


def _height_field(mj_model, h, name, note):
    """Height field as a shape, with MuJoCo's rows transposed."""
    rows, columns = int(mj_model.hfield_nrow[h]), int(mj_model.hfield_ncol[h])
    if rows * columns > _MOST_HEIGHTS:
        note("geom", name, f"a height field of more than {_MOST_HEIGHTS} heights", "contact")
        return None
    start = int(mj_model.hfield_adr[h])
    x, y, top = (float(s) for s in mj_model.hfield_size[h, :3])
    heights = np.array(mj_model.hfield_data[start : start + rows * columns], dtype=float)
    heights = (top * heights.reshape(rows, columns).T).tolist()
    why = "a smooth surface through its heights, level beyond them, where MuJoCo has triangles"
    note("geom", name, f"kept as {why}", "contact")
    return geometry.HeightField(tuple(map(tuple, heights)), (2 * x, 2 * y))


def _colors(mj_model) -> list[tuple[float, float, float, float]]:
    """RGBA colour of each geom, rounded to the digits of the file.

    What is brighter than a picture can show is as bright as it can be.
    """
    colors = np.array(mj_model.geom_rgba)
    of_material = (mj_model.geom_matid >= 0) & np.all(colors == _DEFAULT_COLOR, axis=1)
    colors[of_material] = mj_model.mat_rgba[mj_model.geom_matid[of_material]]
    rows = [row.tobytes() for row in colors]
    unlike = dict(zip(rows, colors, strict=True))
    known = {}
    for key, color in unlike.items():
        red, green, blue, opacity = (float(str(min(max(c, 0), 1))) for c in color)
        known[key] = red, green, blue, opacity
    return [known[key] for key in rows]


# --- Pairs ---------------------------------------------------------------------------------------


def contact_pairs_of(mj_model, tree, geometry, note):
    """Contact pairs and excluded body pairs of a MuJoCo model."""
    if is_disabled(mj_model, "CONTACT") or is_disabled(mj_model, "CONSTRAINT"):
        return ()
    geoms, known = names_of(mj_model, "geom"), {g.name for g in geometry}
    found = []
    for p, name in enumerate(names_of(mj_model, "pair")):
        one, other = (geoms[int(getattr(mj_model, f"pair_geom{k}")[p])] for k in (1, 2))
        if not {one, other} <= known - {""}:
            note("pair", name, "one of its shapes is left out, and so is the pair", "contact")
            continue
        first, second, torsion, rolling, _ = map(float, mj_model.pair_friction[p])
        if first != second:
            why = "friction that differs in two directions; the larger holds in both"
            note("pair", name, why, "contact")
        surface = Surface(
            max(first, second),
            torsion,
            rolling,
            condim=int(mj_model.pair_dim[p]),
            margin=float(mj_model.pair_margin[p]),
            gap=float(mj_model.pair_gap[p]),
        )
        found.append(ContactPair(one, other, surface=surface, name=name))
    for name, signature in zip(
        names_of(mj_model, "exclude"), mj_model.exclude_signature.tolist(), strict=True
    ):
        ends = tree.body_names[signature >> 16], tree.body_names[signature & 0xFFFF]
        found.append(ContactPair(*ends, touch=False, name=name))
    return tuple(found)


def with_parents(mj_model, model):
    """Model with contact between bodies and parents if MuJoCo's parent filter is off."""
    if not is_disabled(mj_model, "FILTERPARENT"):
        return model
    from kinetree.contact.finding.pairs import may_touch

    names = ShapeNames(model).own
    of_parents = np.argwhere(np.triu(may_touch(model, parents=True) & ~may_touch(model)))
    more = [ContactPair(names[i], names[j]) for i, j in of_parents.tolist()]
    return model.replace(contact_pairs=(*model.contact_pairs, *more)) if more else model
