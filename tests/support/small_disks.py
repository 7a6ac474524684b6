"""A disk that is really full: a small file system in memory, where this user may mount one."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PAGE = 4096  # bytes, of which such a file system gives out whole ones


@cache
def can_mount() -> bool:
    """Whether this user may mount file systems: root on Linux, outside of most containers."""
    with tempfile.TemporaryDirectory() as folder:
        if _run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder):
            return False
        return _run("umount", folder) == 0


def _run(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:  # no such command: another system
        return 1


@contextmanager
def small_disk(folder: Path, size: str = "24m") -> Iterator[Path]:
    """A file system of its own in a folder."""
    folder.mkdir()
    if _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)):
        raise OSError(f"cannot mount a file system in {folder}")
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def fill(disk: Path, free: int) -> Path:
    """A file that takes all of a disk but ``free`` bytes, in whole pages."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * PAGE) == PAGE:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - free // PAGE * PAGE))
    return filler
