"""Forward dynamics of closed chains, batched, beside Pinocchio's ``constraintDynamics``.

    python benchmarks/closed_loops.py

One thread each, the two taken in turn. Pinocchio has no batch function for this and is called in a
loop from Python; what such a call costs by itself, measured on a single hinge without constraints,
is subtracted, so that its figure is that of a loop in C++ or a little better. It is given a ball at
every closure, the leanest that keeps the loops closed, and of several proximal settings the fastest
whose answers agree with ours; with its default ones the planar linkage has no answer at all. Times
are those of the processor, which others may be using too.
"""

import time
import warnings
from itertools import product

import numpy as np

import kinetree as kt
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.benchmark import at_full_speed
from kinetree.interop.pinocchio.leaves import pinocchio
from kinetree.loops.kinematics.constraint import constraint

at_full_speed()

BATCH = 4096
REPEATS = 15
AGREEMENT = 1e-9


def states(model, rng, count):
    """Random states with loops closed in position and velocity, and joint forces."""
    kept = closed_configurations(model, 64)
    q = kept[rng.integers(len(kept), size=count)]
    qd = rng.normal(size=(count, model.nv))
    K = constraint(model, q, qd).K
    keep = np.linalg.pinv(K, rcond=1e-9)
    qd = qd - np.einsum("nij,njk,nk->ni", keep, K, qd)
    return q, qd, rng.normal(size=(count, model.nv))


class Peer:
    """Pinocchio on the same mechanism and states."""

    def __init__(self, model, q, qd, tau):
        pin, P = pinocchio(), kt.interop.pinocchio
        self.pin = pin
        tree = model.replace(loops=(), actuators=())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kt.ModelWarning)
            self.model = P.to_model(tree)  # springs are not part of either side
        self.data = self.model.createData()
        self.closures = pin.StdVec_RigidConstraintModel()
        for loop in model.loops:
            ends = (
                (loop.predecessor, loop.predecessor_placement),
                (loop.successor, loop.successor_placement),
            )
            places = [
                (self.model.getJointId(model.joint_names[body - 1]) if body else 0, _pose(pin, X))
                for body, X in ends
            ]
            self.closures.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, self.model, *places[0], *places[1],
                    pin.ReferenceFrame.LOCAL,
                )
            )  # fmt: skip
        self.work = pin.StdVec_RigidConstraintData()
        for closure in self.closures:
            self.work.append(closure.createData())
        pin.initConstraintDynamics(self.model, self.data, self.closures, self.work)
        self.q, self.v = P.to_q(tree, self.model, q), P.to_v(tree, self.model, q, qd)
        self.tau = P.to_tau(tree, self.model, q, tau)
        self.settings = pin.ProximalSettings()
        self.back = lambda k, a: P.from_a(tree, self.model, self.q[k], self.v[k], a)

    def one(self, k):
        return self.pin.constraintDynamics(
            self.model, self.data, self.q[k], self.v[k], self.tau[k], self.closures, self.work,
            self.settings,
        )  # fmt: skip

    def seconds(self, samples=256):
        """Per sample, with the cost of the calls."""
        start = time.thread_time()
        for k in range(samples):
            self.one(k)
        return (time.thread_time() - start) / samples

    def difference(self, k, expected):
        """Relative to the largest acceleration; infinite where there is no answer."""
        found = self.one(k)
        if not np.all(np.isfinite(found)):
            return np.inf
        return np.max(np.abs(self.back(k, found) - expected)) / np.max(np.abs(expected))

    def tune(self, expected):
        """Take the fastest settings whose answers agree; how far they differ at most."""
        found = []
        for mu, steps in product((0.0, 1e-12, 1e-10, 1e-8, 1e-6), (1, 2, 3, 5, 10)):
            self.settings = self.pin.ProximalSettings(1e-13, 1e-13, mu, steps)
            difference = max(self.difference(k, a) for k, a in enumerate(expected))
            if difference < AGREEMENT:
                found.append((min(self.seconds() for _ in range(3)), difference, mu, steps))
        _, difference, mu, steps = min(found)
        self.settings = self.pin.ProximalSettings(1e-13, 1e-13, mu, steps)
        return difference


def _pose(pin, X):
    return pin.SE3(np.array(X.E.T, dtype=float), np.array(X.r, dtype=float))


def hinge():
    """Next to no work for Pinocchio: what is left is the call."""
    model = kt.ModelBuilder("hinge").body("rod", joint=kt.Revolute("z"), inertia=_rod()).build()
    zero = np.zeros((256, 1))
    return Peer(model, zero, zero, zero)


def _rod():
    return kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), np.eye(3) * 0.1)


def compare(model, rng, batch=BATCH, repeats=REPEATS):
    """Times per sample, their ratio with the range of most of it, how far answers differ."""
    q, qd, tau = states(model, rng, batch)
    peer, call = Peer(model, q, qd, tau), hinge()
    difference = peer.tune(kt.forward_dynamics(model, q, qd, tau)[:64])
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        for _ in range(3):
            kt.forward_dynamics(model, q, qd, tau)
        mine = (time.thread_time() - start) / (3 * batch)
        times.append((mine, peer.seconds(), call.seconds()))
    mine, with_call, alone = np.array(times).T
    theirs = with_call - alone
    ratio = theirs / mine
    return {
        "ours": np.median(mine),
        "peer": np.median(theirs),
        "with call": np.median(with_call),
        "ratio": np.median(ratio),
        "low": np.quantile(ratio, 0.1),
        "high": np.quantile(ratio, 0.9),
        "difference": difference,
    }


def main():
    kt.set_threads(1)
    rng = np.random.default_rng(0)
    print(
        "| mechanism | kinetree | Pinocchio | as called from Python | ratio | answers differ by |"
    )
    print("|---|---|---|---|---|---|")
    for model in (kt.samples.four_bar(), kt.samples.stewart()):
        r = compare(model, rng)
        print(
            f"| {model.name} | {r['ours'] * 1e6:.3f} µs | {r['peer'] * 1e6:.2f} µs | "
            f"{r['with call'] * 1e6:.2f} µs | {r['ratio']:.1f} ({r['low']:.1f}–{r['high']:.1f}) | "
            f"{r['difference']:.1e} |"
        )


if __name__ == "__main__":
    main()
