"""Robots that installed packages bring, by name: ``kt.load("robots:ur5")``.

``names()`` lists them, ``find`` says where one is. Nothing is fetched: what a package would
download first is not listed, and an error says how to get it. Which packages are looked into is the
table ``CATALOGS`` of ``catalogs.py``.
"""

import os
from typing import TYPE_CHECKING

from kinetree.arguments import guard_module
from kinetree.errors import LoadError
from kinetree.loaders.robots.catalogs import CATALOGS, Catalog, Robot
from kinetree.spelling import close_names, suggesting

__all__ = ["PREFIX", "Robot", "available", "find", "names"]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__, __all__)

PREFIX = "robots:"
"""What a name begins with where a path could stand as well."""


def names() -> tuple[str, ...]:
    """Names of all robots that can be loaded; with their package if ambiguous."""
    return tuple(sorted(_by_name(available())))


def available() -> tuple[Robot, ...]:
    """Robots whose files are on this machine."""
    return tuple(r for _, robots in _installed_packages() for r in robots if not r.missing)


def find(name: str) -> Robot:
    """Robot with a name; an error suggests others.

    Args:
        name: as ``names`` lists it, such as ``"ur5"`` or ``"example-robot-data/ur5"``; upper and
            lower case are the same, and ``robots:`` may stand before it.

    Raises:
        LoadError: with the names that come closest, or what to install.
    """
    if not isinstance(name, str):
        raise LoadError(f"the name of a robot is a string, got {type(name).__name__}")
    wanted = name.removeprefix(PREFIX).strip().lower()
    package, _, short = wanted.rpartition("/")
    installed = _installed_packages()
    known = [catalog.package for catalog in CATALOGS]
    if package and package not in [catalog.package for catalog, _ in installed]:
        if package in known:
            raise LoadError(
                f"robots:{wanted}: the package {package} is not installed: pip install {package}"
            )
        raise LoadError(f"robots:{wanted}: {package!r} is not one of {', '.join(known)}")
    everything = [r for _, robots in installed for r in robots]
    found = [r for r in everything if short in (r.name, *r.aliases)]
    found = [r for r in found if package in ("", r.package)]
    at_hand = [r for r in found if not r.missing]
    if len(at_hand) == 1:
        return at_hand[0]
    if at_hand:
        choices = " or ".join(f"robots:{r.full_name}" for r in at_hand)
        raise LoadError(f"robots:{short} is in several packages; write {choices}")
    if found:
        raise LoadError(f"robots:{wanted} is not on this machine: {found[0].missing}")
    raise LoadError(_unknown(wanted, short, everything, installed))


def locate(path: str, folders) -> tuple[str, tuple]:
    """Path and search folders of a model file; ``robots:NAME`` means a known robot's."""
    given = (folders,) if isinstance(folders, (str, os.PathLike)) else tuple(folders)
    if not path.startswith(PREFIX):
        return path, given
    robot = find(path)
    return str(robot.file), (*given, *robot.folders)


def _installed_packages() -> list[tuple[Catalog, tuple[Robot, ...]]]:
    """Installed packages of robots with their robots."""
    return [(c, robots) for c in CATALOGS if (robots := c.robots()) is not None]


def _by_name(robots) -> dict[str, Robot]:
    """Robots by their shortest unambiguous name."""
    count: dict[str, int] = {}
    for robot in robots:
        count[robot.name] = count.get(robot.name, 0) + 1
    return {r.name if count[r.name] == 1 else r.full_name: r for r in robots}


def _unknown(wanted, short, everything, installed) -> str:
    """Error message about an unknown robot name, with suggestions."""
    text = f"no installed package has a robot named {wanted!r}"
    if not installed:
        text = f"robots:{wanted}: no package with robots is installed"
    at_hand = [r for r in everything if not r.missing]
    inside = [name for name in _by_name(at_hand) if short and short in name.rpartition("/")[2]]
    close = close_names(short, [r.name for r in at_hand], most=3)
    shown = list(dict.fromkeys([*close, *sorted(inside)]))[:5]
    parts = [f"did you mean {' or '.join(shown)}?"] if shown else []
    have = {catalog.package for catalog, _ in installed}
    missing = [catalog.package for catalog in CATALOGS if catalog.package not in have]
    if missing and not shown:
        parts.append(f"packages with robots that are not installed: {', '.join(missing)}")
    parts.append("kinetree robots lists what there is")
    return "; ".join([text, *parts])


guard_module(__name__)
