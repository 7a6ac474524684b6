"""Keys of compiled code: text that is the same in every process.

A *request* names the code wanted: the kernel's key, this version of kinetree's source, the
versions that tracing depends on. It is known before anything is traced. A *program* is named by a
digest of its LLVM text, and its machine code by that, the compiler and the processor. The cache
maps requests to programs and programs to machine code: a warm start needs no tracing, and code
whose text did not change survives a new version of kinetree.
"""

import hashlib
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np

from kinetree.codegen import machine_code as llvm
from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store

_IMPORTED = time.time() - 2.0  # [s] files older than this are what this process runs


def request_key(kernel, dtype, lanes, host=None):
    """Cache key of a kernel's code, known before tracing; None when no key identifies the kernel.

    Args:
        kernel: the requested one.
        dtype: the precision.
        lanes: samples at a time, or another word for the variant of the code.
        host: compiler and processor; LLVM's and this one by default.
    """
    arguments = [[(a.name, a.shape) for a in side] for side in (kernel.inputs, kernel.outputs)]
    key = kernel.key
    return request_lines(
        "request", key, f"{kernel.name} {key!r}", repr(arguments), dtype, lanes, host
    )


def request_lines(kind, key, name, what, dtype, lanes, host):
    """Text of a cache key from kind, name, precision, versions; None if ``key`` is no literal."""
    source = source_digest()
    if key is None or source is None or not _is_literal(key):
        return None
    versions = f"{sys.implementation.cache_tag}, numpy {np.__version__}"
    parts = [kind, name, what, f"{dtype} x {lanes}", f"source {source}", versions]
    return "\n".join([*parts, host or llvm.host()])


def loop_request(key, dtype, lanes, *what, host=None) -> str | None:
    """Cache key of code by loops for every robot, known before recording; None when there is none.

    Args:
        key: what identifies the source, or None.
        dtype: the precision.
        lanes: samples at a time, or another word for the variant of the code.
        what: which part of the code.
        host: compiler and processor; LLVM's and this one by default.
    """
    return request_lines("loops", key, repr(key), repr(what), dtype, lanes, host)


def program_name(text):
    """Name of a program: the SHA-256 digest of its LLVM IR."""
    return hashlib.sha256(text.encode()).hexdigest()


def program_of(text) -> tuple[str, str]:
    """Digest of LLVM IR, and the IR with that digest in the names of its functions."""
    program = program_name(text)
    return program, re.sub(r"@(step|case_\d+)\(", rf"@\1_{program}(", text)


def program_key(program, host=None):
    """Cache key of machine code, from the digest of the program's text and the processor."""
    return f"program {program}\n{recipe()}\n{host or llvm.host()}"


@dataclass
class Kept:
    """Code in the cache that has a name."""

    name: str
    """Of the function; of functions that all code shares, what they do."""
    tier: str
    """``"general"``, ``"specialised"``, or ``"shared"`` by all."""
    level: int | None
    """How much LLVM optimised it; None on a GPU."""
    count: int = 0
    """Number of programs: for different robots, joints, options, precisions and widths."""
    bytes: int = 0
    """Their size."""


def kept_code(store) -> list[Kept]:
    """Entries of compiled code in the cache: name, kind of code and optimisation level of each."""
    sizes, wanted, found = {}, set(), {}
    for entry, key in store.with_keys():
        kind, *rest = key.splitlines()
        if kind.startswith("program "):
            sizes[kind.removeprefix("program "), _level(key)] = entry.size
        elif kind in ("request", "loops", "procedures") and len(rest) > 2:
            tier = "specialised" if kind == "request" else "general"
            level = None if rest[2].endswith("x cuda") else _level(key)
            programs = re.findall(r"\b[0-9a-f]{64}\b", (store.look(key) or b"").decode("latin-1"))
            wanted |= {(named_in(kind, rest[0]), tier, level, program) for program in programs}
    for program, level in sizes:
        if program.startswith("kinetree_"):
            wanted.add((program.split("_")[1], "shared", level, program))
    for name, tier, level, program in wanted:
        size = sizes.get((program, 1 if level is None else level), 0)
        if size:
            kept = found.setdefault((tier, name, level), Kept(name, tier, level))
            kept.count, kept.bytes = kept.count + 1, kept.bytes + size
    return sorted(found.values(), key=lambda k: (k.tier, k.name, k.level or 0))


def _level(key):
    """Optimisation level that a cache key contains."""
    return 0 if key.endswith(", level 0") else 1


def named_in(kind, text) -> str:
    """Name of the function or kernel that a cache key was written for."""
    if kind == "procedures":
        return text
    if kind == "request":
        return text.partition(" (")[0].partition(" '")[0]
    words = re.findall(r"'([^']*)'", text)
    return next((word for word in words if word != "general"), text)


def _is_literal(x):
    """Whether ``repr`` says everything about ``x``, and the same in every process."""
    if type(x) is tuple:
        return all(map(_is_literal, x))
    return type(x) in (str, bytes, bool, int, float, type(None))


@cache
def source_digest():
    """Digest of kinetree's source files, so that other versions' code is not used; or None.

    None when a file changed since it was imported, so that it does not say what this process runs.
    The cache has it under the sizes and times of all files, so that a process need not read them.
    """
    files = sorted(source_files(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    status = hashlib.sha256(sys.modules["kinetree"].__version__.encode())
    for path in files:
        with suppress(OSError):
            found = os.stat(path)
            if found.st_mtime > _IMPORTED:
                return None
            times = f"{found.st_mtime_ns} {found.st_ctime_ns}"  # the latter cannot be set
            status.update(f"{path} {found.st_size} {times}\n".encode())
    key = f"source files {status.hexdigest()}"
    known = open_store().get(key)
    if known is not None:
        return known.decode()
    digest = digest_of(files)
    if digest is not None:
        open_store().put(key, digest.encode())
    return digest


@cache
def recipe():
    """Digest of the modules that compile text; a random one if their source has changed."""
    return digest_of([llvm.__file__, nvrtc.__file__]) or os.urandom(16).hex()


def digest_of(paths):
    """Digest of source files and the version; None if one was edited after the start."""
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


def source_files(folder):
    """Paths of all Python and CUDA files in a folder and those below it."""
    found = []
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.name.endswith((".py", ".cuh")):
                    found.append(item.path)
                elif item.is_dir() and item.name != "__pycache__":
                    found += source_files(item.path)
    except OSError:
        pass
    return found
