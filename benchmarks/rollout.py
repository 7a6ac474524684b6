"""Steps per second of rollouts beside MuJoCo and Pinocchio: one run, one thread, same mechanisms.

    python benchmarks/rollout.py              both robots, both integrators
    python benchmarks/rollout.py --quick      one measurement of each

MuJoCo gets the model without geometry, and with all that it can leave out left out: contacts,
constraints, limits, actuators, sensors. It runs in its own C loops, ``mj_step`` with many steps and
``mujoco.rollout``. Pinocchio runs ``abaInParallel`` on one thread, with NumPy around it. Times are
CPU time of the process, taken in turn, so that other work on the machine counts little; ratios come
with their spread. Beside ``mujoco.rollout``, which stores every state, so do we; otherwise both
sides keep the last. The answers of all sides are compared first; those of semi-implicit Euler for
the floating base differ in the first order of the step, since its velocity is in other coordinates.
"""

import json
import platform
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.model.edit import lock
from kinetree.simulation.rollouts.rollout import rollout

at_full_speed()

HERE = Path(__file__).parent
DT = 1e-3
STEPS = 200
BATCH = 1024
STORES_ALL = "mujoco.rollout, all stored"
PEER_BATCH = 32  # samples that peers run; their time per step does not depend on it
INTEGRATORS = {
    "semi_implicit_euler": mujoco.mjtIntegrator.mjINT_EULER,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
LEFT_OUT = (
    "ACTUATION", "AUTORESET", "CLAMPCTRL", "CONSTRAINT", "CONTACT", "DAMPER", "EQUALITY",
    "EULERDAMP", "FRICTIONLOSS", "ISLAND", "LIMIT", "REFSAFE", "SENSOR", "SPRING", "WARMSTART",
)  # fmt: skip


def main():
    repeats = 1 if "--quick" in sys.argv else 9
    kt.set_threads(1)
    warnings.simplefilter("ignore", kt.ModelWarning)
    rows = [
        row
        for name, model in robots().items()
        for integrator in INTEGRATORS
        for row in compare(name, model, integrator, repeats)
    ]
    show(rows)
    if repeats > 1:
        report = {"machine": platform.machine(), "mujoco": mujoco.__version__,
                  "pinocchio": pin.__version__, "rows": [asdict(row) for row in rows]}  # fmt: skip
        path = HERE / "rollout.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}")


def robots():
    """A seven-axis arm, its gripper held, and a floating humanoid with 30 joints; nothing else."""
    fingers = {"left_finger_joint": 0.0, "right_finger_joint": 0.0}
    arm = lock(kt.samples.panda(), fingers, lump=True)
    return {"arm, 7 dof": bare(arm), "humanoid, 36 dof": bare(kt.samples.humanoid())}


def bare(model):
    """The bodies and joints alone: no stops, no friction, which the peers leave out as well."""
    nothing = dict.fromkeys(model.joint_names)
    return model.replace(geometry=(), actuators=(), frames=(), limits=nothing, dynamics=nothing)


@dataclass(frozen=True)
class Row:
    """One peer on one task; times in seconds per step of one sample.

    Attributes:
        error: largest difference of final positions, in m and rad, after a short time.
        ratio: median of peer over ours.
        spread: range of the ratios over their median.
    """

    robot: str
    integrator: str
    peer: str
    ours: float
    theirs: float
    ratio: float
    spread: float
    error: float


def compare(name, model, integrator, repeats):
    """Rows of all peers for one robot and integrator."""
    rng = np.random.default_rng(0)
    q = np.array([start(model, rng) for _ in range(BATCH)])
    qd = 0.1 * rng.standard_normal((BATCH, model.nv))
    options = {"steps": STEPS, "dt": DT, "integrator": integrator}
    few = q[:PEER_BATCH], qd[:PEER_BATCH]
    end = rollout(model, *few, **options, store_every=STEPS).q[-1]
    peers = {
        **mujoco_peers(model, *few, integrator),
        "Pinocchio's batched ABA, NumPy": pinocchio_peer(model, q, qd, integrator),
    }
    for peer, (run, final) in peers.items():
        every = 1 if peer == STORES_ALL else STEPS
        out = rollout(model, q, qd, **options, store_every=every)

        def ours(every=every, out=out):
            rollout(model, q, qd, **options, store_every=every, out=out)
            return BATCH * STEPS

        error = np.abs(model.difference(end, final()[:PEER_BATCH])).max()
        times = np.array([[seconds(ours), seconds(run)] for _ in range(repeats)])
        ratios = times[:, 1] / times[:, 0]
        middle = float(np.median(ratios))
        spread = float(np.ptp(ratios) / middle)
        mine, theirs = map(float, np.median(times, axis=0))
        yield Row(name, integrator, peer, mine, theirs, middle, spread, float(error))


def start(model, rng):
    """A configuration near zero, so that motions stay tame."""
    return model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv))


def seconds(run):
    """CPU seconds per step; ``run`` returns how many steps it took."""
    begin = time.process_time()
    steps = run()
    return (time.process_time() - begin) / steps


# --- MuJoCo --------------------------------------------------------------------------------------


def mujoco_peers(model, q, qd, integrator):
    """MuJoCo's two loops, each with a function that returns our positions at the end."""
    M = kt.interop.mujoco
    mj = M.to_model(model)
    mj.opt.timestep, mj.opt.integrator = DT, INTEGRATORS[integrator]
    for flag in LEFT_OUT:
        mj.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    data = mujoco.MjData(mj)
    pq, pv = M.to_q(model, mj, q), M.to_v(model, mj, q, qd)
    n = mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.zeros((len(q), n))
    states[:, 1 : 1 + mj.nq], states[:, 1 + mj.nq : 1 + mj.nq + mj.nv] = pq, pv
    found, sensors = np.zeros((len(q), STEPS, n)), np.zeros((len(q), STEPS, mj.nsensordata))
    ends = np.zeros_like(pq)

    def step():
        for k in range(len(q)):
            mujoco.mj_resetData(mj, data)
            data.qpos, data.qvel = pq[k], pv[k]
            mujoco.mj_step(mj, data, nstep=STEPS)
            ends[k] = data.qpos
        return len(q) * STEPS

    def roll():
        mujoco.rollout.rollout(mj, [data], states, nstep=STEPS, state=found, sensordata=sensors)
        return len(q) * STEPS

    def after_steps():
        step()
        return M.from_q(model, mj, ends)

    def after_rollout():
        roll()
        return M.from_q(model, mj, np.ascontiguousarray(found[:, -1, 1 : 1 + mj.nq]))

    return {"mj_step": (step, after_steps), STORES_ALL: (roll, after_rollout)}


# --- Pinocchio -----------------------------------------------------------------------------------


def pinocchio_peer(model, q, qd, integrator):
    """Pinocchio's batched ABA with steps written in NumPy."""
    P = kt.interop.pinocchio
    pm = P.to_model(model)
    pool = pin.ModelPool(pm, 1)
    start = [np.asfortranarray(a.T) for a in (P.to_q(model, pm, q), P.to_v(model, pm, q, qd))]
    zero, result = np.zeros_like(start[1]), np.zeros_like(start[1], order="F")
    floating = pm.nq != pm.nv

    def acceleration(x, v):
        pin.abaInParallel(1, pool, x, v, zero, result)
        return result.copy(order="F")

    def rate(x, v, u=None):
        """Rates of local coordinates; ``u`` is the displacement so far, for the base's turning."""
        if not floating:
            return v
        w = v[3:6] if u is None else v[3:6] + np.cross(u[3:6], v[3:6], axis=0) / 2
        return np.concatenate([turned(x[3:7], v[:3]), w, v[6:]])

    def moved(x, u):
        if not floating:
            return x + u
        return np.concatenate([x[:3] + u[:3], rotated(x[3:7], u[3:6]), x[7:] + u[6:]])

    def rk4(x, v):
        rates, accelerations = [rate(x, v)], [acceleration(x, v)]
        for part in (DT / 2, DT / 2, DT):
            u, v_i = part * rates[-1], v + part * accelerations[-1]
            x_i = moved(x, u)
            rates.append(rate(x_i, v_i, u))
            accelerations.append(acceleration(x_i, v_i))
        u, dv = (DT / 6 * (k[0] + 2 * (k[1] + k[2]) + k[3]) for k in (rates, accelerations))
        return moved(x, u), v + dv

    def euler(x, v):
        v = v + DT * acceleration(x, v)
        return moved(x, DT * rate(x, v)), v

    step = rk4 if integrator == "rk4" else euler
    end = []

    def run(steps=STEPS // 10):
        x, v = start
        for _ in range(steps):
            x, v = step(x, v)
        end[:] = [x]
        return steps * x.shape[1]

    def final():
        run(STEPS)
        return P.from_q(model, pm, np.ascontiguousarray(end[0].T))

    return run, final


def turned(p, v):
    """``v`` in world coordinates; ``p`` is a quaternion, its real part last."""
    axis, w = p[:3], p[3]
    cross = np.cross(axis, v, axis=0)
    return v + 2 * (w * cross + np.cross(axis, cross, axis=0))


def rotated(p, u):
    """The quaternion after a rotation by ``u`` in body coordinates."""
    axis, w = p[:3], p[3]
    angle = np.linalg.norm(u, axis=0)
    c, s = np.cos(angle / 2), np.sinc(angle / (2 * np.pi)) / 2 * u
    vector = w * s + c * axis + np.cross(axis, s, axis=0)
    return np.concatenate([vector, (w * c - (axis * s).sum(axis=0))[np.newaxis]])


def show(rows):
    """A table."""
    title = f"Steps per second on one thread; dt = {DT:g} s, batches of {BATCH}"
    table = Table(title=title)
    for column in ("robot", "integrator", "beside", "kinetree [1/s]", "peer [1/s]",
                   "times faster (spread)", "difference"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("robot", "integrator", "beside")
                         else "right")  # fmt: skip
    for r in rows:
        table.add_row(
            r.robot, r.integrator, r.peer, f"{1 / r.ours:,.0f}", f"{1 / r.theirs:,.0f}",
            f"{r.ratio:.1f} ({100 * r.spread:.0f} %)", f"{r.error:.0e}",
        )  # fmt: skip
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
