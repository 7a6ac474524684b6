"""A digest of a model's content: equal content, equal digest, in any process."""

import hashlib
from dataclasses import fields
from types import FunctionType

import numpy as np

__all__ = ["fingerprint"]


def fingerprint(model) -> str:
    """SHA-256 over names, structure and numbers of a model, as a hexadecimal string."""
    digest = hashlib.sha256()
    for item in _flatten(
        [model.name, model.body_names, model.gravity, model.bodies, model.frames, model.loops]
    ):
        digest.update(item)
        digest.update(b"\0")
    return digest.hexdigest()


def _flatten(x):
    """Bytes that describe ``x`` completely, in a fixed order."""
    if isinstance(x, (list, tuple)):
        yield f"{len(x)}".encode()
        for item in x:
            yield from _flatten(item)
    elif isinstance(x, np.ndarray):
        yield from _flatten(x.tolist())
    elif isinstance(x, (bool, str, bytes, type(None))):
        yield f"{type(x).__qualname__}:{x!r}".encode()
    elif isinstance(x, (int, float, np.integer, np.floating)):
        # Integers and floats count alike, and adding zero makes -0.0 and 0.0 one number.
        yield repr(float(x) + 0.0).encode()
    elif hasattr(x, "__dataclass_fields__"):
        yield _kind(x)
        for field in fields(x):
            yield from _flatten(getattr(x, field.name))
    elif isinstance(x, FunctionType):  # its text, not its address
        code = x.__code__
        yield _kind(x)
        yield from _flatten([x.__qualname__, code.co_code, code.co_names])
        yield from _flatten([c for c in code.co_consts if not hasattr(c, "co_code")])
        yield from _flatten([c.cell_contents for c in x.__closure__ or ()])
    elif type(x).__module__.startswith("kinetree.spatial"):
        yield _kind(x)
        for name in (name for kind in type(x).__mro__ for name in getattr(kind, "__slots__", ())):
            yield from _flatten(getattr(x, name))
    elif type(x).__repr__ is object.__repr__:  # its repr would be an address
        yield _kind(x)
        for name, value in sorted(getattr(x, "__dict__", {}).items()):
            yield from _flatten([name, value])
    else:
        yield _kind(x) + f":{x!r}".encode()


def _kind(x):
    return type(x).__qualname__.encode()
