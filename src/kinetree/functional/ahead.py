"""Which code a function runs for a model, and building the specialised code ahead of the work."""

from collections.abc import Callable
from inspect import Parameter
from typing import Any, Literal

from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import UnknownNameError
from kinetree.functional.kernel import UserKernel
from kinetree.model import Model
from kinetree.model.arrays import as_model


def tier_of(
    model: Model, function: Callable[..., Any], **options: Any
) -> Literal["general", "specialised"]:
    """The tier of the code that the next single call of a function runs for a model.

    Args:
        model: the mechanism.
        function: a function of kinetree, or one of your own under ``@kinetree.kernel``.
        **options: arguments of the function that choose its code, such as the name of a frame.

    Returns:
        ``"general"`` for code that serves every robot, ``"specialised"`` for code for this one.
    """
    if isinstance(function, UserKernel):
        return "specialised"
    return kernel_of_function(as_model(model), function, options).next_tier


def kernel_of_function(model, function, options) -> Kernel:
    """The kernel of a public function, by its options; raise UnknownNameError where it has none."""
    definition = getattr(function, "definition", None)
    if definition is None:
        name = getattr(function, "__name__", repr(function))
        raise UnknownNameError(
            f"{name} has no code of its own: it runs in Python and calls compiled functions. Ask "
            f"about one of these, such as kinetree.forward_dynamics"
        )
    unknown = [n for n in options if n not in definition.options]
    if unknown:
        known = ", ".join(definition.options) or "none"
        raise UnknownNameError(
            f"{definition.name} has no option {unknown[0]!r}; those that choose its code: {known}"
        )
    missing = [
        n for n in definition.options
        if n not in options and definition.signature.parameters[n].default is Parameter.empty
    ]  # fmt: skip
    if missing:
        raise UnknownNameError(f"{definition.name} needs {missing[0]}= to say which code is meant")
    return definition.kernel(model, **options)
