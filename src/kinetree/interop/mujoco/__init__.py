"""Models, states, wrenches and Jacobians to and from MuJoCo.

    >>> import mujoco
    >>> import numpy as np
    >>> import kinetree as kt
    >>> from kinetree.interop import mujoco as M
    >>> m = kt.samples.double_pendulum()
    >>> mj_model = M.to_model(m)
    >>> data = mujoco.MjData(mj_model)
    >>> q, qd = np.array([0.3, -0.8]), np.array([1.0, 2.0])
    >>> data.qpos, data.qvel = M.to_q(m, mj_model, q), M.to_v(m, mj_model, q, qd)
    >>> mujoco.mj_forward(mj_model, data)
    >>> bias = M.from_tau(m, mj_model, data.qpos, data.qfrc_bias)
    >>> bool(abs(kt.bias_force(m, q, qd) - bias).max() < 1e-12)
    True

The two libraries differ in this:

                        kinetree                            MuJoCo
    hinge, slide        zero where the file puts it         ref there: q = qpos - qpos0
    free joint          angular, linear in the body         linear in the world, angular in the body
    several joints      a chain with massless bodies        in one body
    no joint            part of the body that carries it    its own body
    body frame          at the joint                        anywhere; a frame <body>_link, then
    external forces     moment about the base origin,       force at the mass centre, torque, in the
                        force; base coordinates             world: ``xfrc_applied``
    Jacobians           angular rows first, one array       ``jacp``, ``jacr``
    joint forces        the sum of all                      damping, springs and actuators apart
    loops, couplings    exact                               soft

Quaternions are ``(w, x, y, z)`` in both. Joints are matched by name. MuJoCo comes with
``pip install "kinetree[mjcf]"`` and is imported on first use.
"""

from kinetree.arguments import guard_module
from kinetree.interop.mujoco.models import (
    frame_name,
    from_a,
    from_f_ext,
    from_jacobian,
    from_model,
    from_pose,
    from_q,
    from_tau,
    from_v,
    to_a,
    to_f_ext,
    to_jacobian,
    to_model,
    to_pose,
    to_q,
    to_tau,
    to_v,
)
from kinetree.loaders.mjcf.values import MissingLibraryError

__all__ = [
    "MissingLibraryError", "frame_name", "from_a", "from_f_ext", "from_jacobian", "from_model",
    "from_pose", "from_q", "from_tau", "from_v", "to_a", "to_f_ext", "to_jacobian", "to_model",
    "to_pose", "to_q", "to_tau", "to_v",
]  # fmt: skip

guard_module(__name__)
