"""Models that ship with the package, and random ones of any size.

``names()`` lists the fixed ones, written from published or typical dimensions, rounded. Random and
regular trees are as much for users' tests as for ours.
"""

from kinetree.samples.arms import arm, panda, scara
from kinetree.samples.legged import humanoid, quadruped
from kinetree.samples.linkages import crank_slider, four_bar, satellite
from kinetree.samples.pendulums import cart_pole, double_pendulum, pendulum
from kinetree.samples.random_trees import random_inertia, random_placement, random_tree
from kinetree.samples.regular_trees import chain, tree

__all__ = [
    "arm",
    "cart_pole",
    "chain",
    "crank_slider",
    "double_pendulum",
    "four_bar",
    "humanoid",
    "names",
    "panda",
    "pendulum",
    "quadruped",
    "random_inertia",
    "random_placement",
    "random_tree",
    "satellite",
    "scara",
    "tree",
]

_FIXED = (
    pendulum,
    double_pendulum,
    cart_pole,
    scara,
    arm,
    panda,
    quadruped,
    humanoid,
    four_bar,
    crank_slider,
    satellite,
)


def names():
    """Names of the fixed sample models; each is a function of this module without arguments."""
    return tuple(model.__name__ for model in _FIXED)
