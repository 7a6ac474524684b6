"""Sensors of a compiled MuJoCo model.

A frame of MuJoCo, which may be that of a body, of its inertia, of a geom, a site or a camera,
becomes a frame or body of the model and a placement on it. Forces and subtrees of a body that
became part of another are about its own inertia, and about the bodies that it carries.
"""

from typing import Any

import numpy as np

from kinetree.loaders.mjcf.geoms import shape_of
from kinetree.loaders.mjcf.joints import BALL, variables
from kinetree.loaders.mjcf.values import (
    AllBut,
    inertia_of,
    mujoco,
    names_of,
    placement,
    unused_name,
)
from kinetree.model import Model, Sensor
from kinetree.model.sensors import KINDS, PARTIAL, known_names
from kinetree.spatial import Inertia, Plucker

ATTRIBUTES = {
    "sensor": AllBut(),
    **dict.fromkeys(
        map("sensor/{}".format, KINDS), AllBut("user", "nsample", "interp", "delay", "interval")
    ),
}
"""Attributes of MJCF that a model represents, by element; the rest is noted."""
_TAGS = {
    "JOINTACTFRC": "jointactuatorfrc", "TENDONACTFRC": "tendonactuatorfrc", "GEOMDIST": "distance",
    "GEOMNORMAL": "normal", "GEOMFROMTO": "fromto",
}  # fmt: skip
_IDENTITY = Plucker.identity()
_NAMED = {"JOINT": "jnt", "TENDON": "tendon", "ACTUATOR": "actuator", "GEOM": "geom"}


def with_sensors(mj_model, tree, model, sites, note) -> Model:
    """Model with MuJoCo's sensors of joints, bodies and so on added.

    Args:
        mj_model: the compiled model.
        tree: our bodies and the places of MuJoCo's.
        model: our model.
        sites: frames of its sites, in order.
        note: called for sensors that are left out.
    """
    if not mj_model.nsensor:
        return model
    reader, found, taken = _Reader(mj_model, tree, model.frames, sites), [], set()
    known = {kind: set(names) for kind, names in known_names(vars(model)).items()}
    for k, given in enumerate(names_of(mj_model, "sensor")):
        number = int(mj_model.sensor_type[k])
        theirs: str = mujoco().mjtSensor(number).name.removeprefix("mjSENS_")
        kind = _TAGS.get(theirs, theirs.lower())
        why = None if kind in KINDS else "kinetree has no such sensor"
        if why is None:
            name = unused_name(given or f"{kind}_{k}", "sensor", taken)
            try:
                sensor = Sensor(name, kind, **reader.read(k, kind))
            except _UnreadableError as error:
                why = str(error)
            else:
                of = KINDS[kind].of
                if not of or sensor.of in known[of]:
                    found.append(sensor)
                    continue
                why = f"{of} {sensor.of!r}, which it is a sensor of, is not represented"
        note(kind, given, f"{why}; the sensor is left out", "control")
    return model.replace(sensors=found)


class _UnreadableError(Exception):
    """Says why a sensor is left out."""


class _Reader:
    def __init__(self, mj_model, tree, frames, sites):
        self.mj, self.tree, self.sites = mj_model, tree, sites
        self.object = mujoco().mjtObj
        self.frames: dict = {}  # by their body
        for frame in frames:
            self.frames.setdefault(frame.body, []).append(frame)
        self.names: dict = {}  # by what has them

    def read(self, k, kind) -> dict[str, Any]:
        """Fields of the sensor with number ``k``."""
        mj = self.mj
        found: dict[str, Any] = {}
        for key in ("cutoff", "noise"):
            found[key] = float(getattr(mj, f"sensor_{key}")[k])
        obj, ref = int(mj.sensor_objid[k]), int(mj.sensor_refid[k])
        of, reference = (self.object(int(x[k])) for x in (mj.sensor_objtype, mj.sensor_reftype))
        if kind.startswith("subtree"):
            of = self.object.mjOBJ_XBODY  # whose axes play no part
        if KINDS[kind].of == "frame":
            found["of"], found["placement"], body, X = self._frame(of, obj)
            if ref >= 0:
                found["reference"], found["reference_placement"], *_ = self._frame(reference, ref)
            if kind in PARTIAL:
                found |= self._part(body, X)
        elif KINDS[kind].of:
            found["of"] = self._name(of, obj)
            found["reference"] = self._name(reference, ref) if ref >= 0 else ""
        return found | self._extra(kind, obj)

    def _extra(self, kind, obj):
        """Additional sensor fields of some kinds."""
        mj = self.mj
        if kind == "actuatorfrc" and getattr(mj, "actuator_ctrlnum", np.ones(obj + 1))[obj] > 1:
            raise _UnreadableError("its actuator has several inputs, whose forces are apart here")
        if kind == "actuatorpos":
            return {"offset": self._length(obj)}
        if kind == "jointpos":
            return {"offset": variables(mj, obj).reference}
        if kind.startswith("jointlimit"):
            if mj.jnt_type[obj] == BALL:
                raise _UnreadableError("the range of a ball joint has no counterpart here")
            return {"data": (float(mj.jnt_margin[obj]),)} if mj.jnt_margin[obj] else {}
        if kind.startswith("tendonlimit") and mj.tendon_margin[obj]:
            return {"data": (float(mj.tendon_margin[obj]),)}
        if kind == "magnetometer":
            return {"data": tuple(float(x) for x in mj.opt.magnetic)}
        if kind == "touch":
            size = [float(x) for x in mj.site_size[obj]]
            return {"shape": shape_of(int(mj.site_type[obj]), size)}
        if kind == "e_potential":  # bodies that do not move have a weight, too
            still = [b for b in range(1, mj.nbody) if self.tree.places[b].body == 0]
            moments = (self._inertia(b).first_moment for b in still)
            return {"offset": -float(mj.opt.gravity @ sum(moments, start=np.zeros(3)))}
        return {}

    def _length(self, a):
        """Length of an actuator on a joint at kinetree's zero position."""
        mj = self.mj
        if mj.actuator_trntype[a] not in (0, 1):
            return 0.0
        out = mj.actuator_outadr[a] if hasattr(mj, "actuator_outadr") else a
        joint = variables(mj, int(mj.actuator_trnid[a, 0]))
        return float(mj.actuator_gear[out, 0]) * joint.reference

    def _name(self, kind, number):
        """Name of a joint, tendon, actuator, geom or body by number."""
        kind = kind.name.removeprefix("mjOBJ_")
        if kind == "JOINT":
            return self.tree.joint_names[number]
        if kind in ("BODY", "XBODY"):
            return self.tree.body_names[number]
        if kind not in self.names:
            self.names[kind] = names_of(self.mj, _NAMED[kind])
        return self.names[kind][number]

    def _frame(self, kind, number):
        """Frame name, placements and body for an object of MuJoCo."""
        mj, kind = self.mj, kind.name.removeprefix("mjOBJ_")
        if kind in ("BODY", "XBODY"):
            body, X = number, None
            if kind == "BODY":
                X = placement(mj.body_ipos[number], mj.body_iquat[number])
        elif kind in ("GEOM", "SITE", "CAMERA"):
            short = {"CAMERA": "cam"}.get(kind, kind.lower())
            body = int(getattr(mj, f"{short}_bodyid")[number])
            X = placement(getattr(mj, f"{short}_pos")[number], getattr(mj, f"{short}_quat")[number])
            if kind == "CAMERA" and mj.cam_mode[number] != 0:
                raise _UnreadableError("the camera follows something and has no separate frame")
        else:
            raise _UnreadableError(f"a {kind.lower()} has no frame here")
        place = self.tree.places[body]
        X = place.X if X is None else X @ place.X
        if kind == "SITE":
            return self.sites[number].name, _IDENTITY, body, X
        for frame in self.frames.get(place.body, ()):
            if _same(frame.placement, X):
                return frame.name, _IDENTITY, body, X
        bodies = self.tree.bodies
        name = bodies[place.body - 1].name if place.body else self.tree.body_names[0]
        return name, X, body, X

    # --- a body with all that it carries ---------------------------------------------------------

    def _part(self, b, X):
        """Inertia and outer bodies of a MuJoCo body that is merged into another body.

        Args:
            b: MuJoCo's body.
            X: from our body to the frame of the sensor.
        """
        mj, places = self.mj, self.tree.places
        ours, inside = places[b].body, {b}
        for c in range(b + 1, mj.nbody):
            if int(mj.body_parentid[c]) in inside:
                inside.add(c)
        welded = [c for c in sorted(inside) if places[c].body == ours]
        still = ours == 0 and any(mj.body_mass[c] for c in welded)
        if not still and len(welded) == sum(place.body == ours for place in places):
            return {}
        inertia = sum((self._inertia(c) for c in welded if c), start=Inertia.zero())
        beyond = [
            self.tree.bodies[places[c].body - max(int(mj.body_jntnum[c]), 1)].name
            for c in sorted(inside)
            if places[c].body != ours and places[mj.body_parentid[c]].body == ours
        ]
        return {"inertia": inertia.transformed(X), "beyond": tuple(beyond)}

    def _inertia(self, b):
        """Inertia of a MuJoCo body in coordinates of the model's body."""
        return inertia_of(self.mj, b).inverse_transformed(self.tree.places[b].X)


def _same(one, other):
    """Whether two placements are equal, None included."""
    return np.array_equal(one.E, other.E) and np.array_equal(one.r, other.r)
