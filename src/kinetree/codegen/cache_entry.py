"""One file of the cache: its format, and reading it without trusting it.

A file holds machine code, so it is used only when it belongs to this user alone, is whole, and was
written for exactly the key that is asked for.
"""

import hashlib
import os
import stat
import struct

__all__ = ["FORMAT", "pack", "read", "require_private", "unpack"]

FORMAT = 1
_MAGIC = b"KINETREE"
_HEAD = struct.Struct("<8sIIQ")  # magic, format, size of the key, size of the payload
_DIGEST = 32
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def pack(key: str, payload: bytes) -> bytes:
    """The bytes of a file: head, digest of everything else, key, payload."""
    text = key.encode()
    head = _HEAD.pack(_MAGIC, FORMAT, len(text), len(payload))
    return b"".join([head, _digest(head, text, payload), text, payload])


def unpack(data: bytes, key: str):
    """The payload, or None when the file is damaged or was written for another key."""
    text = key.encode()
    start = _HEAD.size + _DIGEST
    payload = data[start + len(text) :]
    head = _HEAD.pack(_MAGIC, FORMAT, len(text), len(payload))
    if data[:start] != head + _digest(head, text, payload) or data[start:][: len(text)] != text:
        return None
    return payload


def _digest(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def read(path) -> tuple[bytes, float]:
    """Content and time of last use of a file that no other user can have written.

    Raises:
        OSError: there is no such file, it cannot be read, or it is not this user's.
    """
    # What is examined must be what is read: one descriptor for both, and no symbolic links.
    descriptor = os.open(path, _OPEN)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
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
