"""Keys of compiled code, as text that is the same in every process.

A *request* names the code wanted: the kernel's key, this version of kinetree's source, the
versions that tracing depends on. It is known before anything is traced. A *program* is named by a
digest of its LLVM text, and its machine code by that, the compiler and the processor. The cache
maps requests to programs and programs to machine code: a warm start needs no tracing, and code
whose text did not change survives a new version of kinetree.
"""

import hashlib
import os
import sys
import time
from functools import cache

import numpy as np

from kinetree.codegen import machine_code as llvm
from kinetree.codegen import nvrtc

_IMPORTED = time.time() - 2.0  # [s] files older than this are what this process runs


def request_key(kernel, dtype, lanes, host=None):
    """The text that identifies a kernel's code before it is traced; None when nothing does.

    Args:
        kernel: the requested one.
        dtype: the precision.
        lanes: samples at a time, or another word for the variant of the code.
        host: compiler and processor; LLVM's and this one by default.
    """
    source = source_digest()
    if kernel.key is None or source is None or not _is_literal(kernel.key):
        return None
    arguments = [[(a.name, a.shape) for a in side] for side in (kernel.inputs, kernel.outputs)]
    return "\n".join(
        [
            "request",
            f"{kernel.name} {kernel.key!r}",
            repr(arguments),
            f"{dtype} x {lanes}",
            f"source {source}",
            f"{sys.implementation.cache_tag}, numpy {np.__version__}",
            host or llvm.host(),
        ]
    )


def program_key(program, host=None):
    """The text that identifies the machine code of a program, given the digest of its text."""
    return f"program {program}\n{_recipe()}\n{host or llvm.host()}"


def _is_literal(x):
    """Whether ``repr`` says everything about ``x``, and the same in every process."""
    if type(x) is tuple:
        return all(map(_is_literal, x))
    return type(x) in (str, bytes, bool, int, float, type(None))


@cache
def source_digest():
    """A digest of the source of kinetree: what another version of it compiled is not used.

    None when a file changed since it was imported, so that it does not say what this process runs.
    """
    return _digest(_source_files(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


@cache
def _recipe():
    """A digest of how text is compiled; one of a kind when that is not sure."""
    return _digest([llvm.__file__, nvrtc.__file__]) or os.urandom(16).hex()


def _digest(paths):
    digest = hashlib.sha256(sys.modules["kinetree"].__version__.encode())
    for path in sorted(paths):
        try:
            with open(path, "rb") as file:
                edited = os.fstat(file.fileno()).st_mtime
                content = file.read()
        except OSError:  # installed without source: then the version has to do
            continue
        if edited > _IMPORTED:
            return None
        digest.update(f"{os.path.basename(path)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _source_files(folder):
    found = []
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.name.endswith((".py", ".cuh")):
                    found.append(item.path)
                elif item.is_dir() and item.name != "__pycache__":
                    found += _source_files(item.path)
    except OSError:
        pass
    return found
