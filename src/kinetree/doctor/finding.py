"""What the doctor reports."""

from dataclasses import dataclass

from kinetree.doctor.catalogue import KINDS
from kinetree.loaders.report import short

__all__ = ["NOWHERE", "SEVERITIES", "Finding", "Place", "found", "in_order", "named"]

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Place:
    """Where something was written: a file and a line, or nothing where it came from no file."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


NOWHERE = Place()


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, suspicious or worth knowing about a robot.

    Attributes:
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        code: what kind of finding it is, a key of ``kinetree.doctor.KINDS``.
        part: the body, joint or file that it is about, such as ``"body 'hand'"``.
        message: what is the matter, with numbers.
        place: file and line, where they are known.
    """

    severity: str
    code: str
    part: str
    message: str
    place: Place = NOWHERE

    @property
    def where(self) -> str:
        """File and line if known, and the part."""
        return ": ".join(filter(None, (str(self.place), self.part)))

    @property
    def why(self) -> str:
        """Why it matters."""
        return KINDS[self.code].why

    @property
    def mend(self) -> str:
        """How to mend it."""
        return KINDS[self.code].mend

    def to_dict(self) -> dict:
        """Everything in plain strings and numbers, ready for JSON."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.place.file or None,
            "line": self.place.line or None,
            "part": self.part,
            "message": self.message,
            "why": self.why,
            "mend": self.mend,
        }

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] {self.where}: {self.message}"


def named(kind, name) -> str:
    """A part as findings name it, such as ``body 'hand'``; long names are cut."""
    return f"{kind} {short(name)}"


def found(code, part, message, place=None, *, severity=None) -> Finding:
    """A finding with the severity of its kind, unless another is given."""
    return Finding(severity or KINDS[code].severity, code, part, message, place or NOWHERE)


def in_order(findings) -> tuple[Finding, ...]:
    """The worst first, then as they stand in the file; the same finding once."""
    rank = {severity: n for n, severity in enumerate(SEVERITIES)}
    unique = {(f.code, f.part, f.message, f.place): f for f in findings}
    return tuple(sorted(unique.values(), key=lambda f: (rank[f.severity], f.place.line)))
