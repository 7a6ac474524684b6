"""Object code of procedures, compiled once for every robot and kept on disk."""

import os
import sys
from functools import cache
from typing import Any

from kinetree.codegen import machine_code as llvm
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import digest_of, program_key, program_name, recipe, source_files


@cache
def _writer():
    """Digest of the source that writes procedures as LLVM IR; None if it changed while running."""
    return digest_of(source_files(os.path.dirname(os.path.abspath(__file__))))


def _request(name, level):
    """Cache key of a procedure's code, known before its LLVM IR is written; None if unsafe."""
    if _writer() is None:
        return None
    versions = f"{sys.implementation.cache_tag}, writer {_writer()}"
    return "\n".join(["procedures", name, versions, recipe(), llvm.host(level)])


def kept_procedure(name, level, store=None) -> bytes | None:
    """Object code of a procedure from the disk cache, or None; ``name`` has all it depends on."""
    store = store or open_store()
    request = _request(name, level)
    program = store.get(request) if request else None
    return program and store.get(program_key(program.decode(), llvm.host(level)))


def keep_procedures(texts, level, compiled=llvm.branching_code, store=None) -> dict[str, bytes]:
    """Object code of several procedures given as LLVM IR, from the cache or compiled and cached.

    Args:
        texts: by name.
        level: how much LLVM optimises.
        compiled: function of texts and the level that returns their object code.
        store: where it is kept; the usual one by default.
    """
    store = store or open_store()
    programs = {name: program_name(text) for name, text in texts.items()}
    keys = {name: program_key(program, llvm.host(level)) for name, program in programs.items()}
    found: dict[str, Any] = {name: store.get(key) for name, key in keys.items()}
    new = [name for name, data in found.items() if data is None]
    for name, data in zip(new, compiled([texts[n] for n in new], level), strict=True):
        found[name] = data
        store.put(keys[name], data)
    for name, program in programs.items():
        request = _request(name, level)
        if request:
            store.put(request, program.encode())
    return found
