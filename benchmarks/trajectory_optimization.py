"""Trajectory optimization beside Crocoddyl: the same steps, costs and horizon, answers compared.

    pip install crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0
    python benchmarks/trajectory_optimization.py

Steps are those of semi-implicit Euler, ``v' = v + a dt`` and ``q' = q + v' dt``, on both sides.
There are no limits. Both start from the forces that hold the start, one thread each, processor
time, code specialised and optimised before. Crocoddyl's FDDP stops at its own criterion. Batches
of 256 starts are compared with what Crocoddyl takes for the first 32 of them, one after the other.
Crocoddyl 3.2.1 was built with Pinocchio 4.0: with 4.1 it leaves gravity out of accelerations. They
are compared with ours before anything is timed.
"""

import time
from functools import partial

import crocoddyl
import numpy as np

import kinetree as kt
from kinetree.benchmark import at_full_speed

at_full_speed()
REPEATS = 15
STEPS, DT = 50, 0.02
CASES = {
    "panda, reach": ("panda", 0.3, 1e-3, 0.1, 1e3, 1e1),
    "arm, reach": ("arm", 0.4, 1e-3, 0.1, 1e3, 1e1),
    "double pendulum, half a turn": ("double_pendulum", None, 1e-2, 1e-2, 1e2, 1e1),
}


def problems(sample, far, effort, speed, position, rest):
    """A function that solves by kinetree, and one that does by Crocoddyl: cost, q, iterations."""
    m = getattr(kt.samples, sample)()
    q0 = m.postures[0].q if sample == "panda" else m.neutral()
    goal = np.array([np.pi, 0.0]) if far is None else q0 + far * np.cos(np.arange(m.nv))
    hold = kt.inverse_dynamics(m, q0, np.zeros(m.nv), np.zeros(m.nv))
    free = {"effort_limits": None, "position_limits": None, "velocity_limits": None}

    def ours(q=q0):
        found = kt.control.optimize(
            m, q, steps=STEPS, dt=DT, friction=None, tolerance=1e-5, second_order=False, **free,
            running=kt.control.QuadraticCost(effort=effort, velocity=speed),
            terminal=kt.control.QuadraticCost(q=goal, position=position, velocity=rest),
            guess={"tau": np.tile(hold, (STEPS, 1))},
        )  # fmt: skip
        return found.cost, found.q, found.iterations, found.converged

    state = crocoddyl.StateMultibody(kt.interop.pinocchio.to_model(m))
    motors = crocoddyl.ActuationModelFull(state)
    running, end = (crocoddyl.CostModelSum(state, motors.nu) for _ in range(2))
    n, target = m.nv, np.concatenate([goal, np.zeros(m.nv)])

    def deviation(weights):
        residual = crocoddyl.ResidualModelState(state, target, motors.nu)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        return crocoddyl.CostModelResidual(state, activation, residual)

    tau = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, motors.nu))
    running.addCost("speed", deviation(np.r_[np.zeros(n), np.full(n, speed)]), 1 / DT)
    running.addCost("effort", tau, effort / DT)
    end.addCost("end", deviation(np.r_[np.full(n, position), np.full(n, rest)]), 1.0)
    step, last = (
        crocoddyl.IntegratedActionModelEuler(accelerations(state, motors, costs, m), dt)
        for costs, dt in ((running, DT), (end, 0.0))
    )

    def theirs(start=q0):
        x0 = np.concatenate([start, np.zeros(n)])
        problem = crocoddyl.ShootingProblem(x0, [step] * STEPS, last)
        problem.nthreads = 1  # else as many as there are cores, whatever OMP_NUM_THREADS says
        solver = crocoddyl.SolverFDDP(problem)
        solver.th_stop = 1e-10
        solver.solve([x0] * (STEPS + 1), [hold] * STEPS, 200, False)
        q = np.array(solver.xs)[:, : m.nq]
        return solver.cost, q, solver.iter + 1, bool(solver.stop < solver.th_stop)

    return ours, theirs, q0


def accelerations(state, motors, costs, m):
    """Crocoddyl's forward dynamics, which must be ours."""
    model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, motors, costs)
    rng, data = np.random.default_rng(0), model.createData()
    q, qd, tau = rng.uniform(-1, 1, (3, m.nv))
    model.calc(data, np.concatenate([q, qd]), tau)
    ours = kt.forward_dynamics(m, q, qd, tau)
    np.testing.assert_allclose(data.xout, ours, rtol=1e-9, atol=1e-9)
    return model


def times(calls, repeats=REPEATS):
    """Least and median time of each call; they take turns."""
    spent = [[] for _ in calls]
    for _ in range(repeats):
        for call, own in zip(calls, spent, strict=True):
            before = time.process_time()
            call()
            own.append(time.process_time() - before)
    return [(min(own), np.median(own)) for own in spent]


def in_turn(call, starts):
    """Solve one problem after the other."""
    for start in starts:
        call(start)


def main():
    """Print a row for each case."""
    kt.set_threads(1)
    for name, case in CASES.items():
        ours, theirs, q0 = problems(*case)
        (cost, q, count, fine), (other, q_other, count_other, fine_other) = ours(), theirs()
        a, b = times((ours, theirs))
        starts = q0 + 0.1 * np.random.default_rng(0).uniform(-1, 1, (256, len(q0)))
        many, few = partial(ours, starts), partial(in_turn, theirs, starts[:32])
        found = many()
        (each, _), (other_each, _) = times((many, few), 5)
        each, other_each = each / 256, other_each / 32
        print(
            f"{name}: kinetree {1e3 * a[0]:.1f} ms (median {1e3 * a[1]:.1f}), {count} iterations, "
            f"cost {cost:.8g}, converged {fine}; Crocoddyl {1e3 * b[0]:.1f} ms (median "
            f"{1e3 * b[1]:.1f}), {count_other} iterations, cost {other:.8g}, {fine_other}; largest "
            f"difference of q {np.abs(q - q_other).max():.1e}; {b[0] / a[0]:.1f} times; "
            f"a batch of 256: {1e3 * each:.2f} ms each, {np.mean(found[2]):.1f} iterations, "
            f"{np.sum(found[3])} converged; Crocoddyl from these starts "
            f"{1e3 * other_each:.2f} ms each: {other_each / each:.1f} times"
        )


if __name__ == "__main__":
    main()
