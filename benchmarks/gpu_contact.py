"""Rigid contact on a GPU: a quadruped stands and lands, a humanoid falls, in whole rollouts.

    python benchmarks/gpu_contact.py            # on a CUDA device, with CuPy; below 4 minutes
    python benchmarks/gpu_contact.py --only humanoid    # or quadruped
    python benchmarks/gpu_contact.py --quick    # one size, float32 alone
    python benchmarks/gpu_contact.py --on-cpu   # the text for the device, by the C compiler; tiny

Of the quadruped, four feet on a plane, joints held by a controller; of the humanoid all shapes, 115
points of which 24 may touch at once, joints damped, between stops. Steps of 1 ms, one thread a
world; contacts of the humanoid by four. Residuals are the largest velocity errors of any step times
the mass that a foot moves, the missing impulse, as a part of the weight's; those of the humanoid
are velocities. Prints the table last, and exits with the number of things that are wrong.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KINETREE_CACHE", tempfile.mkdtemp())  # cold
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from gpu_checks import contact
from gpu_checks.agreement import use_shim
from gpu_checks.definition import compute_by_definition
from gpu_checks.report import Report

import kinetree as kt

GRAVITY = 9.81
_REGISTERS, _SHARED, _THREADS = 65536, 227 * 1024, 2048  # of a multiprocessor, sm_90


class Bench:
    """Measurements on arrays of CuPy; lines of the table are collected."""

    def __init__(self, report, cupy, *, on_cpu=False):
        self.report, self.cupy, self.on_cpu, self.lines = report, cupy, on_cpu, []
        self.dog, self.rng = contact.quadruped(), np.random.default_rng(0)
        self.starts, self.part = {}, self._part_of_weight()

    def _part_of_weight(self):
        """Missing impulse as a part of the weight's, for an error of 1 m/s of a foot."""
        model, q = self.dog.model, self.dog.q
        J = np.asarray(self.dog.contact.scene.candidate_terms(model, q, np.zeros(model.nv))[1])
        mobility = J @ np.linalg.solve(np.asarray(kt.mass_matrix(model, q)), J.swapaxes(1, 2))
        mass = 3 / np.trace(mobility, axis1=1, axis2=2).min()
        whole = sum(body.inertia.mass for body in model.bodies)
        print(f"a foot moves {mass:.2f} of {whole:.1f} kg")
        return mass / (whole * GRAVITY * contact.STEP)

    def wait(self):
        if not self.on_cpu:
            self.cupy.cuda.Device().synchronize()

    def say(self, *words):
        self.lines.append("  ".join(words))
        print(self.lines[-1], flush=True)

    def start(self, task, worlds, dtype):
        """States on the device: a few hundred different ones to land, all the same to stand."""
        if task not in self.starts:
            few = min(worlds, 512)
            spread, height = (0.0, 0.0) if task == "stand" else (1.0, 0.03)
            self.starts[task] = self.dog.states(few, spread, height, self.rng)
        return [
            self.cupy.asarray(np.resize(x, (worlds, x.shape[-1])).astype(dtype))
            for x in self.starts[task]
        ]

    def timed(self, state, steps, repeats=3):
        """Seconds of a rollout without stored states, the best of several, and the last."""
        best, found = np.inf, None
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            found = self.dog.rollout(*state, steps=steps, store_every=steps)
            self.wait()
            best = min(best, time.perf_counter() - begin)
        return best, found

    # --- what is measured ------------------------------------------------------------------------

    def cold(self, worlds, dtype):
        """Time until the first step of a process, with a cold cache."""
        state = self.start("stand", worlds, dtype)
        self.wait()
        begin = time.perf_counter()
        self.dog.rollout(*state, steps=1)
        self.wait()
        seconds = time.perf_counter() - begin
        self.say(f"first step, cold, {dtype}: {seconds:.2f} s")
        return f"{seconds:.2f} s"

    def code(self, dtype):
        """Registers, spilled bytes, and warps on a multiprocessor."""
        kernel, _ = self.dog.kernel(dtype)
        compiled = kernel.on_device(dtype, 0)  # what rollouts have launched, kept with the kernel
        function, shared = compiled.code.functions[0], compiled.code.shared[0]
        shared //= max(1, compiled.code.threads // 32)  # of a block where its warps share samples
        warps = min(_REGISTERS // (32 * function.registers), _SHARED // (shared + 256))
        words = (
            f"{function.registers} registers, {function.local} B local, {shared} B shared a warp"
        )
        self.say(f"code {dtype}: {words}, {min(warps, _THREADS // 32)} warps a multiprocessor")
        return words

    def speed(self, task, worlds, dtype, steps):
        """Steps a second, residuals and penetration."""
        state = self.start(task, worlds, dtype)
        if task == "stand":  # where it has settled
            settled = self.dog.rollout(*state, steps=3 * steps, store_every=3 * steps)
            state = settled.q[-1], settled.qd[-1]
        seconds, found = self.timed(state, steps)
        residuals = np.asarray(self.cupy.asnumpy(found.residuals), float)
        error = residuals[:, 0] * self.part
        percentiles = ", ".join(f"{x:.0e}" for x in np.percentile(error, [50, 99, 99.9, 100]))
        failed = int(self.cupy.asnumpy(found.failed).sum())
        rate = worlds * steps / seconds / 1e6
        self.say(
            f"{task:5s} {dtype} {worlds:6d} worlds {rate:8.1f} M steps/s  residual 50, 99, 99.9,"
            f" 100 %: {percentiles}  penetration {residuals[:, 3].max():.0e} m, {failed} failed"
        )
        most = 1e-4 if dtype == "float32" else 1e-7
        assert not failed, f"{failed} worlds failed"
        assert np.percentile(error, 99.9) < most, f"residual {np.percentile(error, 99.9):.1e}"
        return f"{rate:.1f} M steps/s"

    def creep(self, worlds, seconds, dtype):
        """How far a standing robot moves, and what its energy changes by, after it has settled."""
        steps = round(seconds / contact.STEP)
        before = self.dog.rollout(*self.start("stand", worlds, dtype), steps=steps // 6 or 1,
                                  store_every=steps)  # fmt: skip
        after = self.dog.rollout(before.q[-1], before.qd[-1], steps=steps, store_every=steps)
        states = [[self.cupy.asnumpy(y[-1])[:1].astype(float) for y in (x.q, x.qd)]
                  for x in (before, after)]  # fmt: skip
        (q0, _), (q1, v1) = states
        model = self.dog.model
        energies = [float(kt.kinetic_energy(model, q, v)[0] + kt.potential_energy(model, q)[0])
                    for q, v in states]  # fmt: skip
        words = (
            f"creep {np.linalg.norm(q1[0, :2] - q0[0, :2]):.0e} m, sinking "
            f"{q0[0, 2] - q1[0, 2]:.0e} m, energy {energies[1] - energies[0]:+.0e} J, speed "
            f"{np.abs(v1).max():.0e}"
        )
        self.say(f"standing {seconds:g} s {dtype}: {words}")
        return words


class Humanoid(Bench):
    """Scene of a humanoid that falls from standing and lies still."""

    STEPS = 100  # of a launch; a second until it lies, another one until it is at rest

    def __init__(self, report, cupy, *, on_cpu=False, thorough=True):
        self.report, self.cupy, self.on_cpu, self.lines = report, cupy, on_cpu, []
        self.thorough, self.dog = thorough, contact.humanoid(thorough=thorough)
        self.rng, self.starts = np.random.default_rng(0), {}

    def start(self, task, worlds, dtype):
        """A few hundred different states, near standing, 5 cm above the ground."""
        few = min(worlds, 512)
        if task not in self.starts:
            self.starts[task] = self.dog.states(few, 0.5, 0.05, self.rng)
        return [
            self.cupy.asarray(np.resize(x, (worlds, x.shape[-1])).astype(dtype))
            for x in self.starts[task]
        ]

    def falls(self, worlds, dtype, seconds=2.0):
        """Steps a second over the fall, and for each tenth of a second of it."""
        state, rates, total, worst = self.start("fall", worlds, dtype), [], 0.0, []
        self.dog.rollout(*state, steps=1)  # compiled
        launches = round(seconds / contact.STEP / self.STEPS)
        for _ in range(launches):
            self.wait()
            begin = time.perf_counter()
            found = self.dog.rollout(*state, steps=self.STEPS, store_every=self.STEPS)
            self.wait()
            total += time.perf_counter() - begin
            rates.append(worlds * self.STEPS / (time.perf_counter() - begin) / 1e6)
            worst.append(np.asarray(self.cupy.asnumpy(found.residuals), float))
            state = found.q[-1], found.qd[-1]
        residuals = np.max(worst, axis=0)
        failed = int(self.cupy.asnumpy(found.failed).sum())
        touching = (self.cupy.asnumpy(found.contact_force[-1][:512, :, 0]) > 0).sum(axis=-1)
        rate = worlds * self.STEPS * launches / total / 1e6
        parts = ", ".join(f"{x:.1e}" for x in np.percentile(residuals[:, 0], [50, 99, 99.9, 100]))
        way = "" if self.thorough else "by sweeps alone, "
        self.say(
            f"fall  {way}{dtype} {worlds:6d} worlds {rate:8.2f} M steps/s (by 0.1 s: "
            f"{', '.join(f'{x:.1f}' for x in rates)})  residual 50, 99, 99.9, 100 %: {parts} m/s  "
            f"penetration {residuals[:, 3].max():.0e} m, {failed} failed, "
            f"{touching.mean():.1f} (at most {touching.max()}) contacts at the end"
        )
        assert not failed, f"{failed} worlds failed"
        return f"{rate:.2f} M steps/s"


def humanoid(report, cupy, library, given):
    """Everything about the humanoid; the lines of its table."""
    bench = Humanoid(report, cupy, on_cpu=given.on_cpu)
    bounds = {"float64": 1e-5, "float32": 1e-3}
    if given.on_cpu:
        contact.checks(report, library, bench.dog, steps=2, bounds=bounds)
        return bench.lines
    for dtype in ("float32",) if given.quick else ("float32", "float64"):
        report.run(f"humanoid, cold, {dtype}", bench.cold, 65_536, dtype)
        report.run(f"humanoid, code, {dtype}", bench.code, dtype)
        if dtype == "float64":  # Newton's method, by a warp a world: slow
            report.run("humanoid, 1024, float64", bench.falls, 1024, dtype, 0.1)
            continue
        for worlds in (65_536,) if given.quick else (8_192, 65_536):
            report.run(f"humanoid, {worlds}, {dtype}", bench.falls, worlds, dtype)
    contact.checks(report, library, bench.dog, steps=10, bounds=bounds)
    quick = Humanoid(report, cupy, thorough=False)
    quick.start("cold", 512, "float32")  # falls are those of the second draw, as above
    for worlds in (65_536,) if given.quick else (8_192, 65_536):
        report.run(f"humanoid, sweeps alone, {worlds}", quick.falls, worlds, "float32")
    return bench.lines + quick.lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on-cpu", action="store_true", help="no device: the shim of the tests")
    parser.add_argument("--quick", action="store_true", help="one size, float32 alone")
    parser.add_argument("--only", choices=("quadruped", "humanoid"), help="one of the robots")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds for everything")
    parser.add_argument("-v", "--verbose", action="store_true", help="tracebacks of failures")
    given = parser.parse_args()
    report = Report(given.limit, verbose=given.verbose)
    compute_by_definition()
    if given.on_cpu:
        use_shim()
    import cupy

    library = {"cupy": (cupy.asarray, cupy.asnumpy, cupy.ndarray)}
    lines = quadruped(report, cupy, library, given) if given.only != "humanoid" else []
    lines += humanoid(report, cupy, library, given) if given.only != "quadruped" else []
    print("\n" + "\n".join(lines))
    return report.close()


def quadruped(report, cupy, library, given):
    """Everything about the quadruped; the lines of its table."""
    bench = Bench(report, cupy, on_cpu=given.on_cpu)
    bench.wait()
    if given.on_cpu:
        report.run("cold, float32", bench.cold, 33, "float32")
        contact.checks(report, library, bench.dog, steps=2)
        return bench.lines
    sizes, steps = (65_536,) if given.quick else (8_192, 65_536), 400
    report.run("cold, float32", bench.cold, sizes[0], "float32")
    report.run("code, float32", bench.code, "float32")
    for task in ("stand", "land"):
        for worlds in sizes:
            report.run(f"{task} {worlds}, float32", bench.speed, task, worlds, "float32", steps)
    report.run("creep, float32", bench.creep, 32, 60, "float32")
    if not given.quick:
        report.run("cold, float64", bench.cold, sizes[0], "float64")
        report.run("code, float64", bench.code, "float64")
        for task in ("stand", "land"):
            report.run(f"{task}, float64", bench.speed, task, sizes[-1], "float64", steps // 4)
        contact.checks(report, library, bench.dog, steps=10)
    return bench.lines


if __name__ == "__main__":
    sys.exit(main())
