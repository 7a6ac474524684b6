"""Compiled code on disk: a folder of entries found by key, shared by processes.

Nothing here can make a computation fail. An entry that is damaged, incomplete, or written for
another key or machine is removed and counts as absent; a folder that cannot be written is left
alone, with one ``CacheWarning`` per process. Files appear under their final name in one step, so
processes that write at once, or are killed while writing, leave whole entries only. Processes that
want the same new entry take turns (``Store.alone``): one makes it, the others find it.
"""

import hashlib
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

from kinetree.errors import CacheWarning, warn
from kinetree.files import remove_parts, write_bytes

_ENTRY, _LOCK = ".entry", ".lock"
_ABANDONED = 3600  # [s] a lock of this age belongs to a process that was killed
_FRESH = 600  # [s] an entry used this recently needs no new time stamp
_PATIENCE = 120.0  # [s] others may take to make an entry before we make it ourselves
_MEASURED = 16  # times that the folder is measured while as much as its limit is written


class CacheEntry(NamedTuple):
    """A file of the cache: path, size [bytes], time of last use [s]."""

    path: str
    size: int
    used: float


class Store:
    """Entries in a folder, of limited total size; the least recently used make room.

    Args:
        root: the cache folder, made when first needed; None keeps nothing.
        limit: largest total size [bytes].
    """

    def __init__(self, root, limit):
        self.root, self.limit = root, limit
        self.folder = root and os.path.join(root, f"code-{FORMAT}")
        self._unseen = _fraction() * limit / _MEASURED  # bytes written since it was last measured

    def get(self, key: str):
        """The payload kept for ``key``, or None."""
        if self.folder is None:
            return None
        path = self._path(key)
        try:
            require_private(self.folder, os.stat(self.folder))
        except FileNotFoundError:
            return None
        except OSError as error:
            _complain(self.root, error)
            return None
        try:
            data, used = read(path)
        except OSError:  # absent, or not an entry of the cache, which ``put`` will replace
            return None
        payload = unpack(data, key)
        if payload is None:
            _remove(path)
        elif time.time() - used > _FRESH:
            with suppress(OSError):  # where time stamps cannot be written, nothing is evicted
                os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep ``payload`` for ``key``, if the disk lets us."""
        data = pack(key, payload)
        if self.folder is None or len(data) > self.limit:
            return
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            require_private(self.folder, os.stat(self.folder))
            self._write(self._path(key), data)
            self._make_room(len(data))
        except OSError as error:
            _complain(self.root, error)

    @contextmanager
    def alone(self, key: str | None) -> Iterator[None]:
        """Hold the file lock of ``key`` while its entry is made, so that one process does it.

        The system takes a lock back from a process that dies. Where it has none to give, or
        somebody keeps it for ``_PATIENCE``, several make the same: a waste, and no fault.
        """
        held, path = None, ""
        if self.folder is not None and key is not None:
            path = self._path(key)[: -len(_ENTRY)] + _LOCK
            with suppress(OSError):
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                require_private(self.folder, os.stat(self.folder))
                held = _open_locked(path)
        try:
            yield
        finally:
            if held is not None:
                _unlock(held, path)

    def entries(self) -> list[CacheEntry]:
        """All entries of the cache, the least recently used first."""
        return sorted(self._files(_ENTRY), key=lambda entry: entry.used)

    def with_keys(self) -> Iterator[tuple[CacheEntry, str]]:
        """All entries of the cache with their keys; damaged files are left out."""
        for entry in self.entries():
            with suppress(OSError, ValueError, struct.error), open(entry.path, "rb") as file:
                magic, version, size, _ = _HEAD.unpack(file.read(_HEAD.size))
                if magic == _MAGIC and version == FORMAT and size < entry.size:
                    file.seek(_DIGEST, os.SEEK_CUR)
                    yield entry, file.read(size).decode()

    def look(self, key: str):
        """The payload kept for ``key``, or None, without marking the entry as used."""
        try:
            return unpack(read(self._path(key))[0], key)
        except OSError:
            return None

    def clear(self) -> int:
        """Remove all entries of the cache; returns the number of bytes freed."""
        ours = [file for kind in (_ENTRY, _LOCK) for file in self._files(kind)]
        parts = remove_parts(self.folder) if self.folder else 0
        return parts + sum(file.size for file in ours if _remove(file.path))

    def _path(self, key):
        """Path of the cache file for a key: its digest in the folder."""
        return os.path.join(self.folder, hashlib.sha256(key.encode()).hexdigest() + _ENTRY)

    def _write(self, path, data):
        """Write a cache file atomically: readers find the whole file or none."""
        try:
            write_bytes(path, data, private=True, durable=False)
        except PermissionError:
            # Windows does not replace a file while another process reads it; then it is there.
            if not os.path.exists(path):
                raise

    def _make_room(self, added):
        """Remove the least recently used entries when the limit is exceeded."""
        self._unseen += added
        if self._unseen < self.limit / _MEASURED:
            return
        self._unseen = 0
        for file in self._files(_LOCK):
            if time.time() - file.used > _ABANDONED:
                _remove(file.path)
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        if total <= self.limit:
            return
        for entry in entries:
            _remove(entry.path)
            total -= entry.size
            if total <= self.limit * 7 / 8:  # some room to grow before the next time
                break

    def _files(self, ending):
        """Paths and ``os.stat`` results of all cache files whose names end in ``ending``."""
        try:
            names = os.listdir(self.folder) if self.folder else []
        except OSError:
            return
        # Only files named as ours are; nothing else may be counted or removed.
        is_ours = re.compile(rf"[0-9a-f]{{64}}{ending}").fullmatch
        for name in names:
            if is_ours(name):
                path = os.path.join(self.folder, name)
                try:
                    status = os.lstat(path)
                except OSError:  # another process removed it
                    continue
                if not stat.S_ISREG(status.st_mode):  # a pipe, a folder, a link
                    continue
                yield CacheEntry(path, status.st_size, status.st_mtime)


def _fraction() -> float:
    """A random number in [0, 1), by which processes choose when to measure the folder's size."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


@cache
def _store(root, limit):
    """The cache in a folder with a limit of its size, one object for each."""
    return Store(root, limit)


def open_store() -> Store:
    """The store that the environment variables select."""
    try:
        root = cache_folder()
    except FileNotFoundError as error:
        _complain("the user's cache folder", error)
        root = None
    return _store(root, size_limit())


def _remove(path):
    """Delete a file; whether that was possible."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _open_locked(path):
    """Open and lock a lock file; its descriptor, or None if others keep it beyond ``_PATIENCE``."""
    until, wait = time.monotonic() + _PATIENCE, 0.005
    while True:
        descriptor = os.open(path, _SHARED, 0o600)
        try:
            while not _lock(descriptor):
                if time.monotonic() > until:
                    os.close(descriptor)
                    return None
                time.sleep(wait)
                wait = min(2 * wait, 0.1)
            with suppress(FileNotFoundError):  # who had it removed it: it is another file by now
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor):
    """Whether a file could be locked; closing it, or the end of the process, unlocks it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except ImportError as error:
        raise OSError(str(error)) from None
    return True


def _unlock(descriptor, path):
    """Delete a lock file and release its lock."""
    _remove(path)  # first, so that nobody locks what is to go
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for children that were forked meanwhile
    os.close(descriptor)
    if sys.platform == "win32":  # which keeps files that are open
        _remove(path)


_complaints = set()


def _complain(place, error):
    """Warn once per process that compiled code cannot be cached in a folder, with the remedy."""
    if _complaints:
        return
    _complaints.add(str(error))
    warn(
        f"compiled code cannot be kept in {place}: {error}. Everything works, but each new process "
        f"compiles again. Set the environment variable KINETREE_CACHE to a folder that you own, "
        f"or to 'off' to do without",
        CacheWarning,
    )


# --- One file of the cache: its format, and reading it without trusting it -----------------------
# A file holds machine code, so it is used only when it belongs to this user alone, is whole, and
# was written for exactly the requested key.

FORMAT = 1
_MAGIC = b"KINETREE"
_HEAD = struct.Struct("<8sIIQ")  # magic, format, size of the key, size of the payload
_DIGEST = 32
_SHARED = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY
for _flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):  # nobody may write to a pipe of this name
    _OPEN |= getattr(os, _flag, 0)


def pack(key: str, payload: bytes) -> bytes:
    """The bytes of a file: head, digest of everything else, key, payload."""
    text = key.encode()
    head = _HEAD.pack(_MAGIC, FORMAT, len(text), len(payload))
    return b"".join([head, _digest(head, text, payload), text, payload])


def unpack(data: bytes, key: str):
    """Payload of a cache file's bytes, or None when they are damaged or written for another key."""
    text = key.encode()
    start = _HEAD.size + _DIGEST
    payload = data[start + len(text) :]
    head = _HEAD.pack(_MAGIC, FORMAT, len(text), len(payload))
    if data[:start] != head + _digest(head, text, payload) or data[start:][: len(text)] != text:
        return None
    return payload


def _digest(*parts):
    """SHA-256 digest of several byte strings, one after another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def read(path) -> tuple[bytes, float]:
    """Content and modification time of a file, checked to be writable by this user alone.

    Raises:
        OSError: there is no such file, it cannot be read, or it is not this user's.
    """
    # What is examined must be what is read: one descriptor for both, and no symbolic links.
    descriptor = os.open(path, _OPEN)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        require_private(path, status)
        return file.read(), status.st_mtime


def require_private(path, status):
    """Raise PermissionError when a file or folder is another user's, or open to changes by one."""
    if not hasattr(os, "geteuid"):  # Windows: the user's folder is closed to others
        return
    if status.st_uid not in (os.geteuid(), 0):  # the administrator could change Python itself
        raise PermissionError(f"{path} belongs to another user (number {status.st_uid})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"other users may write to {path} (chmod go-w would end that)")


# --- Where compiled code is kept on disk, and how much of it: environment variables and defaults -
# ``KINETREE_CACHE`` names the folder, or is ``off``; ``KINETREE_CACHE_SIZE`` limits it, such as
# ``500MB`` or ``2GiB``.

_DEFAULT_LIMIT = 2**30
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def cache_folder(environment=os.environ, platform=sys.platform):
    """Folder of the cache on disk, by environment variables and platform; None when caching is off.

    Raises:
        FileNotFoundError: there is no home folder to put it in.
    """
    chosen = environment.get("KINETREE_CACHE", "").strip()
    if chosen:
        return (
            None
            if chosen.lower() in ("off", "0", "no", "false")
            else os.path.abspath(os.path.expanduser(chosen))
        )
    if platform == "win32":
        local = environment.get("LOCALAPPDATA") or _home("AppData", "Local")
        return os.path.join(local, "kinetree", "Cache")
    if platform == "darwin":
        return _home("Library", "Caches", "kinetree")
    caches = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    return os.path.join(caches if os.path.isabs(caches) else _home(".cache"), "kinetree")


def _home(*parts):
    """Path below the home folder; an error if the user has none."""
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise FileNotFoundError("this user has no home folder")
    return os.path.join(home, *parts)


def size_limit(environment=os.environ) -> int:
    """Largest total size of the entries [bytes]."""
    text = environment.get("KINETREE_CACHE_SIZE", "").strip()
    if not text:
        return _DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", text.lower())
    if not match:
        raise ValueError(
            f"KINETREE_CACHE_SIZE must be a size such as 500MB, 2GiB or a number of bytes, "
            f"got {text!r}"
        )
    number, unit, binary, _ = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])
