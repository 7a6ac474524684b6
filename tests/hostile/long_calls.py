"""Calls that would take minutes to years, and what can be done after they were interrupted.

python -m hostile.long_calls NAME ...    makes each call; somebody interrupts it
"""

import signal
import sys
import tempfile
import warnings

import numpy as np
from support.public_objects import world

import kinetree as kt

EVER = 10**9
"""Steps that nobody waits for."""


class LongCall:
    """A call: ``make`` prepares it, ``call`` takes for ever, ``check`` is right afterwards."""

    def make(self):
        """What the call needs, compiled and warm."""

    def call(self):
        """Takes for ever."""
        raise NotImplementedError

    def check(self):
        """Goes on with what was interrupted, as if nothing had happened."""


class WorldSteps(LongCall):
    """A world, whose time and state go together afterwards."""

    options: dict = {}

    def make(self):
        self.world = world()
        self.world.step(100, **self.options)

    def call(self):
        self.world.step(EVER, **self.options)

    def check(self):
        count = round(self.world.time / self.world.timestep)
        other = world()
        other.step(100, **self.options)
        other.step(count - 100, **self.options)  # which leads to where this one is
        assert np.array_equal(other.q, self.world.q)
        assert count > 100
        before = self.world.time
        self.world.step(10, **self.options)
        assert round((self.world.time - before) / self.world.timestep) == 10
        assert self.world.report().steps > 0


class PushedWorld(WorldSteps):
    """With external forces."""

    options = {"forces": {"box": (0.0, 0.0, 0.1)}}


class ControlledWorld(WorldSteps):
    """With a function that is called before every step."""

    options = {"tau": lambda t, q, qd: np.zeros(12)}


class Batch(LongCall):
    """Many worlds, which are as they were before the call."""

    def make(self):
        self.batch = world().batch(64)
        self.batch.step(20)
        self.q = self.batch.q.copy()

    def call(self):
        self.batch.step(EVER)

    def check(self):
        assert np.array_equal(self.batch.q, self.q)
        assert np.ptp(self.batch.time) == 0
        other = world().batch(64)
        other.step(20)
        for batch in (other, self.batch):
            batch.step(30)
        assert np.array_equal(other.q, self.batch.q)


class Simulation(LongCall):
    """A simulation, of which nothing is left."""

    options: dict = {"duration": 1e6, "dt": 1e-3, "store_every": EVER}

    def make(self):
        self.model = kt.samples.double_pendulum()
        self.what = (self.model, [0.3, 0.2])
        kt.simulate(*self.what, **self.options | {"duration": 0.01})

    def call(self):
        kt.simulate(*self.what, **self.options)

    def check(self):
        assert len(kt.simulate(*self.what, **self.options | {"duration": 0.01}).t) > 1


class StoredSimulation(Simulation):
    """All steps stored."""

    options = {"duration": 1e4, "dt": 1e-3}


class AdaptiveSimulation(Simulation):
    """Adaptive steps."""

    options = {"duration": 1e6, "dt": 0.1, "rtol": 1e-8}


class LoopSimulation(Simulation):
    """With loops."""

    def make(self):
        super().make()
        self.what = (kt.samples.four_bar(), kt.samples.four_bar().neutral())
        self.what = (self.what[0], kt.loops.assemble(self.what[0], self.what[1]))


class WorldSimulation(Simulation):
    """Of a world."""

    options = {"duration": 1e6, "store_every": EVER}

    def make(self):
        self.what = (world(),)
        kt.simulate(*self.what, duration=0.01)


class Rollout(LongCall):
    """A batch of motions in compiled code."""

    def make(self):
        self.model = kt.samples.double_pendulum()
        self.q = np.full((64, 2), 0.1)
        self.take(4)

    def take(self, steps):
        return kt.rollout(self.model, self.q, steps=steps, dt=1e-3, store_every=10**6)

    def call(self):
        self.take(EVER)

    def check(self):
        assert np.isfinite(self.take(4).q).all()


class WorldRollout(Rollout):
    """By the engine."""

    def make(self):
        self.batch = world().batch(64)
        self.take(10)

    def take(self, steps):
        return kt.rollout(self.batch, steps=steps, store_every=10**6)


class Gradient(Rollout):
    """Reverse passes."""

    def take(self, steps):
        steps = min(steps, 300_000)
        q = self.q[:8]
        return kt.rollout_gradient(self.model, q, steps=steps, dt=1e-3, terminal=height)

    def check(self):
        assert np.isfinite(self.take(4).value).all()


@kt.kernel
def height(model, q, qd):
    """A cost."""
    return q @ q


class LargeBatch(LongCall):
    """One call for millions of samples."""

    def make(self):
        self.model, self.q = kt.samples.panda(), np.zeros((400_000, 9))
        kt.forward_dynamics(self.model, *(self.q[:64],) * 3)

    def call(self):
        while True:
            kt.forward_dynamics(self.model, self.q, self.q, self.q)

    def check(self):
        assert kt.forward_dynamics(self.model, *(self.q[:64],) * 3).shape == (64, 9)


class Sweep(LongCall):
    """Runs on threads, whose folder can be used again."""

    def make(self):
        self.folder = tempfile.mkdtemp()

    def take(self, folder, count):
        def run(model, k):
            return {"q": kt.simulate(model, [0.1 * k], duration=0.05, dt=1e-3).q[-1]}

        values = {"k": np.arange(float(count))}
        return kt.sweep(kt.samples.pendulum(), run, values, folder=folder, chunk=2, threads=2)

    def call(self):
        self.take(self.folder, 100_000)

    def check(self):
        assert len(self.take(tempfile.mkdtemp(), 2)["q"]) == 2


class Optimization(LongCall):
    """Trajectory optimization."""

    def make(self):
        self.take(1)

    def take(self, iterations):
        cost = kt.control.QuadraticCost(effort=0.01, velocity=0.01)
        return kt.control.optimize(
            kt.samples.cart_pole(), [0.1, 0.2], steps=60, dt=0.03, goal=[0.0, np.pi],
            actuated=["rail"], running=cost, iterations=iterations,
        )  # fmt: skip

    def call(self):
        while True:
            self.take(100)

    def check(self):
        self.take(1)


class InverseKinematics(LongCall):
    """Many targets."""

    def make(self):
        self.model = kt.samples.panda()
        self.take(2)

    def take(self, count):
        targets = np.random.default_rng(3).uniform([-0.2, -0.5, 0.0], [0.8, 0.5, 1.0], (count, 3))
        task = kt.ik.PositionTask("grasp", targets)
        return kt.inverse_kinematics(self.model, [task], q0=self.model.posture("home").q)

    def call(self):
        while True:
            self.take(3000)

    def check(self):
        self.take(2)


class Identification(LongCall):
    """Excitation and identification."""

    def make(self):
        self.model = kt.samples.double_pendulum()
        self.take(1)

    def take(self, candidates):
        motion = kt.identification.exciting_trajectory(
            self.model, period=2.0, samples=40, candidates=candidates
        )
        tau = kt.inverse_dynamics(self.model, motion.q, motion.qd, motion.qdd)
        return kt.identify(self.model, motion.q, motion.qd, motion.qdd, tau)

    def call(self):
        while True:
            self.take(50)

    def check(self):
        self.take(1)


@kt.kernel
def observe(model, q, qd):
    """Observations of a learner."""
    return np.concatenate([q, qd])


@kt.kernel
def reward(model, q):
    """A reward."""
    return 1 - q[0] ** 2


@kt.kernel
def start(model, uniform: (2,)):
    """A start near the top."""
    return {"q": 0.1 * uniform}


@kt.kernel
def push(model, action: (2,)):
    """Joint forces."""
    return action


class Learning(LongCall):
    """Many worlds of a learner, each action for many steps."""

    def make(self):
        self.env = self.environment(2)

    def environment(self, decimation):
        env = kt.learning.Environment(
            kt.samples.cart_pole(), 256, observe=observe, reward=reward, reset=start, act=push,
            dt=1e-3, decimation=decimation, episode=200,
        )  # fmt: skip
        env.reset(seed=1)
        return env

    def call(self):
        while True:
            self.env.step(np.zeros((256, 2)))

    def check(self):
        seen = self.env.step(np.zeros((256, 2)))[0]
        assert np.isfinite(seen).all()


CALLS = {kind.__name__: kind for kind in (
    WorldSteps, PushedWorld, ControlledWorld, Batch, Simulation, StoredSimulation,
    AdaptiveSimulation, LoopSimulation, WorldSimulation, Rollout, WorldRollout, Gradient,
    LargeBatch, Sweep, Optimization, InverseKinematics, Identification, Learning,
)}  # fmt: skip


def main(names):
    """Make the calls one after another, and say how each went."""
    warnings.simplefilter("ignore")
    signal.alarm(600)  # the end, also where whoever began this is gone
    for name in names:
        one = CALLS[name]()
        one.make()
        try:
            print("ready", flush=True)  # where the signal may come before the call begins
            one.call()
        except KeyboardInterrupt:
            print("heard", flush=True)
        one.check()
        print("usable", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
