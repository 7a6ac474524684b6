"""Features of models that an algorithm does not support, declared by a decorator.

    @refuses("loops", "couplings", use="kinetree.forward_dynamics")
    def forward_dynamics_1(model, q, qd, tau): ...

A text that would leave out something that the model has raises an error that names the text, the
feature and what to use. What is left unsaid is honoured: ``tests/algorithms`` walks all texts and
all features. Springs, dampers and friction are apart from all texts but ``passive``.

Loops leave the coefficients of the equation of motion as they are: ``H``, ``C``, energies and
Jacobians are those of the spanning tree. They change what is solved for: accelerations, inverse
inertias, inertias at a handle.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from kinetree.errors import JointError, LoopError, ModelError

Text = TypeVar("Text", bound=Callable[..., Any])


def refuses(*features, use):
    """Decorator: raise an error for models with one of the features, advising what to ``use``.

    Args:
        features: ``"loops"``, user-defined constraints among them; ``"constraints"``, these alone;
            ``"couplings"``, ``"armature"``, or ``"prescribed"``: joints whose motion is a function
            of time.
        use: what to use instead, the end of a sentence.
    """
    for feature in features:
        assert feature in _FOUND, feature

    def decorate(text: Text) -> Text:
        name = f"{text.__module__.rpartition('.')[2]}.{text.__name__}"

        def refuse(model):
            for feature in features:
                found = _FOUND[feature](model)
                if found:
                    raise _ERROR[feature](
                        f"{name} does not support {found} of model {model.name!r}; use {use}"
                    )

        @wraps(text)
        def of_model(model, *arrays, **options):
            refuse(model)
            return text(model, *arrays, **options)

        cast(Any, of_model).refuse = refuse
        return cast(Text, of_model)

    return decorate


def timed_joints(model) -> tuple[int, ...]:
    """Numbers of the prescribed joints: those that move with time, whatever their variables."""
    return tuple(i for i in model.outward() if model.joint[i].moves_by_itself)


# --- features ------------------------------------------------------------------------------------


def _loops(model):
    """Name of the first loop or constraint of a model; empty if it has none."""
    if model.constraints and not model.loops:
        return f"constraint {model.constraints[0].name!r}"
    return model.loops and f"the loop that joint {model.loops[0].name!r} closes"


def _constraints(model):
    """Name of the first user-defined constraint, empty where there is none."""
    return model.constraints and f"constraint {model.constraints[0].name!r}"


def _couplings(model):
    """Name of the first coupling of a model; empty if it has none."""
    return model.couplings and f"coupling {model.couplings[0].name!r}"


def _armature(model):
    """Name of the first joint with armature; empty if there is none."""
    joints = model.armature_joints
    return joints and f"the armature of joint {model.joint_names[joints[0] - 1]!r}"


def _first_prescribed(model):
    """Description of the first prescribed joint, or an empty list."""
    joints = timed_joints(model)
    return joints and f"prescribed joint {model.joint_names[joints[0] - 1]!r}"


_FOUND = {
    "loops": _loops, "constraints": _constraints, "couplings": _couplings, "armature": _armature,
    "prescribed": _first_prescribed,
}  # fmt: skip
_ERROR = {
    "loops": LoopError, "constraints": LoopError, "couplings": ModelError, "armature": ModelError,
    "prescribed": JointError,
}  # fmt: skip
