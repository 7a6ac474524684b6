"""The page of the documentation that says what is supported: text made of outcomes."""

from pathlib import Path

from feature_matrix import checks, loop_checks, motion_checks, other_checks  # noqa: F401
from feature_matrix.walk import CHECKS, NOT_OF_A_MODEL

PAGE = Path(__file__).parents[2] / "docs" / "honours.md"

HEAD = """\
# What is supported

This page lists which function supports which kind of mechanism. Every public function supports all
features of a model, or raises an error that names the function and the feature. A test checks all
{functions} functions of models with {features} kinds of mechanisms, which makes {cells} cells. In
{right} of them the result is compared with a slow dense computation from definitions
(`tests/feature_matrix/reference.py`), in {refused} the function raises such an error. There are no
other exceptions and no NaN. A new public function fails the test until its result is defined.

This page is written by `python docs/make_honours.py`; the test checks that it is current.
"""

OPTIONS = """\
## Options of simulate and rollout

Every value of every option of `simulate` and `rollout`, {values} in all, is passed for each kind of
mechanism, which makes {cells} cells: in {right} the state after a short step, its energy and its
loops are those of the reference, in {refused} an error names the option and the conflict. New
options, integrators, constraint methods and kinds of contact are included automatically.

"""


def option_line(feature, outcomes) -> str:
    """What the page says about options of simulations of one feature, from outcomes by cell."""
    refused = [f"`{c.function}({c.option}={c.label})`" for c, o in outcomes.items() if o.error]
    right = len(outcomes) - len(refused)
    if not right:
        return f"- {feature}: all raise an error.\n"
    listed = (
        f"not supported: {', '.join(refused)}"
        if right > len(refused)
        else "the others raise an error"
    )
    return f"- {feature}: {right} are right; {listed}.\n"


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
            refused.setdefault(outcome.error, []).append(f"`{name}`")
    right = sum(not o.error for o in outcomes.values())
    lines = [f"## {feature[0].upper()}{feature[1:]}", "", f"{right} functions support it."]
    for error, names in sorted(refused.items()):
        lines += ["", f"- `{error}` from {', '.join(names)}"]
    return "\n".join(lines) + "\n"


def whole(found, options) -> str:
    """The page, from outcomes by feature and function, and by feature and value of an option."""
    outcomes = [o for column in found.values() for o in column.values()]
    refused = sum(bool(o.error) for o in outcomes)
    head = HEAD.format(
        functions=len(CHECKS), features=len(found), cells=len(outcomes),
        right=len(outcomes) - refused, refused=refused,
    )  # fmt: skip
    left_out = {}
    for name, why in sorted(NOT_OF_A_MODEL.items()):
        left_out.setdefault(why, []).append(f"`{name}`")
    rest = [f"- {why}: {', '.join(names)}" for why, names in sorted(left_out.items())]
    parts = [head, *(section(feature, column) for feature, column in found.items())]
    parts.append(of_options(options))
    return "\n".join([*parts, "## Not functions of a model", "", *rest]) + "\n"
