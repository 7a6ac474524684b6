"""Joint vectors as people write them: numbers, JSON, ``neutral``, ``random:7``, a posture."""

import json
import re

import numpy as np

from kinetree.cli.errors import misuse
from kinetree.spelling import did_you_mean

__all__ = ["configuration", "numbers", "vector"]

_WORDS = "1,2,3 or JSON such as [1, 2, 3], neutral, random, random:SEED or the name of a posture"


def numbers(text, what):
    """Numbers from ``1,2,3``, ``1 2 3`` or JSON; anything that is not text is left as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [float(word) for word in re.split(r"[,\s]+", text.strip(" ,"))]
    except ValueError:
        misuse(f"{what} must be {_WORDS}; got {text!r}")


def configuration(model, text):
    """Position variables (..., nq)."""
    if text is None or text == "neutral":
        return model.neutral()
    if isinstance(text, str):
        if text == "random" or text.startswith("random:"):
            return model.random_configuration(_seed(text))
        if (posture := _posture(model, text)) is not None:
            return np.array(posture.q)
    return _array(model, numbers(text, "q"), "q", model.q_slice)


def vector(model, name, text):
    """Velocity variables, accelerations or joint forces (..., nv); zero by default."""
    if text is None or text in ("zero", "neutral"):
        return np.zeros(model.nv)
    if isinstance(text, str):
        if text == "random" or text.startswith("random:"):
            return np.random.default_rng(_seed(text)).standard_normal(model.nv)
        posture = _posture(model, text)
        if posture is not None and name == "qd":
            return np.array(posture.qd) if posture.moves else np.zeros(model.nv)
    return _array(model, numbers(text, name), name, model.v_slice)


def _array(model, values, what, slices):
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        misuse(f"{what} must hold numbers, got {values!r}")
    size = slices[-1].stop
    if array.ndim == 0 or array.shape[-1] != size:
        parts = [
            name if part.stop - part.start == 1 else f"{name} ({part.stop - part.start})"
            for name, part in zip(model.joint_names, slices[1:], strict=True)
            if part.stop > part.start
        ]
        got = 1 if array.ndim == 0 else array.shape[-1]
        misuse(f"{what} needs {size} numbers, got {got}; one for each of {', '.join(parts)}")
    return array


def _seed(text):
    seed = text.partition(":")[2] or "0"
    if not seed.isdigit():
        misuse(f"a seed is a whole number, such as random:7; got {text!r}")
    return int(seed)


def _posture(model, text):
    """The posture of that name; a word that is none is a mistake worth a suggestion."""
    postures = {posture.name: posture for posture in model.postures}
    if text in postures:
        return postures[text]
    if re.fullmatch(r"[A-Za-z_][\w \-]*", text.strip()) and text.lower() not in ("nan", "inf"):
        known = ["neutral", "random", *postures]
        hint = did_you_mean(text, known, f"there are {', '.join(known)}")
        misuse(f"no posture is called {text!r}; {hint}")
    return None
