"""Where compiled code is kept on disk, and how much of it: environment variables and defaults.

``KINETREE_CACHE`` names the folder, or is ``off``; ``KINETREE_CACHE_SIZE`` limits it, such as
``500MB`` or ``2GiB``.
"""

import os
import re
import sys

__all__ = ["cache_folder", "size_limit"]

_DEFAULT_LIMIT = 2**30
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def cache_folder(environment=os.environ, platform=sys.platform):
    """The folder, or None when the cache is off.

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
