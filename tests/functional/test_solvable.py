"""What is singular in every configuration is refused before it is compiled."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.functional.prepare import bind, prepare, require_solvable


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


def hinges(*joints):
    """A body of full inertia behind joints through one point, and nothing between them."""
    builder, on = kt.ModelBuilder("hinges"), None
    for k, joint in enumerate(joints):
        inertia = kt.shapes.box(0.1, 0.2, 0.3, mass=1.0) if k == len(joints) - 1 else None
        builder.body(f"b{k}", on=on, joint=joint, inertia=inertia)
        on = f"b{k}"
    return builder.build()


CHAINS = {
    "orthogonal": hinges(kt.Revolute("x"), kt.Revolute("y"), kt.Revolute("z")),
    "skew": hinges(*(kt.Revolute(a) for a in [(1, 2, 3), (0.3, -1, 0.5), (2, 0.1, -1)])),
    "ball": hinges(kt.Spherical()),
    "helical": hinges(kt.Helical("z", pitch=0.1), *map(kt.Revolute, "xyz")),
}


@pytest.mark.parametrize("function", [kt.forward_dynamics, kt.inverse_mass_matrix])
@pytest.mark.parametrize("model", CHAINS.values(), ids=CHAINS)
def test_parameters_that_make_joints_dependent_are_found_out_when_the_code_runs(
    model, function, rng
):
    """Pivots are then rounding errors, some of them large: accelerations of 1e17 would come out."""
    last = model.body_names[-1]
    f = kt.compile(function, model, parameters=f"inertia:{last}")
    for _ in range(20):
        state = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
        state = state if function is kt.forward_dynamics else state[:1]
        point = kt.shapes.point(mass=1.0, at=rng.standard_normal(3))
        with pytest.raises(kt.SingularError, match="can move together without moving any inertia"):
            f(*state, point.parameters())
        full = kt.shapes.sphere(0.1, mass=0.5).parameters()
        assert np.all(np.isfinite(f(*state, full)))


def test_point_masses_that_every_joint_moves_are_no_special_case(rng):
    """No sample of the batch is computed twice."""
    model = kt.samples.double_pendulum()
    names = tuple(f"inertia:{b}" for b in model.body_names[1:])
    points = [kt.shapes.point(mass=1.0, at=(0, 0, -0.5)).parameters()] * 2
    call = bind(kt.forward_dynamics, (model, *np.zeros((3, 2))), {})
    kernel = prepare(kt.forward_dynamics, call, names).kernel
    state = rng.standard_normal((3, 50, 2))
    kernel.call(*state, *points)
    assert kernel.variant("float64", True).status.value == 0
