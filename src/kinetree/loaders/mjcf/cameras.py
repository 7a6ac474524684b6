"""Cameras of a compiled MuJoCo model that are fixed to bodies."""

import numpy as np

from kinetree.loaders.mjcf.values import AllBut, names_of, placement, unused_name
from kinetree.model import Camera
from kinetree.model.cameras import MOST_PIXELS

ATTRIBUTES = {
    "camera": AllBut("user", "target", "focal", "focalpixel", "principal", "principalpixel",
                     "sensorsize", "ipd", "orthographic", "projection", "output"),
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""


def cameras_of(mj_model, tree, note) -> tuple[Camera, ...]:
    """Cameras of a MuJoCo model, attached to the bodies that carry them.

    Args:
        mj_model: the compiled model.
        tree: our bodies and the places of MuJoCo's.
        note: called for cameras that are left out.
    """
    found, taken = [], set()
    for k, given in enumerate(names_of(mj_model, "cam")):
        if mj_model.cam_mode[k] != 0:
            note("camera", given, "it follows something; the camera is left out", "picture")
            continue
        place = tree.places[int(mj_model.cam_bodyid[k])]
        X = placement(mj_model.cam_pos[k], mj_model.cam_quat[k]) @ place.X
        of = tree.bodies[place.body - 1].name if place.body else ""
        width, height = (int(n) for n in mj_model.cam_resolution[k])
        size = Camera.size if min(width, height) < 2 else (width, height)
        if width * height > MOST_PIXELS:
            note("camera", given, f"a picture of {width}x{height} pixels is too large", "picture")
            size = Camera.size
        angle = float(np.radians(mj_model.cam_fovy[k]))
        found.append(
            Camera(unused_name(given or f"camera_{k}", "camera", taken), of, X, angle, size)
        )
    return tuple(found)
