"""The page of the documentation that says what is supported: text made of outcomes."""

from pathlib import Path

from feature_matrix import checks, loop_checks, motion_checks, other_checks  # noqa: F401
from feature_matrix.walk import CHECKS, NOT_OF_A_MODEL

PAGE = Path(__file__).parents[2] / "docs" / "honours.md"

TITLES = {
    "nothing special": "plain tree",
    "loop that floats": "loop with a floating base",
    "own constraint": "user-defined constraint",
    "moving constraint": "rheonomic constraint",
    "follower": "coupled joint",
    "loop and follower": "loop and coupled joint",
    "prescribed, at an instant": "prescribed joint, at an instant",
    "massless end": "massless last body",
    "zero freedoms": "no degrees of freedom",
    "multi-freedom joints": "joints with several degrees of freedom",
    "tiny": "tiny dimensions",
    "huge": "huge dimensions",
    "own joint": "user-defined joint",
}
"""Of features whose names are too short for readers."""

NOTES = {
    "prescribed joint": """\
A prescribed joint moves as a given function of time. Functions of a single state have no time:
replace the joint by `joint.at(t)`, which is the next kind.""",
}
"""What readers should know about a feature."""

GROUPS = {
    "functions of floating bases": (
        "edit.reroot", "floating.base_state", "floating.equation_of_motion",
        "floating.forward_dynamics", "floating.generalized_jacobian",
        "floating.inverse_dynamics", "floating.momentum", "floating.of",
        "floating.reduced_equation",
    ),
    "coordinates of loops": ("loops.independent", "loops.null_space", "loops.null_space_rate"),
}  # fmt: skip
"""Functions that need a feature, which most mechanisms do not have: the page names them once."""

HEAD = """\
# What is supported

This page lists, for each kind of mechanism, the functions that do not support it. Each of them
raises an error that names the function and the feature; all other functions give the right result.

A test calls {functions} public functions with {features} kinds of mechanisms, {cells}
combinations in all. In {right} of them the result is compared with a slow dense computation from
definitions (`tests/feature_matrix/reference.py`); in {refused} the function raises such an error.
There are no other exceptions and no NaN. A new public function fails the test until its expected
result is defined. `python docs/make_honours.py` writes this page, and the test checks that it is
current.

Two groups are named once, here, and by their title below:

{groups}
"""

OPTIONS = """\
## Options of simulate and rollout

Every value of every option of `simulate` and `rollout`, {values} in all, is tested with each
kind of mechanism, {cells} combinations in all. In {right} of them the state after a short step,
its energy and its loops are compared with the reference; in {refused} an error names the option and
the conflict. New options, integrators, constraint methods and kinds of contact are included
automatically.

"""


LEFT_OUT = "These are not tested here, by what they take or do:\n"


def option_line(feature, outcomes) -> str:
    """What the page says about options of simulations of one feature, from outcomes by cell."""
    feature = TITLES.get(feature, feature)
    refused = [f"`{c.function}({c.option}={c.label})`" for c, o in outcomes.items() if o.error]
    right = len(outcomes) - len(refused)
    if not right:
        return f"- {feature}: none is supported.\n"
    listed = (
        f"not supported: {', '.join(refused)}"
        if right > len(refused)
        else "the others are not supported"
    )
    return f"- {feature}: {right} are supported; {listed}.\n"


def of_options(found) -> str:
    """The section about options, from outcomes by feature and cell."""
    outcomes = [o for column in found.values() for o in column.values()]
    refused = sum(bool(o.error) for o in outcomes)
    head = OPTIONS.format(
        values=len(next(iter(found.values()))), cells=len(outcomes), right=len(outcomes) - refused,
        refused=refused,
    )  # fmt: skip
    return head + "".join(option_line(feature, column) for feature, column in found.items())


def section(feature, outcomes) -> str:
    """What the page says about one feature, from outcomes by name of the function."""
    refused = {}
    for name, outcome in sorted(outcomes.items()):
        if outcome.error:
            refused.setdefault(outcome.error, []).append(name)
    right = sum(not o.error for o in outcomes.values())
    feature = TITLES.get(feature, feature)
    lines = [f"## {feature[0].upper()}{feature[1:]}", "", f"Supported by {right} functions."]
    lines += ["", NOTES[feature]] if feature in NOTES else []
    for error, names in sorted(refused.items()):
        lines += ["", f"- `{error}`: {', '.join(_grouped(names))}"]
    return "\n".join(lines) + "\n"


def _grouped(names):
    """Names for the page, those of a whole group by the title of the group."""
    groups = [title for title, group in GROUPS.items() if set(group) <= set(names)]
    inside = {name for title in groups for name in GROUPS[title]}
    return [f"*{title}*" for title in groups] + [f"`{n}`" for n in names if n not in inside]


def whole(found, options) -> str:
    """The page, from outcomes by feature and function, and by feature and value of an option."""
    outcomes = [o for column in found.values() for o in column.values()]
    refused = sum(bool(o.error) for o in outcomes)
    head = HEAD.format(
        functions=len(CHECKS), features=len(found), cells=len(outcomes),
        right=len(outcomes) - refused, refused=refused,
        groups="\n".join(
            f"- *{title}*: {', '.join(f'`{name}`' for name in group)}"
            for title, group in GROUPS.items()
        ),
    )  # fmt: skip
    left_out = {}
    for name, why in sorted(NOT_OF_A_MODEL.items()):
        left_out.setdefault(why, []).append(f"`{name}`")
    rest = [f"- {why}: {', '.join(names)}" for why, names in sorted(left_out.items())]
    parts = [head, *(section(feature, column) for feature, column in found.items())]
    parts.append(of_options(options))
    return "\n".join([*parts, "## Not functions of a model", "", LEFT_OUT, *rest]) + "\n"
