"""Arguments of functions from the command line: joint vectors, frames, JSON.

Functions call the frame they are about ``name``, and the coordinates of the answer ``frame``; here
these are ``of`` and ``in``, whatever the function.
"""

import inspect
import json
import re
import sys

import numpy as np

from kinetree.cli.options import fail, misuse
from kinetree.spelling import did_you_mean

_UNDERSTOOD = {
    "model", "q", "qd", "qdd", "tau", "point", "name", "frame",
}  # fmt: skip
"""Parameters that can be given on the command line, if a function needs them."""


def functions() -> dict:
    """Functions of a model that can be evaluated, by name.

    They need nothing that would be too much to write, such as a force on every body. What else they
    take is optional, and given as JSON.
    """
    from kinetree.quantities import FUNCTIONS

    return {
        name: function
        for name, function in FUNCTIONS.items()
        if hasattr(function, "definition") and set(_required_names(function)) <= _UNDERSTOOD
    }


def _required_names(function):
    """Names of a function's required parameters."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is inspect.Parameter.empty]


def find_function(name):
    """Public function by its name; an error suggests similar names."""
    known = functions()
    if name in known:
        return known[name]
    listed = "kinetree eval --list lists them"
    hint = did_you_mean(name.replace("-", "_"), known, listed, most=3, cutoff=0.5)
    misuse(f"there is no function {name!r}; {hint}")


def summary(function) -> str:
    """First sentence of a function's docstring."""
    text = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    return re.sub(r",? *\(\.\.\.[^)]*\)", "", text.replace("``", ""))


def spelling(function) -> dict[str, str]:
    """Option names for the parameters of a function, without the model."""
    names = list(inspect.signature(function).parameters)[1:]
    special = {"name": "of", "frame": "in"}
    return {name: special.get(name, name) for name in names}


def bind(function, model, given) -> dict:
    """Arguments of a function, from given texts and defaults."""
    name, words = function.__name__, spelling(function)
    parameter_of = {word: parameter for parameter, word in words.items()}
    arguments = {}
    for key, value in given.items():
        if key not in parameter_of and key not in words:
            misuse(f"{name} takes no {key!r}; it takes {', '.join(parameter_of)}")
        arguments[parameter_of.get(key, key)] = value
    needed = _required_names(function)
    if "of" in parameter_of and parameter_of["of"] not in arguments:
        frames = [*model.frame_names, *model.body_names]
        misuse(f"{name} of what? Give --of and one of {', '.join(frames)}")
    if "in" in parameter_of:  # the answer names the coordinates
        usual = inspect.signature(function).parameters[parameter_of["in"]].default
        arguments.setdefault(parameter_of["in"], usual if isinstance(usual, str) else "world")
    return {p: _value(model, p, arguments.get(p)) for p in words if p in arguments or p in needed}


def _value(model, parameter, given):
    """Value of a function's parameter, from text."""
    if parameter == "q":
        return configuration(model, given)
    if parameter in ("qd", "qdd", "tau"):
        return vector(model, parameter, given)
    if parameter in ("f_ext", "point"):
        return numbers(given, parameter)
    return given


def settings(pairs) -> dict:
    """Arguments as a dict from ``NAME=JSON`` texts; other text stays text."""
    found = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            misuse(f"--set needs NAME=VALUE, got {pair!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def standard_input(mark) -> dict:
    """Arguments as a dict from a JSON object on standard input."""
    if mark != "-":
        misuse(f"unexpected argument {mark!r}; '-' reads JSON from stdin")
    try:
        found = json.loads(sys.stdin.read())
    except ValueError as error:
        fail(f"standard input is not JSON: {error}", code=2)
    if not isinstance(found, dict):
        example = '{"q": [0, 1]}'
        fail(f"standard input must be a JSON object, such as {example}; got {found!r}", code=2)
    return found


# --- Joint vectors: numbers, JSON, ``neutral``, ``random:7``, a posture --------------------------

_WORDS = "1,2,3 or JSON such as [1, 2, 3], neutral, random, random:SEED or the name of a posture"


def numbers(text, what):
    """Numbers from text such as ``1,2,3``, ``1 2 3`` or JSON; non-texts unchanged."""
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
    """Configuration (..., nq) from text: numbers, a posture's name, or ``random``."""
    if text is None or text == "neutral":
        return model.neutral()
    if isinstance(text, str):
        if text == "random" or text.startswith("random:"):
            return model.random_configuration(_seed(text))
        if (posture := _posture(model, text)) is not None:
            return np.array(posture.q)
    return _array(model, numbers(text, "q"), "q", model.q_slice)


def vector(model, name, text):
    """Joint vector (..., nv) from text; zero by default."""
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
    """Array of positions or velocities from numbers or a dict by joint."""
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
    """Seed of ``random:7``; 0 without a number."""
    seed = text.partition(":")[2] or "0"
    if not seed.isdigit():
        misuse(f"a seed is an integer, such as random:7; got {text!r}")
    return int(seed)


def _posture(model, text):
    """Posture with a name; an error suggests similar names."""
    postures = {posture.name: posture for posture in model.postures}
    if text in postures:
        return postures[text]
    if re.fullmatch(r"[A-Za-z_][\w \-]*", text.strip()) and text.lower() not in ("nan", "inf"):
        known = ["neutral", "random", *postures]
        hint = did_you_mean(text, known, f"there are {', '.join(known)}")
        misuse(f"no posture is called {text!r}; {hint}")
    return None
