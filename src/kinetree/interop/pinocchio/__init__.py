"""Models and states to and from Pinocchio.

    >>> import pinocchio as pin
    >>> from kinetree.algorithms import rnea
    >>> from kinetree.interop import pinocchio as P
    >>> pin_model = pin.buildSampleModelHumanoid()
    >>> m = P.from_model(pin_model)
    >>> q = m.random_configuration()
    >>> ours = P.to_tau(m, pin_model, q, rnea.gravity_force(m, q))
    >>> pin_q = P.to_q(m, pin_model, q)
    >>> theirs = pin.computeGeneralizedGravity(pin_model, pin_model.createData(), pin_q)
    >>> bool(abs(ours - theirs).max() < 1e-9)
    True

The two libraries differ in this:

                        kinetree                            Pinocchio
    spatial vectors     angular part first                  linear part first
    placements          coordinate transform to the frame   pose of the frame
    quaternions         (w, x, y, z)                        (x, y, z, w)
    unbounded revolute  angle                               (cos, sin)
    planar              (angle, x, y); (ω, vx, vy)          (x, y, cos, sin); (vx, vy, ω)
    numbering           parents before children             depth first
    external forces     base coordinates                    body coordinates

Everything else, such as joint frames and the signs of forces, is the same. Joints are matched by
name. Pinocchio comes with ``pip install "kinetree[pinocchio]"`` and is imported on first use.
"""

from kinetree.arguments import guard_module
from kinetree.interop.pinocchio.leaves import MissingLibraryError
from kinetree.interop.pinocchio.reader import from_model, to_model
from kinetree.interop.pinocchio.states import (
    from_a,
    from_parameters,
    from_q,
    from_tau,
    from_v,
    to_a,
    to_parameters,
    to_q,
    to_tau,
    to_v,
)

__all__ = [
    "MissingLibraryError", "from_a", "from_model", "from_parameters", "from_q", "from_tau",
    "from_v", "to_a", "to_model", "to_parameters", "to_q", "to_tau", "to_v",
]  # fmt: skip

guard_module(__name__)
