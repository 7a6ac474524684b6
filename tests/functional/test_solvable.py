"""What is singular in every configuration is refused before it is compiled."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.functional.solvable import require_solvable


def wrist(links=None):
    """A point mass on three hinges through one point."""
    builder, on = kt.ModelBuilder("wrist"), None
    for k, axis in enumerate([(1, 2, 3), (-2, 1, 0.5), (0.3, -1, 2)]):
        inertia = kt.shapes.point(mass=1.0, at=(0.3, 0.2, 0.1)) if k == 2 else links
        builder.body(f"b{k}", on=on, joint=kt.Revolute(axis), inertia=inertia)
        on = f"b{k}"
    return builder.build()


Q, ZERO, ONE = np.array([0.3, -0.5, 0.7]), np.zeros(3), np.ones(3)
CALLS = {
    "derivative": lambda m: kt.differentiate(kt.forward_dynamics, wrt="q")(m, Q, ZERO, ONE),
    "second": lambda m: kt.differentiate(kt.forward_dynamics, wrt="tau", order=2)(m, Q, ZERO, ONE),
    "rate": lambda m: kt.jvp(kt.forward_dynamics, "q")(m, Q, ZERO, ONE, tangents=ONE),
    "gradient": lambda m: kt.vjp(kt.inverse_mass_matrix, "q")(m, Q, cotangent=np.eye(3)),
    "compiled": lambda m: kt.compile(kt.forward_dynamics, m)(Q, ZERO, ONE),
    "with gravity": lambda m: kt.compile(kt.forward_dynamics, m, parameters="gravity")(
        Q, ZERO, ONE, ZERO
    ),
    "linearised": lambda m: kt.linearize(m, Q, ZERO, ONE),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_joints_that_move_no_inertia_together_are_named(call):
    with pytest.raises(kt.SingularError, match="joints 'b0_joint', 'b1_joint', 'b2_joint' can"):
        call(wrist())


def test_parameters_may_make_it_regular():
    full = kt.shapes.sphere(0.1, mass=0.5)
    names = ("inertia:b0", "inertia:b1")
    f = kt.compile(kt.forward_dynamics, wrist(), parameters=names)
    found = f(Q, ZERO, ONE, full.parameters(), full.parameters())
    assert np.allclose(found, kt.forward_dynamics(wrist(full), Q, ZERO, ONE))
    require_solvable("forward_dynamics", wrist(), ("inertia",))
    require_solvable("forward_dynamics", wrist(), ("placement:b1_joint", "placement:b2_joint"))
    require_solvable("inverse_dynamics", wrist())
    with pytest.raises(kt.SingularError, match="'b0_joint'"):
        require_solvable("forward_dynamics", wrist(), ("mass:b2",))
