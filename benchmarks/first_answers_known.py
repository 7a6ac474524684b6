"""First answers that take longer than a second: which, how long at most, and why.

``first_answers.py`` fails where a row is above its goal and above its bound here, at the pace of
the quickest row. The table in ``docs/tiers.md`` is this one, which a test compares.
"""

import re
from typing import NamedTuple


class KnownRow(NamedTuple):
    """Rows of one kind, named by a regular expression."""

    pattern: str
    what: str
    """What they are, in the words of the page."""
    measured: str
    """CPU seconds at the pace of the quickest row."""
    bound: float
    """The most that they may take [s]."""
    reason: str


KNOWN = (
    KnownRow(
        r"^random_tree: optimize",
        "`control.optimize`: random trees with kinds of joints that this machine has never seen",
        "1.8 to 3.0", 4.0,
        "their dynamics and derivatives are compiled, once for each kind",
    ),
    KnownRow(
        r"^(delta|clustered_linkage): optimize",
        "`control.optimize`: linkages with 20 and more velocity variables",
        "1.2 to 1.5", 2.0,
        "the gradient of their equations, costs and coordinates are compiled for one linkage",
    ),
    KnownRow(
        r"^delta: ((control\.)?linearize|health|simulate(, \w+)?|rollout|rollout_gradient"
        r"|loops\.implicit_step)$",
        "`linearize`, `health`, `simulate`, rollouts and gradients, `implicit_step`: a delta robot",
        "1.0 to 1.4", 2.0,
        "0.4 for closed configurations and orders of elimination; equations of its loops",
    ),
    KnownRow(
        r"^talos_full_v2: generalized_state, batch$",
        "`generalized_state` of a batch: Talos",
        "1.8", 2.5,
        "with couplings, positions from poses are compiled for one robot",
    ),
    KnownRow(
        r"^(tiago|talos_full_v2|icub): (check|World\.step)$",
        "`check`, first `World.step`: robots with up to fifty meshes",
        "1.0 to 2.6", 3.5,
        "packages that read meshes are imported (0.8), hulls are found, once for each mesh",
    ),
    KnownRow(
        r"^humanoid: simulate with SoftContact patch$",
        "`simulate` with `SoftContact`, law of patches: a humanoid on its feet",
        "1.0", 1.5,
        "the step with what patches remember is compiled for one robot",
    ),
    KnownRow(
        r"^humanoid: simulate with EventDriven$",
        "`simulate` with `EventDriven`: a humanoid on its feet, twenty steps",
        "2.1", 2.5,
        "work of the steps, which look for forces that end; compiling is a third",
    ),
    KnownRow(
        r"^double pendulum: equations_of_motion$",
        "`equations_of_motion`: any robot",
        "1.3 to 1.9", 2.5,
        "SymPy is imported (0.8), formulas are simplified",
    ),
)  # fmt: skip


def bound_of(name: str, goal: float) -> float:
    """The most that a row may take [s of CPU]: its goal, unless it is known to take longer."""
    return max([goal, *(row.bound for row in KNOWN if re.search(row.pattern, name))])


def lines_of_page() -> list[str]:
    """Rows of the table on the page."""
    return [f"| {row.what} | {row.measured} | {row.reason} |" for row in KNOWN]
