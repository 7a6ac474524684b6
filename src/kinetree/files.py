"""Files that are written whole or not at all: aside, flushed to the disk, then renamed.

Every file of the package is written through here; a test looks for other writers. A process
that is killed, a full disk or an error in the middle leave the file that was there. What a killed
process left half-written is removed by the next one that writes to the same folder.
"""

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from kinetree.errors import KinetreeError, LoadError, WriteError, joined_class

_PART = re.compile(r"\.kinetree-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.part(\.[^.]*)?")
_ABANDONED = 3600  # [s] a part of this age, of a process that cannot be looked for, is nobody's
_LONGEST_SUFFIX = 16
_MANY = (
    256  # files in a folder: a cache, where a search at every write would be a sixth of all time
)
_PAUSE = 60.0  # [s] until such a folder is searched again
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_text(path, text: str, *, encoding: str = "utf-8") -> Path:
    r"""Write text to a file atomically, with ``\n`` line ends; its path."""
    return write_bytes(path, text.encode(encoding))


def write_bytes(path, data: bytes, *, private: bool = False, durable: bool = True) -> Path:
    """Write bytes to a file atomically; its path."""
    with replacing(path, private=private, durable=durable) as part:
        descriptor = os.open(part, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
    return Path(path)


def write_with(path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file atomically by a function of an open binary file; its path."""
    with replacing(path) as part, open(part, "wb") as file:
        write(file)
    return Path(path)


def copy(source, path) -> Path:
    """Copy a file's content atomically; the path of the copy."""
    with replacing(path) as part:
        import shutil  # with archives, which an import need not load

        shutil.copyfile(source, part)
    return Path(path)


@contextmanager
def replacing(path, *, private: bool = False, durable: bool = True) -> Iterator[Path]:
    """Context of a new file that replaces ``path`` if no exception occurs.

    It is in the same folder and has the same suffix. Symbolic links are followed, permissions are
    those of the file that is replaced. To pipes and devices, which cannot be replaced, the content
    is copied.

    Args:
        path: of the file.
        private: only this user may read and write it; a link or pipe of that name is replaced.
        durable: wait until it is on the disk; without, a loss of power may lose it.

    Raises:
        WriteError: the file cannot be written; also the ``OSError`` that Python would raise.
    """
    part = None
    try:
        target = os.path.abspath(path) if private else os.path.realpath(os.fspath(path))
        status = None if private else _status(target)
        import tempfile  # the same

        folder = os.path.dirname(target) if _is_replaced(status) else tempfile.gettempdir()
        _tidy(folder)
        part = _new_part(folder, target, 0o600 if private else 0o666)
        yield Path(part)
        if status is not None and _is_replaced(status):
            _keep_permissions(part, status)
        if durable:
            _flush(part)
        _put_in_place(part, target, status)
        if durable:
            _flush_folder(folder)
    except KinetreeError:
        raise
    except OSError as error:
        kind = joined_class(WriteError, type(error))
        raise kind(
            f"cannot write {os.fspath(path)!r}: {error.strerror or error}; {_what_is_left(path)}",
            error.errno,
        ) from error
    finally:
        if part is not None:
            with suppress(OSError):
                os.unlink(part)


def read_bounded(path, most: int, what: str = "the file", *, called=None) -> bytes:
    """Content of a regular file of at most ``most`` bytes; an error for pipes and devices.

    Args:
        path: of the file.
        most: bytes.
        what: it is, in messages.
        called: its name in messages, if not its path.

    Raises:
        LoadError: it is something else, too large, or cannot be read.
    """
    name = path if called is None else called
    try:
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size <= most:
            with open(path, "rb") as file:
                return file.read(most)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise LoadError(f"{name}: {what} cannot be read: {why}") from None
    if not stat.S_ISREG(status.st_mode):
        raise LoadError(f"{name}: {what} cannot be read: it is not a regular file")
    size = f"{what} has {status.st_size} bytes; at most {most} are read"
    raise LoadError(f"{name}: {size}; make it coarser, or divide it")


def write_all(descriptor, data):
    """Write all bytes to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def remove_parts(folder) -> int:
    """Remove partial files of ended processes in a folder; number of bytes freed."""
    freed = 0
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    for name in names:
        found = _PART.fullmatch(name)
        if found is None:
            continue
        path = os.path.join(folder, name)
        with suppress(OSError):  # another process may be removing it, too
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and _is_abandoned(found, status):
                os.unlink(path)
                freed += status.st_size
    return freed


def _tidy(folder):
    """Remove partial files of a folder, in large ones at most once a minute."""
    now = time.monotonic()
    if now < _quiet_until.get(folder, 0.0):
        return
    remove_parts(folder)
    with suppress(OSError):
        if len(os.listdir(folder)) > _MANY:
            _quiet_until[folder] = now + _PAUSE


_quiet_until: dict[str, float] = {}


def _status(target):
    """File status of a path, or None; an error if it cannot be written."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "there is a folder of this name")
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "the file that is there is protected against writing")
    return status


def _is_replaced(status):
    """Whether a path is free or a regular file, which is replaced, not a pipe or device."""
    return status is None or stat.S_ISREG(status.st_mode)


def _new_part(folder, target, mode):
    """Path of a new empty partial file, named after this process."""
    suffix = os.path.splitext(target)[1]
    suffix = suffix if len(os.fsencode(suffix)) <= _LONGEST_SUFFIX else ""
    name = f".kinetree-{_machine()}-{os.getpid()}-{os.urandom(8).hex()}.part{suffix}"
    part = os.path.join(folder, name)
    os.close(os.open(part, _CREATE, mode))
    return part


@cache
def _machine() -> str:
    """Digest of the machine or container, within which process numbers are unique."""
    import platform

    names = [platform.node()]
    with suppress(OSError):  # Linux; others have no containers with numbers of their own
        names.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _is_abandoned(found, status):
    """Whether the process that a partial file is named after has ended."""
    if found[1] != _machine() or sys.platform == "win32":  # which has no question without a signal
        return time.time() - status.st_mtime > _ABANDONED
    if int(found[2]) == os.getpid():
        return False
    try:
        os.kill(int(found[2]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # another user's
        return False
    return False


def _keep_permissions(part, status):
    """Copy owner and permissions of the replaced file to the new one."""
    with suppress(OSError, AttributeError):  # not ours to give, or not known to the system
        os.chown(part, status.st_uid, status.st_gid)
    os.chmod(part, stat.S_IMODE(status.st_mode))


def _flush(part):
    """Flush a file to the disk."""
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(part, target, status):
    """Rename a finished file to its target, or write it into a pipe or device."""
    if _is_replaced(status):
        os.replace(part, target)
        return
    # Opened to write, a pipe that nobody reads would wait for ever.
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    with open(part, "rb") as content, open(descriptor, "wb", buffering=0) as place:
        import shutil  # with archives, which an import need not load

        shutil.copyfileobj(content, place)


def _flush_folder(folder):
    """Flush a folder's entries to the disk, where the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _what_is_left(path):
    """Advice text after a failed write."""
    if os.path.isfile(path):
        return "the file that was there is unchanged"
    return "check the folder, its permissions and the room on the disk"
