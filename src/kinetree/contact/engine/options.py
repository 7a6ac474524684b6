"""Options of an engine, beside mechanism, scene and rows of joints."""

from dataclasses import dataclass
from typing import Any

from kinetree.arrays.kinds import ArrayLike


@dataclass(frozen=True)
class EngineOptions:
    """Settings of steps, and what acts in them."""

    tolerance: float = 1e-6
    """Error of velocities and impulses relative to the largest impulse of an island."""
    rest_velocity: float = 1e-2
    """As of ``TimeStepping``; so is the following."""
    correction_speed: float = 10.0
    """How fast penetration is taken out of positions."""
    conserving: bool = True
    """Whether a step may gain no energy."""
    stiffness: ArrayLike = 0.0
    """Of a controller, added to that of the joints, (nv,) or one number."""
    damping: ArrayLike = 0.0
    """Likewise."""
    springs: bool = True
    """Whether springs and dampers of joints in the tree act; otherwise they are in the joint forces
    that are held. Those of tendons and of loop joints act, and so does gravity compensation."""
    flying: bool = False
    """Whether steps in which nothing is near are left to the caller."""
    sleeping: bool = False
    """Whether islands that rest are left alone until something touches them."""
    prescription: Any = None
    """Motions of prescribed joints, or None: compiled where they can be, else ``prescribe``d before
    every step."""
    forces: Any = None
    """Kernel of ``t, q, qd, inputs`` to joint forces, or None: what is held are then its inputs.
    With couplings, of the variables of all joints."""
    resistance: Any = None
    """Kernel of the same to stiffness and damping of these forces, or None."""
    own: bool = False
    """Whether the code of the engine reads its own tables, ``Engine.numbers``."""
    smooth: tuple[Any, Any] = (None, None)
    """Smooth friction and stiff limits of the joints that act, or None for each."""
    actuated: bool = False
    """Whether actuators can act: where ``drives.acts`` is 1, by controls ``drives.u``."""
    reads: bool = False
    """Whether they always do, with controls and activations that are inputs of ``forces``."""
    drive: Any = None
    """Torque–speed curves of actuators, a ``Drive``, or None."""
    inputs: int = 0
    """Without ``forces``, how many inputs are held in place of joint forces, to be read."""
