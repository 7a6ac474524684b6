"""Models to and from MuJoCo."""

import warnings

from kinetree.errors import InteropError, LoadError, ModelWarning
from kinetree.joints import Free
from kinetree.loaders.mjcf.compiled import from_compiled
from kinetree.loaders.mjcf.library import compiled, mujoco
from kinetree.model import Model
from kinetree.writers.mjcf import to_mjcf

__all__ = ["from_model", "to_model"]

_SHOWN = 10


def from_model(mj_model, *, lump=True, floating_base=False) -> Model:
    """The mechanism in an ``MjModel``, or in an ``MjSpec``, which is compiled first.

    Joints and bodies keep their names; unnamed ones are called after the body, or its number.
    Several joints in a body become a chain with massless bodies in between. A body without a
    joint becomes a frame on the body that carries it; sites become frames. Our bodies sit at
    their joint; where MuJoCo's sits elsewhere, its frame is called ``<body>_link``.

    Args:
        mj_model: the ``mujoco.MjModel`` or ``mujoco.MjSpec``.
        lump: merge bodies without a joint into those that carry them.
        floating_base: put such bodies, if the world carries them, on free joints.

    Warns:
        ModelWarning: for what the model does not carry, such as tendons.
    """
    library = mujoco()
    if isinstance(mj_model, library.MjSpec):
        spec = mj_model
        try:
            mj_model, _ = compiled(lambda: spec.copy().compile())
        except (ValueError, RuntimeError, library.FatalError, library.UnexpectedError) as error:
            raise InteropError(
                f"MuJoCo cannot compile the spec: {' '.join(str(error).split())}"
            ) from None
    if not isinstance(mj_model, library.MjModel):
        raise InteropError(
            f"from_model needs a mujoco.MjModel or MjSpec, got {type(mj_model).__name__}; of an "
            f"MjData, give data.model"
        )
    told = []
    tell = lambda tag, name, why: told.append(f"{tag} {name!r}: {why}" if name else f"{tag}: {why}")  # noqa: E731
    try:
        model = from_compiled(mj_model, tell, lump=lump, floating_base=floating_base)
    except LoadError as error:
        raise InteropError(str(error)) from None
    if floating_base and not any(isinstance(j, Free) for j in model.joint[1:]):
        tell("floating_base=True", "", "the world carries no body without a joint to set free")
    _tell_of_sections(mj_model, told)
    if told:
        told = list(dict.fromkeys(told))
        more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        warnings.warn(
            f"model {model.name!r}: not carried along: {'; '.join(told[:_SHOWN])}{more}",
            ModelWarning,
            stacklevel=2,
        )
    return model


def _tell_of_sections(mj_model, told):
    for count, what in ((mj_model.ntendon, "tendons"), (mj_model.nsensor, "sensors")):
        if count:
            told.append(f"{count} {what}")


def to_model(model):
    """The mechanism as a ``mujoco.MjModel``; see ``writers.mjcf.to_mjcf`` for what that carries."""
    library, text = mujoco(), to_mjcf(model)
    try:
        return compiled(lambda: library.MjSpec.from_string(text).compile())[0]
    except (ValueError, RuntimeError, library.FatalError, library.UnexpectedError) as error:
        raise InteropError(
            f"MuJoCo refuses model {model.name!r}: {' '.join(str(error).split())}"
        ) from None
