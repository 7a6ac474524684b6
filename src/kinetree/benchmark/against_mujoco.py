"""kinetree against MuJoCo, which runs through its Python call in a loop."""

from dataclasses import replace

import numpy as np

import kinetree as kt
from kinetree.benchmark.measure import PEER_SAMPLES, Case, difference, is_too_large, measure
from kinetree.loaders.mjcf.library import mujoco as mujoco_library

__all__ = ["MUJOCO_FUNCTIONS", "compare_mujoco", "mujoco_cases"]

MUJOCO_FUNCTIONS = ("RNEA", "ABA", "CRBA")
_MUJOCO_OFF = (
    "ACTUATION", "CONSTRAINT", "CONTACT", "DAMPER", "EQUALITY", "FRICTIONLOSS", "ISLAND", "LIMIT",
    "SENSOR", "SPRING",
)  # fmt: skip


def compare_mujoco(
    model, batches=(1, 16, 256, 4096), functions=MUJOCO_FUNCTIONS, repeats=7, seed=0
):
    """Yield a ``Result`` for every function that MuJoCo has, and batch size."""
    mj_model = kt.interop.mujoco.to_model(model)
    for n in batches:
        for function, case in mujoco_cases(model, mj_model, n, seed).items():
            if function in functions and not is_too_large(model, function, n):
                yield replace(measure(function, n, case, repeats), library="MuJoCo")


def mujoco_cases(model, mj_model, n, seed=0):
    """What to time against MuJoCo for ``n`` samples, by the name of the function.

    ``mj_inverse`` and ``mj_forward`` are MuJoCo's inverse and forward dynamics; what they do beyond
    that (contact, constraints, sensors, springs and dampers) is switched off.
    """
    mujoco, M = mujoco_library(), kt.interop.mujoco
    for name in _MUJOCO_OFF:
        mj_model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0))
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(n)])
    qd, x = rng.standard_normal((2, n, model.nv))
    pq, pv = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    pa, pt = M.to_a(model, mj_model, q, qd, x), M.to_tau(model, mj_model, q, x)
    data, H = mujoco.MjData(mj_model), np.zeros((mj_model.nv, mj_model.nv))
    if n == 1:
        q, qd, x = q[0], qd[0], x[0]

    def inverse(k):
        data.qpos, data.qvel, data.qacc = pq[k], pv[k], pa[k]
        mujoco.mj_inverse(mj_model, data)
        return data.qfrc_inverse

    def forward(k):
        data.qpos, data.qvel, data.qfrc_applied = pq[k], pv[k], pt[k]
        mujoco.mj_forward(mj_model, data)
        return data.qacc_smooth

    def inertia(k):
        data.qpos = pq[k]
        mujoco.mj_kinematics(mj_model, data)
        mujoco.mj_comPos(mj_model, data)
        mujoco.mj_crb(mj_model, data)
        mujoco.mj_fullM(mj_model, data, H)
        return H

    def in_our_order(k, H):
        rows = M.from_tau(model, mj_model, pq[k], H)
        return M.from_tau(model, mj_model, pq[k], rows.T)

    def case(ours, one, answer):
        samples = min(n, PEER_SAMPLES)

        def loop():
            for k in range(samples):
                one(k)

        return Case(ours, loop, samples, lambda: difference(ours(), one, answer, n))

    return {
        "RNEA": case(
            lambda: kt.inverse_dynamics(model, q, qd, x),
            inverse,
            lambda k, tau: M.from_tau(model, mj_model, pq[k], tau),
        ),
        "ABA": case(
            lambda: kt.forward_dynamics(model, q, qd, x),
            forward,
            lambda k, a: M.from_a(model, mj_model, pq[k], pv[k], a),
        ),
        "CRBA": case(lambda: kt.mass_matrix(model, q), inertia, in_our_order),
    }
