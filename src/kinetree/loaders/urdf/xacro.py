"""Xacro is not URDF: it is a program that writes URDF."""

from kinetree.loaders.report import Report, tag_of

__all__ = ["refuse_xacro"]

_PROGRAM = {f"xacro:{word}" for word in ("macro", "property", "include", "arg", "if", "unless")}


def refuse_xacro(root, report: Report):
    """Raise LoadError with advice if the file is a xacro file that was not expanded."""
    for element in root.iter("*"):
        found = tag_of(element) if tag_of(element) in _PROGRAM else None
        for value in element.attrib.values():
            if "${" in value or "$(" in value:
                found = value[:40]
        if found:
            raise report.error(
                element,
                f"{found!r} is xacro, a language that writes URDF. Expand the file first: "
                f"pip install xacro; xacro robot.urdf.xacro > robot.urdf",
            )
