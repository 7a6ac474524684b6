"""Time the plain-Python reference against Pinocchio, on the same robots and states.

The reference exists to be read and to be right; this says what that costs, and checks in the same
run that the answers agree. Ratios are medians over repetitions with their spread.
"""

import platform
import time
import warnings
from importlib.metadata import distribution

import numpy as np
import pinocchio as pin

import kinetree as kt

ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "ANYmal, floating": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "Talos, floating": ("talos_data/robots/talos_reduced.urdf", True),
}


def main():
    print(f"kinetree {kt.__version__}, Pinocchio {pin.__version__}, {platform.machine()}")
    print(
        f"{'robot':18}{'function':18}{'kinetree':>12}{'Pinocchio':>12}{'ratio':>8}  spread  error"
    )
    for name, (path, floating) in ROBOTS.items():
        root = [pin.JointModelFreeFlyer()] if floating else []
        compare(name, pin.buildModelFromUrdf(robot_file(path), *root))


def compare(name, theirs):
    """One line per function for one robot."""
    P = kt.interop.pinocchio
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)  # damping, which neither side uses
        mine = P.from_model(theirs)
    rng = np.random.default_rng(0)
    q = mine.random_configuration(rng)
    qd, x = rng.standard_normal((2, mine.nv))
    data = theirs.createData()
    pq, pv = P.to_q(mine, theirs, q), P.to_v(mine, theirs, q, qd)
    pa, pt = P.to_a(mine, theirs, q, qd, x), P.to_tau(mine, theirs, q, x)
    report(
        f"{name:18}inverse_dynamics  ",
        lambda: kt.inverse_dynamics(mine, q, qd, x),
        lambda: pin.rnea(theirs, data, pq, pv, pa),
        lambda tau: P.from_tau(mine, theirs, pq, tau),
    )
    report(
        f"{name:18}forward_dynamics  ",
        lambda: kt.forward_dynamics(mine, q, qd, x),
        lambda: pin.aba(theirs, data, pq, pv, pt),
        lambda a: P.from_a(mine, theirs, pq, pv, a),
    )


def report(title, ours, peer, convert):
    """Times of both, their ratio with its spread, and how far the answers are apart."""
    reference = convert(peer())
    error = np.max(np.abs(ours() - reference)) / np.max(np.abs(reference))
    a, b = repeat(ours, 20), repeat(peer, 2000)
    ratio, spread = np.median(a / b), np.ptp(a / b) / np.median(a / b)
    print(
        f"{title}{1e6 * np.median(a):9.0f} µs{1e6 * np.median(b):9.2f} µs"
        f"{ratio:8.0f}{100 * spread:6.0f} %  {error:.0e}"
    )


def robot_file(path):
    """A robot description of example-robot-data, which ships data only."""
    files = distribution("example-robot-data").files or []
    match = next(f for f in files if str(f).endswith(f"robots/{path}"))
    return str(match.locate())


def repeat(function, calls, times=7):
    """Seconds per call, several times."""
    function()
    result = []
    for _ in range(times):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        result.append((time.perf_counter() - start) / calls)
    return np.array(result)


if __name__ == "__main__":
    main()
