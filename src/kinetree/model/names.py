"""Looking things up by name, with a suggestion where it is not known; groups of joints."""

import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError, UnknownNameError, require_known
from kinetree.model.parts import Frame
from kinetree.spelling import FUNCTIONS, OF_MODELS, did_you_mean, name_here


def number_names(names, kind) -> dict[str, int]:
    """Position of each name as a dict; ModelError for duplicate or invalid names."""
    found: dict[str, int] = {}
    for name in names:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{kind} name must be a non-empty string, got {name!r}")
        if name in found:
            count = names.count(name)
            raise ModelError(f"{kind} name {name!r} is used {count} times; names must be unique")
        found[name] = len(found)
    return found


def number_of(name, names, role, where) -> int:
    """Position of ``name`` among ``names``; an error that says its ``role`` otherwise."""
    if name in names:
        return names.index(name)
    hint = did_you_mean(name, names)
    raise UnknownNameError(f"{role} is {name!r}, which the {where} does not have; {hint}")


def body_index(model, name) -> int:
    """Number of a body; the base is 0."""
    if name in model.frame_names and name not in model.body_names:
        body = model.body_names[frame(model, name).body]
        raise UnknownNameError(
            f"model {model.name!r} has no body {name!r}; that is a frame, on body {body!r}"
        )
    return _index(model, model.body_names, name, "body")


def joint_index(model, name) -> int:
    """Number of a tree joint, which is the number of the body it moves."""
    if name in model.loop_names:
        raise UnknownNameError(
            f"model {model.name!r} has no joint {name!r} in its tree; that joint closes a loop, "
            f"and its variables are not part of q (kinetree.loops.loop_positions has them)"
        )
    return _index(model, model.joint_names, name, "joint") + 1


class Joints(tuple[Any, ...]):
    """Joints by number, that of the body they move; called with a name, the joint of that name."""

    names: tuple[str, ...] = ()

    def __call__(self, name: str) -> Any:
        """The joint of a name."""
        if name not in self.names:
            hint = did_you_mean(str(name), self.names, most=2)
            raise UnknownNameError(f"no joint is called {name!r}; {hint}")
        return self[self.names.index(name) + 1]


def frame(model, name) -> Frame:
    """Frame by its name; every body name also names the body's coordinate frame."""
    i = _index(model, (*model.frame_names, *model.body_names), name, "frame or body")
    return model.frames[i] if i < len(model.frames) else Frame(name, i - len(model.frames))


def posture(model, name):
    """Posture by its name."""
    return model.postures[_index(model, tuple(p.name for p in model.postures), name, "posture")]


def tendon(model, name):
    """Tendon by its name."""
    return model.tendons[_index(model, tuple(t.name for t in model.tendons), name, "tendon")]


def group(model, name):
    """Group of joints by its name."""
    return model.groups[_index(model, tuple(g.name for g in model.groups), name, "group")]


def no_attribute(model, name) -> str:
    """Error message for an attribute that a model does not have, with suggestions."""
    here = name_here(name, OF_MODELS)
    if here is not None:
        return f"a Model has no attribute {name!r}; write {here}"
    function = name_here(name, FUNCTIONS) or name
    public = sys.modules["kinetree"].__all__  # all layers above: known once kinetree is imported
    if function in public:
        return f"a Model has no attribute {name!r}; write kinetree.{function}(model, ...)"
    known = [k for k in dir(model) if not k.startswith("_")]
    hint = did_you_mean(name, known, "what is computed is a function, kinetree.pose(model, ...)")
    return f"a Model has no attribute {name!r}; {hint}"


def _index(model, names, name, kind):
    """Number of a named part; an error that suggests close names."""
    if not isinstance(name, str):
        such = f", such as {names[-1]!r}" if names else ""
        raise UnknownNameError(
            f"a {kind} of model {model.name!r} is meant by its name{such}, got {name!r}"
        )
    if name in names:
        return names.index(name)
    if kind in ("body", "frame or body") and name in model.joint_names:
        body = model.body_names[model.joint_names.index(name) + 1]
        hint = f"that is a joint, which carries body {body!r}"
    else:
        hint = did_you_mean(name, names, most=3)
    raise UnknownNameError(f"model {model.name!r} has no {kind} {name!r}; {hint}")


# --- shapes, by the names of shapes, links, frames and bodies ------------------------------------

_NUMBERED = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)
_ANY = "geometry"  # geometry[3] is the fourth shape of a model, whatever its name


def names_that_touch(base_name, bodies, frames, geometry) -> set:
    """Names that contact pairs can use: of shapes, links, frames and bodies."""
    names = {base_name, *(part.name for part in (*bodies, *frames, *geometry))}
    return {*names, *(g.link for g in geometry)} - {""}


def is_known(name, names) -> bool:
    """Whether a name is among ``names``, also with an index as in ``calf[0]``."""
    numbered = _NUMBERED.fullmatch(name)
    return name in names or (numbered is not None and numbered[1] in {*names, _ANY})


class ShapeNames:
    """Numbers of the shapes of a model by name, and a unique name for every shape.

    A shape is called by its name, if no other has it, or else after its link or body; with a
    number, as ``calf[0]``, where several would have the same name. Links and bodies stand for those
    of their shapes that can touch.

    Attributes:
        shapes: numbers of the shapes of each name.
        links: numbers of the shapes of each link.
        bodies: numbers of the shapes of each body, with those of links that are part of it.
        own: the name of every shape.
    """

    def __init__(self, model):
        self.shapes: dict[str, list[int]] = {}
        self.links: dict[str, list[int]] = {}
        self.bodies: dict[str, list[int]] = {}
        for k, g in enumerate(model.geometry):
            body = model.body_names[g.body]
            if g.name:
                self.shapes.setdefault(g.name, []).append(k)
            if g.collision:
                self.links.setdefault(g.link or body, []).append(k)
                self.bodies.setdefault(body, []).append(k)
        self.known = names_that_touch(model.base_name, model.bodies, model.frames, model.geometry)
        self.carrier = {f.name: model.body_names[f.body] for f in model.frames}
        self.count = len(model.geometry)
        places: dict[str, dict[int, int]] = {}
        self.own = tuple(self._own(k, g, model, places) for k, g in enumerate(model.geometry))

    def _own(self, k, g, model, places):
        """Unique name of a shape: its own, its link's or body's, indexed if necessary."""
        own = g.name if len(self.shapes.get(g.name, ())) == 1 else ""
        for label in (own, g.link, model.body_names[g.body], g.name):
            if label not in places:
                places[label] = {number: at for at, number in enumerate(self._group(label))}
            if label and k in places[label]:
                return label if len(places[label]) == 1 else f"{label}[{places[label][k]}]"
        return f"{_ANY}[{k}]"

    def _group(self, name):
        """Numbers of the shapes that a name of a link or body stands for."""
        found = self.shapes.get(name) or self.links.get(name) or self.bodies.get(name)
        return found or self.bodies.get(self.carrier.get(name, ""), [])

    def find(self, name: str) -> list[int]:
        """Numbers of the shapes that a name of a shape, link, frame or body stands for."""
        found = self._group(name)
        numbered = None if found else _NUMBERED.fullmatch(name)
        if numbered is None:
            return found
        group = [*range(self.count)] if numbered[1] == _ANY else []
        group, k = self._group(numbered[1]) or group, int(numbered[2])
        return group[k : k + 1]

    def of_link(self, name: str) -> list[int]:
        """Numbers of the shapes of a link or body, else of the shape with that name."""
        linked = name in self.carrier or name in self.links or name in self.bodies
        return self.links.get(name, []) if linked else self.find(name)


# --- Groups: joints with a common name, such as those of an arm, usable where joints are named ---


@dataclass(frozen=True)
class Group:
    """A named group of joints, such as those of an arm.

    Attributes:
        name: unique name, among the groups and joints.
        joints: names of its joints, in order.
        tip: name of the frame or body at its end; empty if there is none.
    """

    name: str
    joints: tuple[str, ...] = ()
    tip: str = ""

    def __post_init__(self):
        if isinstance(self.joints, str):
            raise ModelError(
                f"joints of group {self.name!r} must be a sequence of names, got {self.joints!r}"
            )
        object.__setattr__(self, "joints", tuple(self.joints))

    def within(self, joints: Collection[str], frames: Collection[str]) -> "Group":
        """The group restricted to these joints and frames."""
        kept = tuple(name for name in self.joints if name in joints)
        return replace(self, joints=kept, tip=self.tip if self.tip in frames else "")

    def prefix_names(self, prefix: str) -> "Group":
        """Group with a prefix on all names."""
        joints = tuple(prefix + name for name in self.joints)
        return Group(prefix + self.name, joints, self.tip and prefix + self.tip)


def joints_of(model, names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of joints, each once, with names of groups replaced by their joints."""
    found: dict[str, None] = {}
    groups = {g.name: g.joints for g in model.groups}
    for name in (names,) if isinstance(names, str) else names:
        if name in groups:
            found |= dict.fromkeys(groups[name])
        elif name in (*model.joint_names, *model.loop_names):
            found[name] = None
        else:
            known = (*groups, *model.joint_names)
            raise UnknownNameError(
                f"model {model.name!r} has no joint or group {name!r}; "
                f"{did_you_mean(str(name), known, most=3)}"
            )
    return tuple(found)


def indices(model, names: Sequence[str], slices) -> Array:
    """Indices of the variables of joints and groups in joint vectors, in the order of ``names``."""
    numbers = [model.joint_index(name) for name in joints_of(model, names)]
    found = [np.arange(slices[i].start, slices[i].stop) for i in numbers]
    return np.concatenate([np.zeros(0, dtype=int), *found])


def check_group(model, group):
    """Raise ModelError for a group with unknown joints or tip, or a name already used."""
    what = f"group {group.name!r}"
    known = (*model.joint_names, *model.loop_names)
    if group.name in known:
        raise ModelError(f"{what} has the name of a joint; rename the group")
    for name in group.joints:
        require_known(name, known, f"{what} has joint {name!r}, which the model does not have")
    if len(set(group.joints)) < len(group.joints):
        raise ModelError(f"{what} must have each joint once, got {', '.join(group.joints)}")
    frames = (*model.frame_names, *model.body_names)
    if group.tip:
        require_known(
            group.tip, frames, f"tip of {what} is {group.tip!r}, which the model does not have"
        )
