"""Functions that kernels share: each is a module of its own and is compiled once per process.

They are most of what a small kernel needs: the loop over samples, the sines of its joint angles, a
few functions that processors do not have. A kernel calls them by a symbol that says which function,
for which vectors, and has a digest of its text; so a kernel that was kept on disk can never meet a
function other than the one that it was compiled for.
"""

import hashlib
import re
from functools import cache

from kinetree.codegen.render.llvm_angles import angles
from kinetree.codegen.render.llvm_driver import driver
from kinetree.codegen.render.llvm_exponentials import exponential, logarithm, tangent
from kinetree.codegen.render.llvm_math import atan2, sincos
from kinetree.codegen.render.llvm_single import single
from kinetree.codegen.render.llvm_types import Vector

__all__ = ["shared_symbol", "shared_symbols", "shared_text"]

_TEXTS = {
    "angles": angles, "atan2": atan2, "exp": exponential, "log": logarithm, "loop": driver,
    "single": single, "sincos": sincos, "tanh": tangent,
}  # fmt: skip


@cache
def shared_symbol(name: str, v: Vector, *options: int) -> str:
    """What the function ``name`` for vectors ``v`` is called; ``options`` are its own."""
    text = _text(name, v, *options)
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return "_".join(["kinetree", name, v.dtype, *map(str, (v.lanes, *options)), digest])


def shared_symbols(text: str) -> list[str]:
    """The symbols of shared functions that a kernel's text calls."""
    return sorted(set(re.findall(r"@(kinetree_\w+)\(", text)))


def shared_text(symbol: str) -> str | None:
    """Text of the module that defines ``@shared`` for a symbol; None where ours is another."""
    _, name, dtype, lanes, *options, _ = symbol.split("_")
    v, options = Vector(dtype, int(lanes)), list(map(int, options))
    return _text(name, v, *options) if shared_symbol(name, v, *options) == symbol else None


@cache
def _text(name, v, *options):
    return "\n\n".join([f"; {name}", _TEXTS[name](v, *options)])
