"""Models that ship with the package, and random ones of any size.

``names()`` lists the fixed ones, written for this package from published or typical dimensions;
``load(name)`` makes one. They have geometry to be drawn, limits, motors and a posture ``home``, and
those with loops are assembled at their neutral position. Random mechanisms and regular trees are as
much for users' tests as for ours.
"""

from typing import TYPE_CHECKING

from kinetree.arguments import guard_module
from kinetree.errors import UnknownNameError
from kinetree.model import Model
from kinetree.samples.arms import arm, panda, scara, ur5
from kinetree.samples.book_linkages import (
    actuated_arm,
    clustered_linkage,
    corner_ladder,
    kite_pair,
    parallel_four_bar,
)
from kinetree.samples.earthmovers import excavator, loader
from kinetree.samples.legged import hopping_leg, humanoid, quadruped
from kinetree.samples.linkages import bennett, five_bar, four_bar, ladder, slider_crank
from kinetree.samples.parallel_robots import delta, stewart
from kinetree.samples.pendulums import cart_pole, double_pendulum, gyroscope, pendulum, satellite
from kinetree.samples.random_mechanisms import (
    chain,
    random_closed_mechanism,
    random_inertia,
    random_placement,
    random_tree,
    tree,
)
from kinetree.spelling import did_you_mean, suggesting

__all__ = [
    "actuated_arm", "arm", "bennett", "cart_pole", "chain", "clustered_linkage", "corner_ladder",
    "delta", "double_pendulum", "excavator", "five_bar", "four_bar", "gyroscope", "hopping_leg",
    "humanoid", "kite_pair", "ladder", "load", "loader", "names", "panda", "parallel_four_bar",
    "pendulum", "quadruped", "random_closed_mechanism", "random_inertia", "random_placement",
    "random_tree", "satellite", "scara", "slider_crank", "stewart", "tree", "ur5",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__, __all__)

_FIXED = (
    pendulum, double_pendulum, cart_pole, gyroscope, satellite, scara, arm, ur5, panda, quadruped,
    humanoid, hopping_leg, four_bar, slider_crank, five_bar, excavator, bennett, ladder, stewart,
    delta,
)  # fmt: skip


def names() -> tuple[str, ...]:
    """Names of the sample models; each is a function of this module."""
    return tuple(model.__name__ for model in _FIXED)


def load(name: str) -> Model:
    """Sample model by name."""
    for model in _FIXED:
        if model.__name__ == name:
            return model()
    hint = did_you_mean(name, names(), f"there are {', '.join(names())}")
    raise UnknownNameError(f"no sample model is called {name!r}; {hint}")


guard_module(__name__)
