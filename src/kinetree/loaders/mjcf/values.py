"""Names, placements and inertias of a compiled MuJoCo model, and MuJoCo itself."""

import warnings
from typing import Any

import numpy as np

from kinetree.errors import InteropError, LoadError, MissingPackageError
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import rotation_from_quaternion
from kinetree.spatial.vector3 import identity3

POSE = {"pos", "quat", "axisangle", "xyaxes", "zaxis", "euler"}
"""Attributes that say where something is."""


def names_of(mj_model, kind):
    """Names of all objects of a kind (``"body"``, ``"jnt"``, ...); empty if unnamed."""
    text = bytes(mj_model.names)
    return [_name_at(text, int(start)) for start in getattr(mj_model, f"name_{kind}adr")]


def model_name(mj_model):
    """Name of the model."""
    return _name_at(bytes(mj_model.names), 0)


def _name_at(text, start):
    """Name that begins at an offset in MuJoCo's table of names."""
    return text[start : text.index(b"\0", start)].decode("utf-8", "replace")


def body_names(mj_model):
    """Names of the bodies, the world first; unnamed ones by number."""
    given = names_of(mj_model, "body")
    taken = set(given)
    return [name or _take(f"body_{b}", taken) for b, name in enumerate(given)]


def joint_names(mj_model, free=None):
    """Names of the joints, unnamed ones by their body, and of those in ``free``.

    Args:
        mj_model: the compiled model.
        free: names of the free joints that MuJoCo did not see, by the number of their body.
    """
    given, free = names_of(mj_model, "jnt"), free or {}
    bodies, taken = body_names(mj_model), {*given, *free.values()}
    names, of_free = [], {}
    counts, firsts = mj_model.body_jntnum.tolist(), mj_model.body_jntadr.tolist()
    for b, (count, first) in enumerate(zip(counts, firsts, strict=True)):
        for k, name in enumerate(given[first : first + count] if count else (), start=1):
            number = f"_{k}" if count > 1 else ""
            names.append(name or _take(f"{bodies[b]}_joint{number}", taken))
        if b in free:
            of_free[b] = free[b] or _take(f"{bodies[b]}_joint", taken)
    return names, of_free


def unused_name(name, suffix, taken):
    """Unused name: with a suffix, then a number if it is taken; added to ``taken``."""
    return _take(name if name not in taken else f"{name}_{suffix}", taken)


def _take(name, taken):
    """Unused name with a number appended if needed; added to ``taken``."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate


class AllBut:
    """The set of all names but a few."""

    def __init__(self, *names):
        self.names = names

    def __contains__(self, name):
        return name not in self.names


# --- Placements and inertias ---------------------------------------------------------------------


_UPRIGHT = [1.0, 0.0, 0.0, 0.0]


def placement(position, quaternion) -> Plucker:
    """Transform to a frame at a position with orientation ``(w, x, y, z)``."""
    return Plucker(rotation(quaternion), _exact(position))


def shift(position) -> Plucker:
    """Transform to a parallel frame at a position."""
    return Plucker(identity3(), _exact(position))


def rotation(quaternion):
    """Coordinate rotation of a quaternion; exact integers for quarter turns."""
    p = np.array(quaternion, dtype=float)
    if p.tolist() == _UPRIGHT:
        return identity3()
    E = rotation_from_quaternion(p / np.linalg.norm(p))
    whole = np.rint(E)
    return whole.astype(int) if np.max(np.abs(E - whole)) < 1e-15 else E


def inertia_of(mj_model, body) -> Inertia:
    """Inertia of a MuJoCo body in its frame."""
    m, moments = float(mj_model.body_mass[body]), np.array(mj_model.body_inertia[body])
    if m == 0 and not np.any(moments):
        return Inertia.zero()
    I_C, c = np.diag(moments), np.array(mj_model.body_ipos[body])
    if mj_model.body_iquat[body].tolist() != _UPRIGHT:
        R = rotation(mj_model.body_iquat[body]).T
        I_C = R @ I_C @ R.T
        I_C = (I_C + I_C.T) / 2
    return Inertia.from_mass_center(m, c, I_C) if np.any(c) else Inertia(m, m * c, I_C)


def _exact(position):
    """Position with integer zeros, which count as structure."""
    r = np.array(position, dtype=float)
    return r if np.any(r) else r.astype(int)


# --- The library ---------------------------------------------------------------------------------


class MissingLibraryError(LoadError, InteropError, MissingPackageError):
    """MuJoCo is not installed."""


def mujoco() -> Any:
    """Module ``mujoco``; an error says how to install it."""
    try:
        import mujoco as library
    except ImportError as error:
        raise MissingLibraryError(
            f"MJCF is read by MuJoCo, which cannot be imported ({error}): "
            f'pip install "kinetree[mjcf]"'
        ) from error
    if not hasattr(library, "MjSpec"):
        raise MissingLibraryError(
            f"MuJoCo at {getattr(library, '__file__', '?')} is older than 3.3, or a namesake: "
            f'pip install -U "kinetree[mjcf]"'
        )
    return library


def compile_quietly(make):
    """Result of ``make()`` and MuJoCo's warnings during it, as texts.

    MuJoCo prints warnings and appends them to a file MUJOCO_LOG.TXT in the current folder, unless
    a callback is set; the callback from before is restored afterwards.
    """
    library, texts = mujoco(), []
    before = library.get_mju_user_warning()
    library.set_mju_user_warning(texts.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make()
    finally:
        library.set_mju_user_warning(before)
    texts += [str(w.message) for w in caught]
    return model, list(dict.fromkeys(texts))
