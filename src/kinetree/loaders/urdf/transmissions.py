"""Transmissions: what drives the joints."""

from typing import NamedTuple

from kinetree.loaders.xml import Node

__all__ = ["Drive", "read_transmissions"]

_ANY = (float("-inf"), float("inf"))


class Drive(NamedTuple):
    """An actuator of the file."""

    name: str
    joint: str
    gear: tuple[float, ...]
    control: tuple
    effort: tuple


def read_transmissions(robot: Node, freedoms: dict[str, int]) -> list[Drive]:
    """Simple transmissions as actuators; every other kind is noted.

    Args:
        robot: the file.
        freedoms: degree of freedom of every joint, those that close loops included.
    """
    drives: dict[str, Drive] = {}
    for node in robot.all("transmission"):
        node.get("name")
        kind = node.one("type")
        kind = node.get("type") or "" if kind is None else kind.text()
        actuators, driven = node.all("actuator"), node.all("joint")
        if "SimpleTransmission" not in kind or len(actuators) != 1 or len(driven) != 1:
            what = kind if kind else "without a type"
            node.ignored(f"only a SimpleTransmission of one joint is an actuator, not {what}")
            continue
        joint = driven[0].need("name")
        if not freedoms.get(joint):
            why = "does not exist" if joint not in freedoms else "does not move"
            node.ignored(f"the joint {joint!r} that it drives {why}")
            continue
        drive = _drive(node, actuators[0], driven[0], joint, freedoms[joint])
        if drive.name in drives:
            node.ignored(f"another transmission has the actuator {drive.name!r}")
        else:
            drives[drive.name] = drive
    return list(drives.values())


def _drive(node, actuator, driven, joint, nv):
    reductions = [n for place in (actuator, driven, node) for n in place.all("mechanicalReduction")]
    for interface in [n for place in (actuator, driven) for n in place.all("hardwareInterface")]:
        if "Effort" not in interface.text():
            interface.ignored("an actuator of kinetree gives a force; how it is told is not kept")
    gear = reductions[0].text_numbers(1) if reductions else (1.0,)
    own = actuator.one("kinetree:actuator")
    control = effort = _ANY
    if own is not None:
        gear = own.numbers("gear", nv, gear)
        control = own.numbers("control", 2, _ANY, finite=False)
        effort = own.numbers("effort", 2, _ANY, finite=False)
    if len(gear) != nv:
        gear = gear * nv
    return Drive(actuator.need("name"), joint, gear, control, effort)
