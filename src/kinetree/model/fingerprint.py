"""A digest of a model's content: equal content, equal digest, in any process."""

import hashlib
from dataclasses import fields

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
        if x.dtype == object:
            yield from _flatten([repr(item) for item in x.ravel()])
        else:
            # Adding zero makes -0.0 and 0.0 one number; integers and floats count alike.
            yield np.ascontiguousarray(np.asarray(x, dtype=np.result_type(x, 1.0)) + 0).tobytes()
    elif hasattr(x, "__dataclass_fields__"):
        yield type(x).__qualname__.encode()
        for field in fields(x):
            yield from _flatten(getattr(x, field.name))
    elif hasattr(x, "__slots__") and not isinstance(x, (str, bytes, int, float, complex)):
        yield type(x).__qualname__.encode()
        for name in x.__slots__:
            yield from _flatten(getattr(x, name))
    elif isinstance(x, (int, float)) and not isinstance(x, bool):
        yield repr(float(x) + 0.0).encode()
    else:
        yield f"{type(x).__qualname__}:{x!r}".encode()
