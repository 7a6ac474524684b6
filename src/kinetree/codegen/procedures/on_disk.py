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
    """A digest of how procedures are written as text, or None when that is not sure."""
    return digest_of(source_files(os.path.dirname(os.path.abspath(__file__))))


def _request(name, level):
    """The text that identifies the code of a procedure before it is written, or None."""
    if _writer() is None:
        return None
    versions = f"{sys.implementation.cache_tag}, writer {_writer()}"
    return "\n".join(["procedures", name, versions, recipe(), llvm.host(level)])


def kept_procedure(name, level, store=None) -> bytes | None:
    """Object code of a procedure, from disk; ``name`` says all that it depends on."""
    store = store or open_store()
    request = _request(name, level)
    program = store.get(request) if request else None
    return program and store.get(program_key(program.decode(), llvm.host(level)))


def keep_procedures(texts, level, compiled=llvm.branching_code, store=None) -> dict[str, bytes]:
    """Object code by name of procedures given as texts by name, compiled where a text is new.

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
