"""The kernels of a task: which there are, what they return, and what is wrong with them."""

import numpy as np

from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.functional.kernel import UserKernel
from kinetree.functional.parameters import parameter
from kinetree.learning.random import Draws, words
from kinetree.learning.step import FRICTION, OWN, RANDOM, random_inputs
from kinetree.model.arrays import as_configuration
from kinetree.spelling import did_you_mean

SEES = ("t", "steps", "action", "previous_action", "tau", "contact_force", "terminated")
"""What kernels may take beside ``q`` and ``qd``."""


def kernels_of(**given):
    """Kernels of a task by role, after checks; TypeError for a missing one."""
    for role in ("observe", "reward", "reset"):
        if given[role] is None:
            raise TypeError(f"Environment needs a kernel {role}=, got None")
    found = {role: kernel for role, kernel in given.items() if kernel is not None}
    for role, kernel in found.items():
        if not isinstance(kernel, UserKernel):
            raise TypeError(
                f"Environment: {role} becomes part of a compiled step and must be a function under "
                f"@kinetree.kernel, got {kernel!r}"
            )
        for kind in RANDOM:
            p = kernel.signature.parameters.get(kind)
            if p is not None and not (isinstance(p.annotation, tuple) and len(p.annotation) == 1):
                raise TypeError(
                    f"Environment: {role} kernel {kernel.__name__!r} must say how many random "
                    f"numbers it takes: {kind}: (n,)"
                )
    return found


def action_size(model, act) -> int:
    """Number of entries of an action: of ``act``'s argument, or one per actuator or joint."""
    if act is None:
        return len(model.actuators) or model.nv
    p = act.signature.parameters.get("action")
    if p is None or not isinstance(p.annotation, tuple) or len(p.annotation) != 1:
        raise TypeError(
            f"Environment: act kernel {act.__name__!r} must take action: (n,), with the size of an "
            f"action as annotation"
        )
    n = p.annotation[0]
    return getattr(model, n) if isinstance(n, str) else int(n)


def starts_of(model, reset, numbers, count=8):
    """Sample states (count, nq) and (count, nv) at which episodes begin.

    Args:
        model: the mechanism.
        reset: the kernel.
        numbers: arguments of one world, by name.
        count: how many.
    """
    found = []
    for world in range(count):
        draws = Draws(words(0), float(world), 0.0, {})
        given = {**numbers, **random_inputs(reset, "reset", draws)}
        names = tuple(reset.signature.parameters)[1:]
        start = reset.function(model, **{n: given[n] for n in names if n in given})
        found.append((start["q"], start.get("qd", np.zeros(model.nv))))
    return tuple(np.array(x, dtype=float) for x in zip(*found, strict=True))


def _shape_error(role, step, what, result):
    """ShapeError for a kernel whose result has a wrong shape."""
    name = step.kernels[role].__name__
    return ShapeError(
        f"Environment: {role} kernel {name!r} must return {what}, got shape {np.shape(result)}"
    )


def try_kernels(step, numbers) -> int:
    """Call every kernel once to check it; fills the step's shapes, returns observation size.

    Args:
        step: the ``ControlStep``, whose ``shapes`` are filled in.
        numbers: arguments of one world, by name.

    Returns:
        How many entries an observation has.
    """
    model, size = step.model, 0
    draws = Draws(words(0), 0.0, 0.0, {})
    found = step.call_kernel("reset", {**numbers, **step.random_numbers("reset", draws)})
    if not isinstance(found, dict) or "q" not in found:
        raise ShapeError(
            f"Environment: reset kernel {step.kernels['reset'].__name__!r} must return a dict "
            f"of arrays by name with 'q' in it, such as {{'q': q, 'qd': qd}}, got {found!r}"
        )
    own = {"q": (model.nq,), "qd": (model.nv,), "tick": (), "steps": ()}
    own["action"] = (step.actions,)
    if step.history:
        own["history"] = (step.history, step.actions)
    if step.delay[0] != step.delay[1]:
        own["delay"] = ()
    if step.physics.rows:
        own["force"] = (step.physics.rows,)
    if step.physics.states:
        own["activation"] = (step.physics.states,)
    may = {"q", "qd", *(("activation",) if step.physics.states else ())}
    taken = sorted({*found} & ({*OWN, *SEES, *RANDOM, *numbers} - may))
    if taken:
        raise UnknownNameError(
            f"Environment: reset kernel {step.kernels['reset'].__name__!r} returns "
            f"{taken[0]!r}, which is the name of something else; choose another"
        )
    step.shapes.update(own | {n: np.shape(x) for n, x in found.items() if n not in own})
    draws = Draws(words(0), 0.0, 0.0, {})
    state = step.begin(numbers, draws)
    as_configuration(model, np.asarray(state["q"], float))
    _check_parameters(step, {**numbers, **state})
    more = {"previous_action": state["action"], "tau": np.zeros(model.nv), "terminated": 0.0}
    sizes = {"observe": 1, "reward": 0, "terminate": 0, "act": 1, "update": None}
    for role in [r for r in sizes if r in step.kernels]:
        values = step.values_of(state, numbers, draws, role, action=state["action"])
        result = step.call_kernel(role, values | more)
        if role == "update":
            step.merge(state, result, role)
        elif role == "act" and np.shape(result) != (model.nv,):
            raise _shape_error(role, step, f"joint forces of shape ({model.nv},)", result)
        elif np.ndim(result) != sizes[role]:
            what = "a vector, (k,)" if sizes[role] else "one number or condition"
            raise _shape_error(role, step, what, result)
        elif role == "observe":
            size = len(result)
    return size


def _check_parameters(step, values):
    """Raise an error for model parameters tied to unknown argument names."""
    for name, value in step.parameters.items():
        if not isinstance(value, str) or value not in values:
            names = sorted(n for n in values if n not in OWN)
            raise UnknownNameError(
                f"Environment: parameter {name!r} takes the name of an argument or of a value "
                f"that reset returns, got {value!r}; {did_you_mean(str(value), names)}"
            )
        if name == FRICTION and not step.physics.is_rigid:
            raise ModelError("Environment: 'friction' is that of rigid contact; there is none")
        shape = () if name == FRICTION else parameter(step.model, name).shape
        if np.shape(values[value]) != shape:
            raise ShapeError(
                f"Environment: parameter {name!r} has shape {shape}, and {value!r} has "
                f"{np.shape(values[value])}"
            )
