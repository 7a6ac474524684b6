"""Optimization with contact phases beside Crocoddyl: the same problem, answers compared.

    pip install crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0
    python benchmarks/contact_phases.py             seven repetitions
    python benchmarks/contact_phases.py --quick     three

The sample quadruped trots, two diagonal legs at a time, and the sample humanoid steps on the spot,
50 steps of 20 ms. Closed contacts are rigid, with velocities that decay; what touches down stops by
an impact; feet in the air follow heights at a cost. Friction cones are inequalities here (interior
point) and quadratic penalties in Crocoddyl, as in its examples: its solver has no others; those of
soles are written differently, which is why soles are so large that none is active. There are no
other limits. Both start from the forces that hold the start, one thread each, processor time, code
optimised before.

Our motion is put into Crocoddyl's problem: no gaps, and the same cost. Times are those until the
cost is within 1e-3 of the least that either finds. Then a batch of 256 such problems with other
starts is solved on one thread, and Crocoddyl solves the first 32 of them, one after the other: with
as many iterations on either side as bring 30 of these 32 to within 1e-3 of the least. Then a plan
is made from a motion that is nearly right, with one iteration, as in predictive control.

Crocoddyl 3.2.1 was built with Pinocchio 4.0: with 4.1, where memory is laid out differently, it
computes something else or crashes.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"  # before Crocoddyl is loaded, whose threads spin otherwise

import crocoddyl
import numpy as np
import pinocchio as pin

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.control import MPC, Contact, QuadraticCost, gait, trot
from kinetree.control.phases import timetable
from kinetree.control.starts import as_guess

at_full_speed()

REPEATS = 3 if "--quick" in sys.argv else 7
MANY = 1024  # plans in a batch
BATCH, SOME, ENOUGH, OFF = 256, 32, 30, 0.02  # starts, of both, that must be near; rad, m, m/s
DT, STEPS, NEAR = 0.02, 50, 1e-3
SPEED, EFFORT, ROOT, POSTURE = 0.1, 1e-2, 100.0, 10.0  # weights of costs
CONE = 1e3  # weight of Crocoddyl's friction cones
SOLE = np.array([(x, y, 0.0) for x in (-0.5, 0.5) for y in (-0.2, 0.2)])  # no cone is active
FREE = {"effort_limits": None, "position_limits": None, "velocity_limits": None}


class Case:
    """A robot, its schedule, and where it should be."""

    def __init__(self, name):
        self.name = name
        self.model = m = kt.samples.load(name)
        self.start, self.goal = m.posture("home").q, m.posture("home").q.copy()
        if name == "quadruped":
            feet = [f"{e}_{s}_foot" for e in ("front", "rear") for s in ("left", "right")]
            self.goal[0] += 0.15
            self.schedule = trot(feet, swing=0.2, stand=0.04, lift=0.06, ground=0.02)
        else:
            feet = [Contact(f, points=SOLE, friction=0.8) for f in ("left_sole", "right_sole")]
            ground = kt.pose(m, self.start, "left_sole")[2, 3]
            self.schedule = gait(
                [[feet[0]], [feet[1]]], swing=0.3, stand=0.1, lift=0.04, ground=ground
            )
        self.weights = np.r_[np.full(6, ROOT), np.full(m.nv - 6, POSTURE)]


def ours(case, q=None, qd=None):
    """A function of the number of iterations: cost, largest gap, motion; from home by default."""
    q = case.start if q is None else q

    def solve(iterations=100, tolerance=1e-5, **more):
        return kt.control.optimize(
            case.model, q, qd, steps=STEPS, dt=DT, phases=case.schedule, **FREE,
            actuated=case.model.joint_names[1:], friction=None, tolerance=tolerance,
            running=QuadraticCost(
                q=case.goal, position=case.weights, velocity=SPEED, effort=EFFORT
            ),
            iterations=iterations, **more,
        )  # fmt: skip

    return solve


class Peer:
    """The problem for Crocoddyl."""

    def __init__(self, case):
        self.case, self.model = case, kt.interop.pinocchio.to_model(case.model)
        self.model.names[1] = "root_joint"  # by which Crocoddyl finds it
        self.contacts = list(case.schedule.contacts.values())
        for contact in self.contacts:  # heights are those of the first point
            old = self.model.frames[self.model.getFrameId(contact.frame)]
            place = old.placement * pin.SE3(np.eye(3), contact.points[0])
            name, kind = f"point of {contact.frame}", pin.FrameType.OP_FRAME
            self.model.addFrame(pin.Frame(name, old.parentJoint, 0, place, kind))
        self.state = crocoddyl.StateMultibody(self.model)
        self.motors = crocoddyl.ActuationModelFloatingBase(self.state)
        self.nu, self.nv = self.motors.nu, self.model.nv
        joints = list(self.model.names)[2:]  # in its order; linear part of the root first
        self.order = np.r_[3:6, 0:3, [case.model.v_indices(n)[0] for n in joints]]
        self.q_order = np.array([case.model.q_indices(n)[0] for n in joints])
        self.plan = timetable(case.schedule, DT * np.arange(STEPS + 1))
        self.target = self.to_state(case.goal, np.zeros(self.nv))
        self.start = self.to_state(case.start, np.zeros(self.nv))
        nodes, self.of_knot = [], []
        for k in range(STEPS):
            hit = self.plan.landing[k].any()
            if hit:
                nodes.append(self.impact(k))
            nodes.append(self.step(k, after_impact=hit))
            self.of_knot += [k] * (1 + hit)
        costs = crocoddyl.CostModelSum(self.state, self.nu)
        self.add_feet(costs, STEPS, 1.0)
        model = self.dynamics(self.plan.active[-1], costs)
        last = crocoddyl.IntegratedActionModelEuler(model, 0.0)
        self.problem = crocoddyl.ShootingProblem(self.start, nodes, last)
        self.problem.nthreads = 1

    def to_state(self, q, qd):
        """State as Pinocchio has it: w of quaternions last, linear velocities first."""
        return np.r_[q[:3], q[4:7], q[3], q[self.q_order], qd[self.order]]

    def frame(self, contact):
        return self.model.getFrameId(f"point of {contact.frame}")

    def dynamics(self, active, costs):
        """Accelerations with closed contacts."""
        contacts = crocoddyl.ContactModelMultiple(self.state, self.nu)
        aligned = pin.LOCAL_WORLD_ALIGNED
        for contact, on in zip(self.contacts, active, strict=True):
            if on:
                gains = np.array([0.0, contact.damping])
                given = self.state, self.frame(contact)
                if len(contact.points) == 1:
                    one = crocoddyl.ContactModel3D(*given, np.zeros(3), aligned, self.nu, gains)
                else:
                    one = crocoddyl.ContactModel6D(
                        *given, pin.SE3.Identity(), pin.LOCAL, self.nu, gains
                    )
                contacts.addContact(contact.frame, one)
                if len(contact.points) == 1:
                    self.add_cone(costs, contact)
        model = crocoddyl.DifferentialActionModelContactFwdDynamics(
            self.state, self.motors, contacts, costs, 0.0, True
        )
        model.armature = np.zeros(self.nv)
        return model

    def add_cone(self, costs, contact):
        """Penalty of a friction cone."""
        cone = crocoddyl.FrictionCone(np.eye(3), contact.friction, contact.sides, True)
        residual = crocoddyl.ResidualModelContactFrictionCone(
            self.state, self.frame(contact), cone, self.nu
        )
        bounds = crocoddyl.ActivationBounds(cone.lb, cone.ub)
        barrier = crocoddyl.ActivationModelQuadraticBarrier(bounds)
        cost = crocoddyl.CostModelResidual(self.state, barrier, residual)
        costs.addCost(f"cone of {contact.frame}", cost, CONE)

    def add_state(self, costs, scale):
        """Costs of positions and velocities."""
        residual = crocoddyl.ResidualModelState(self.state, self.target, costs.nu)
        weights = np.r_[self.case.weights[self.order], np.full(self.nv, SPEED)]
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        costs.addCost("state", crocoddyl.CostModelResidual(self.state, activation, residual), scale)

    def add_feet(self, costs, knot, scale):
        """Costs of the places of feet in the air and at touch-down."""
        for i, contact in enumerate(self.contacts):
            weight, goal = self.plan.weight[knot, i], self.plan.goal[knot, i]
            if weight.any():
                residual = crocoddyl.ResidualModelFrameTranslation(
                    self.state, self.frame(contact), goal, costs.nu
                )
                activation = crocoddyl.ActivationModelWeightedQuad(weight)
                cost = crocoddyl.CostModelResidual(self.state, activation, residual)
                costs.addCost(f"place of {contact.frame}", cost, scale)

    def impact(self, k):
        """Impulses that stop what touches down; costs of the state before it."""
        impulses = crocoddyl.ImpulseModelMultiple(self.state)
        for contact, on in zip(self.contacts, self.plan.active[k], strict=True):
            if on:
                kind = crocoddyl.ImpulseModel3D
                if len(contact.points) > 1:
                    kind = crocoddyl.ImpulseModel6D
                one = kind(self.state, self.frame(contact), pin.LOCAL_WORLD_ALIGNED)
                impulses.addImpulse(contact.frame, one)
        costs = crocoddyl.CostModelSum(self.state, 0)
        self.add_state(costs, 1.0)
        self.add_feet(costs, k, 1.0)
        model = crocoddyl.ActionModelImpulseFwdDynamics(self.state, impulses, costs)
        model.armature = np.zeros(self.nv)
        return model

    def step(self, k, after_impact):
        """A step of semi-implicit Euler, with the costs of its state unless an impact has them."""
        costs = crocoddyl.CostModelSum(self.state, self.nu)
        if not after_impact:
            self.add_state(costs, 1 / DT)
            self.add_feet(costs, k, 1 / DT)
        effort = crocoddyl.CostModelResidual(
            self.state, crocoddyl.ResidualModelControl(self.state, self.nu)
        )
        costs.addCost("effort", effort, EFFORT / DT)
        return crocoddyl.IntegratedActionModelEuler(self.dynamics(self.plan.active[k], costs), DT)

    def motion(self, found):
        """Our motion as states and controls of all nodes."""
        xs, us = [], []
        for node, k in zip(self.problem.runningModels, self.of_knot, strict=True):
            v, q = found.qd[k], found.q[k]
            if node.nu == 0:
                xs.append(self.to_state(q, v))
                us.append(np.zeros(0))
                continue
            if xs and len(us[-1]) == 0:
                J = self.jacobians(q)
                v = v + np.linalg.solve(kt.mass_matrix(self.case.model, q), self.blow(found, J, k))
            xs.append(self.to_state(q, v))
            us.append(found.tau[k, self.order[6:]])
        return [*xs, self.to_state(found.q[-1], found.qd[-1])], us

    def jacobians(self, q):
        m, J = self.case.model, {}
        for c in self.contacts:
            full = kt.jacobian(m, q, c.frame, frame="aligned", point=c.points[0])
            J[c.frame] = full[3:] if len(c.points) == 1 else np.concatenate([full[3:], full[:3]])
        return J

    def blow(self, found, J, k):
        return sum(J[n].T @ found.impulses[n][k] for n in J)

    def guess(self):
        """Start at rest, forces that hold it."""
        first = ours(self.case)(iterations=0)
        us = [
            np.zeros(0) if node.nu == 0 else first.tau[k, self.order[6:]]
            for node, k in zip(self.problem.runningModels, self.of_knot, strict=True)
        ]
        return [self.start] * (len(us) + 1), us

    def solve(self, iterations, guess, log=None, stop=1e-12):
        solver = crocoddyl.SolverFDDP(self.problem)
        solver.th_stop = stop
        solver.setCallbacks([log] if log else [])
        solver.solve(*guess, iterations, False)
        return solver

    def solve_in_turn(self, q, qd, iterations, us):
        """Costs from several starts, one after the other."""
        costs = []
        for at in map(self.to_state, q, qd):
            self.problem.x0 = at
            costs.append(self.solve(iterations, ([at] * (len(us) + 1), us)).cost)
        self.problem.x0 = self.start
        return np.array(costs)


def compare(case, peer):
    """Cost of our motion in Crocoddyl's problem, its largest gap, and its parts from cones."""
    found = ours(case)()
    xs, us = peer.motion(found)
    cost = peer.problem.calc(xs, us)
    ends = [d.xnext for d in peer.problem.runningDatas]
    gap = max(np.abs(peer.state.diff(a, b)).max() for a, b in zip(ends, xs[1:], strict=True))
    return found, cost, gap


def enough(costs, solve, limit):
    """The least number of iterations after which a motion is cheap, beginning at a guess of it."""
    below = np.flatnonzero(np.asarray(costs) <= limit)
    count = int(below[0]) if len(below) else len(costs)
    while solve(count).cost > limit:
        count += 1
    while count > 1 and solve(count - 1).cost <= limit:
        count -= 1
    return count


def row(name):
    """Compare one robot."""
    case = Case(name)
    peer = Peer(case)
    found, cost, gap = compare(case, peer)
    guess, log = peer.guess(), crocoddyl.CallbackLogger()
    solved = peer.solve(200, guess, log)
    best = min(found.cost, solved.cost)
    print(
        f"{name}: kinetree {found.iterations} iterations, cost {found.cost:.8g}, converged "
        f"{found.converged}; in Crocoddyl's problem {cost:.8g}, gaps {gap:.1e}; Crocoddyl "
        f"{solved.iter + 1} iterations, cost {solved.cost:.8g}, stop {solved.stop:.1e}",
        flush=True,
    )
    mine, theirs, limit = ours(case), lambda k: peer.solve(k, guess), best * (1 + NEAR)
    if max(found.cost, solved.cost) > limit:
        print(f"    one of them stays more than {NEAR:g} above the other: not compared")
        return
    a, b = enough(found.history, mine, limit), enough(list(log.costs), theirs, limit)
    times = [[], []]
    for _ in range(REPEATS):
        for solve, count, own in zip((mine, theirs), (a, b), times, strict=True):
            before = time.process_time()
            solve(count)
            own.append(time.process_time() - before)
    ta, tb = 1e3 * np.array(times)
    print(
        f"    to within {NEAR:g} of the least cost: kinetree {a} iterations, {ta.min():.1f} ms "
        f"(median {np.median(ta):.1f}); Crocoddyl {b}, {tb.min():.1f} ms ({np.median(tb):.1f}): "
        f"{np.median(tb / ta):.1f} times (from {(tb / ta).min():.1f} to {(tb / ta).max():.1f})",
        flush=True,
    )
    solve_many(case, peer, a, b, guess[1])
    predict(case, peer, found)


def solve_many(case, peer, a, b, us):
    """A batch of starts beside Crocoddyl from some of them; ``a``, ``b``: iterations from home."""
    m, rng = case.model, np.random.default_rng(5)
    q = m.integrate(np.tile(case.start, (BATCH, 1)), rng.uniform(-OFF, OFF, (BATCH, m.nv)))
    qd = rng.uniform(-OFF, OFF, (BATCH, m.nv))
    mine = ours(case, q[:SOME], qd[:SOME])
    least = np.minimum(mine().cost, peer.solve_in_turn(q[:SOME], qd[:SOME], 200, us))

    def are_near(costs):
        return (costs <= least * (1 + NEAR)).sum() >= ENOUGH

    while not are_near(mine(a).cost):
        a += 1
    while not are_near(peer.solve_in_turn(q[:SOME], qd[:SOME], b, us)):
        b += 1
    many, times = ours(case, q, qd), [[], []]
    for _ in range(3):
        before = time.process_time()
        many(a)
        times[0].append((time.process_time() - before) / BATCH)
        before = time.process_time()
        peer.solve_in_turn(q[:SOME], qd[:SOME], b, us)
        times[1].append((time.process_time() - before) / SOME)
    each, other = 1e3 * np.array(times)
    print(
        f"    a batch of {BATCH} starts, {ENOUGH} of {SOME} to within {NEAR:g}: kinetree {a} "
        f"iterations, {each.min():.1f} ms each (median {np.median(each):.1f}); Crocoddyl {b}, "
        f"{other.min():.1f} ({np.median(other):.1f}): {np.median(other / each):.1f} times (from "
        f"{(other / each).min():.1f} to {(other / each).max():.1f})",
        flush=True,
    )


def predict(case, peer, found):
    """One iteration from a motion that is nearly right, as in predictive control."""
    m = case.model
    start = m.integrate(found.q[0], 0.01 * np.ones(m.nv)), found.qd[0] + 0.01
    given = {
        "steps": STEPS, "dt": DT, "phases": case.schedule, **FREE, "friction": None,
        "actuated": m.joint_names[1:], "tolerance": 1e-9, "limit_penalty": None,
        "running": QuadraticCost(
            q=case.goal, position=case.weights, velocity=SPEED, effort=EFFORT
        ),
    }  # fmt: skip
    problem = MPC(m, **given).problem
    guess, (xs, us) = as_guess(found), peer.motion(found)
    peer.problem.x0 = xs[0] = peer.to_state(*start)
    times = [[], [], []]
    for _ in range(5 * REPEATS):
        calls = (
            lambda: problem.solve(*start, guess=guess, iterations=1),
            lambda: problem.solve(*start, guess=guess, iterations=3),
            lambda: peer.solve(1, (xs, us)),
        )
        for call, own in zip(calls, times, strict=True):
            before = time.process_time()
            call()
            own.append(time.process_time() - before)
    one, three, other = 1e3 * np.array(times)
    print(
        f"    a plan of {STEPS} knots with one iteration: kinetree {one.min():.2f} ms (median "
        f"{np.median(one):.2f}), of which an iteration {(three - one).min() / 2:.2f} (median "
        f"{np.median(three - one) / 2:.2f}); Crocoddyl {other.min():.2f} ({np.median(other):.2f})"
    )
    starts = np.tile(start[0], (MANY, 1)), np.tile(start[1], (MANY, 1))
    before = time.process_time()
    problem.solve(*starts, guess=guess, iterations=1)
    each = 1e3 * (time.process_time() - before) / MANY
    print(f"    {MANY} such plans in one call: {each:.2f} ms each, on one thread")


def main():
    """Print rows for both robots."""
    kt.set_threads(1)
    for name in ("quadruped", "humanoid"):
        row(name)


if __name__ == "__main__":
    main()
