"""A robot from Pinocchio: the same mechanism, the same numbers. Needs ``pip install pin``."""

import numpy as np
import pinocchio as pin

import kinetree as kt

P = kt.interop.pinocchio
theirs = pin.buildSampleModelHumanoid()
mine = P.from_model(theirs)
print(mine)

rng = np.random.default_rng(0)
q = mine.random_configuration(rng)
qd, qdd = rng.standard_normal((2, mine.nv))

tau = kt.inverse_dynamics(mine, q, qd, qdd)
reference = pin.rnea(
    theirs,
    theirs.createData(),
    P.to_q(mine, theirs, q),
    P.to_v(mine, theirs, q, qd),
    P.to_a(mine, theirs, q, qd, qdd),
)
error = np.max(np.abs(P.to_tau(mine, theirs, q, tau) - reference)) / np.max(np.abs(reference))
print(f"inverse dynamics agrees to {error:.1e}")
assert error < 1e-12
