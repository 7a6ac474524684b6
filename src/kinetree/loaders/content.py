"""The content of a file that somebody names."""

import os
import stat
from pathlib import Path

from kinetree.errors import LoadError
from kinetree.loaders.report import short
from kinetree.loaders.xml import LIMIT_BYTES
from kinetree.spelling import did_you_mean

__all__ = ["content"]


def content(path) -> bytes:
    """What is in a regular file of bounded size."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise LoadError(f"{path}: this is {kind}; load needs a robot file")
        if status.st_size > LIMIT_BYTES:
            raise LoadError(
                f"{path}: the file has {status.st_size} bytes; kinetree reads at most {LIMIT_BYTES}"
            )
        with open(path, "rb") as file:
            return file.read(LIMIT_BYTES + 1)
    except LoadError:
        raise
    except FileNotFoundError:
        raise LoadError(f"{short(str(path))}: there is no such file{_meant(str(path))}") from None
    except (OSError, ValueError) as error:
        raise LoadError(f"{short(str(path))}: the file cannot be read: {error}") from None


def _meant(path) -> str:
    """What may have been meant by the name of a file that does not exist."""
    if "\n" in path or "<" in path:
        return "; loads(text) takes the text itself"
    if Path(path).suffix == "" and path.isidentifier():
        return f"; if a robot of the package is meant: kinetree.samples.load({path!r})"
    try:
        beside = [p.name for p in Path(path).parent.iterdir() if p.suffix]
    except OSError:
        return f"; nor is there a folder {str(Path(path).parent)!r}"
    hint = did_you_mean(Path(path).name, beside, "", cutoff=0.75)
    return f"; {hint}" if hint else ""
