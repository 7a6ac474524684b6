"""Pictures of motions, of linear models and of mechanisms: one call each, in one style.

    kt.plot.joints(trajectory)
    kt.plot.phase(trajectory, "elbow")
    kt.plot.tree(model).savefig("tree.pdf")

Every function returns a Matplotlib figure. Lines differ by dashes and marks as well as by colour,
so that pictures can be read in print. ``plt.style.use(kt.plot.STYLE)`` gives pictures of your own
the same look.
"""

from typing import TYPE_CHECKING

from kinetree.arguments import guard_module
from kinetree.plot.mechanisms import eigenvalues, postures, sparsity, tree
from kinetree.plot.motions import (
    STYLE,
    constraint_error,
    contact_forces,
    energy,
    joints,
    overview,
    phase,
    reactions,
)
from kinetree.spelling import suggesting

__all__ = [
    "STYLE", "constraint_error", "contact_forces", "eigenvalues", "energy", "joints", "overview",
    "phase", "postures", "reactions", "sparsity", "tree",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__, __all__)

guard_module(__name__)
