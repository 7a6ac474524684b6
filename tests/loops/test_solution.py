"""kt.loops.solve: one interface to all methods, with a report."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.constraints import loop_motion
from kinetree.algorithms.closed.forces import forces_on_bodies, loop_joint_motion
from kinetree.errors import LoopError, ModelError, ShapeError, SingularError, UnknownNameError
from kinetree.joints import Fixed, Revolute, SphereInCylinder
from kinetree.loops.dynamics.solution import METHODS, ConstrainedMotion, solve
from kinetree.model import Body, Coupling, JointDynamics, Loop
from kinetree.samples import four_bar, ladder, random_closed_mechanism, ur5
from kinetree.spatial import Force, Inertia, Plucker

GENERAL = [m for m in METHODS if m != "closure"]
DENSE = ["null_space", "kkt"]


@pytest.mark.covers("RBDA 8.1", "RBDA 8.5", "RBDA 8.10", by=solve)
@pytest.mark.parametrize("method", GENERAL)
def test_the_four_bar_of_the_book(method):
    """n = 3, n^c = 5, r = 2: one freedom, three redundant constraints."""
    model, qd = four_bar(), np.zeros(3)
    found = solve(model, np.zeros(3), qd, np.array([1.0, 0, 0]), method=method)
    assert isinstance(found, ConstrainedMotion)
    assert (model.nv, len(found.lam), found.rank, found.redundancy) == (3, 5, 2, 3)
    assert found.method == method
    assert np.count_nonzero(found.unique) == 2
    expected = joint_space.solution(model, np.zeros(3), qd, np.array([1.0, 0, 0]))
    assert_close(found.qdd, expected.qdd, ulps=1e4)
    assert_close(found.tau_c, expected.tau_c, ulps=1e4)


@pytest.mark.covers("RBDA 8.4", by=solve)
@pytest.mark.parametrize("seed", range(6))
def test_loop_forces_as_external_forces_move_the_open_tree_alike(seed):
    rng = np.random.default_rng(seed)
    model, q, qd = random_closed_mechanism(rng)
    tau = rng.standard_normal(model.nv)
    found = solve(model, q, qd, tau)
    f_ext = np.zeros((model.body_count + 1, 6))
    for loop in model.loops:
        f = found.loop_forces[loop.name].force.to_array()
        f_ext[loop.successor] += f
        f_ext[loop.predecessor] -= f
    tree = model.replace(loops=())
    assert_close(solve(tree, q, qd, tau, f_ext[1:]).qdd, found.qdd, ulps=1e7)


@pytest.mark.covers("RBDA 8.4", by=solve)
@pytest.mark.parametrize("seed", range(3))
def test_loop_forces_come_to_tau_c_in_joint_space(seed):
    """``Kᵀ lam = Σ J_Lᵀ f``: the change that the forces make in inverse dynamics."""
    instant = random_instant(seed)
    model, q, qd = instant.model, instant.q, instant.qd
    found = solve(model, q, qd, instant.tau)
    forces = [Force.zero() for _ in range(model.body_count + 1)]
    for loop in model.loops:
        f = found.loop_forces[loop.name].constraint
        forces[loop.successor] = forces[loop.successor] + f
        forces[loop.predecessor] = forces[loop.predecessor] - f
    change = rnea.bias_force(model, q, qd) - rnea.bias_force(model, q, qd, [None, *forces[1:]])
    assert_close(found.tau_c, change, ulps=1e5)


@pytest.mark.parametrize("method", GENERAL)
def test_a_tree_is_a_mechanism_without_constraints(method, rng):
    model = ur5()
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, 6))
    found = solve(model, q, qd, tau, method=method)
    assert found.rank == found.redundancy == len(found.lam) == 0
    expected = aba.forward_dynamics(model, q, qd, tau)
    assert_close(found.qdd, expected, ulps=1e6)


@pytest.mark.covers("RBDA 8.6", "RBDA Table 8.2", "RBDA Table 8.3", by=forces_on_bodies)
@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("seed", range(4))
def test_forces_along_loop_joints_act_as_tau_a(method, seed):
    """``C - tau_a`` with ``tau_a = J_Lᵀ T_a tau``, also where ``T_a`` varies."""
    rng = np.random.default_rng(seed)
    model, q, qd = random_closed_mechanism(
        rng, kind="spatial", loops=1, loop_joints=(SphereInCylinder("z"), Revolute("x"))
    )
    loop, tau = model.loops[0], rng.standard_normal(model.nv)
    along = rng.standard_normal(loop.joint.nv)
    found = solve(model, q, qd, tau, method=method, loop_tau={"loop1": along})
    B = loop_joint_motion(model, q, qd).B
    assert_close(found.qdd, solve(model, q, qd, tau + B @ along).qdd, ulps=1e7)
    f = found.loop_forces["loop1"]
    assert np.abs((f.force - f.constraint).to_array()).max() > 0.01


@pytest.mark.parametrize("method", ["null_space", "kkt", "range_space", "sparse"])
def test_couplings_and_armature_are_honoured(method, rng):
    model = ladder(3)
    joints = (4, 1)  # the left bar of the second cell turns half as far as that of the first
    geared = model.replace(
        couplings=(Coupling("gear", *joints, (0.0, 0.5)),),
        dynamics={"left1_joint": JointDynamics(armature=0.3), "rung2_joint": JointDynamics(0.1)},
    )
    tau = np.random.default_rng(0).standard_normal(8)
    found = solve(geared, np.zeros(8), np.zeros(8), tau, method=method)
    assert found.rank == 6

    # All nine joints with the gear as one more constraint, K qdd = 0.
    tree = geared.uncoupled
    instant = joint_space.constraint(tree, np.zeros(9), np.zeros(9))
    gear = np.zeros((1, 9))
    gear[0, 3], gear[0, 0] = 1, -0.5
    K, k = np.concatenate([instant.implicit.K, gear]), np.append(instant.implicit.k, 0)
    H, C = crba.joint_space_inertia(tree, np.zeros(9)), rnea.bias_force(tree, *np.zeros((2, 9)))
    KKT = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
    forces = np.insert(tau, 3, 0.0)
    qdd = np.linalg.lstsq(KKT, np.concatenate([forces - C, k]), rcond=None)[0][:9]
    assert_close(found.qdd, np.delete(qdd, 3), ulps=1e7)
    expected = joint_space.solution(geared, np.zeros(8), np.zeros(8), tau)
    assert_close(found.qdd, expected.qdd, ulps=1e6)


@pytest.mark.parametrize("method", DENSE)
def test_bodies_may_be_massless_where_others_carry_them(method):
    """RBDA §8.3: any loop joint as a fixed one, behind a massless body on the joint itself."""
    model = four_bar()
    (pin,) = model.loops
    tip = Body("tip", pin.predecessor, pin.joint, pin.predecessor_placement, Inertia.zero(), "tip")
    fixed = Loop("pin", 4, pin.successor, Fixed(), Plucker.identity(), pin.successor_placement)
    universal = model.replace(bodies=(*model.bodies, tip), loops=(fixed,), postures=())
    tau, home = np.array([1.0, 0, 0]), np.zeros(3)
    X_J = loop_motion(model, pin, home, np.zeros(3)).X_J
    q = np.append(home, pin.joint.coordinates(X_J))
    found = solve(universal, q, np.zeros(4), np.append(tau, 0), method=method)
    assert_close(found.qdd[:3], solve(model, home, np.zeros(3), tau).qdd, ulps=1e4)
    with pytest.raises(SingularError):
        solve(universal, q, np.zeros(4), np.append(tau, 0), method="sparse")


@pytest.mark.covers("RBDA 8.5", by=solve)
def test_contradictions_of_redundant_constraints_are_reported(rng):
    """A hinge of a planar loop bent by a little: the residual shows it, and qdd hardly changes."""
    model, q, qd = random_closed_mechanism(11, kind="planar", bodies=4)
    loop, tau = model.loops[0], rng.standard_normal(model.nv)
    tilt = Plucker(np.array([[1, 0, 0], [0, 1, -1e-6], [0, 1e-6, 1]]), np.zeros(3))
    bent = model.replace(
        loops=(Loop(loop.name, loop.predecessor, loop.successor, loop.joint,
                    tilt @ loop.predecessor_placement, loop.successor_placement),),
    )  # fmt: skip
    straight = solve(model, q, qd, tau, stabilization=0.1)
    found = solve(bent, q, qd, tau, stabilization=0.1, rank=straight.rank)
    assert np.abs(straight.residual).max() < 1e-9
    assert 1e-7 < np.abs(found.residual).max() < 1e-2
    assert np.abs(found.qdd - straight.qdd).max() < 1e-4 * (1 + np.abs(straight.qdd).max())


@pytest.mark.parametrize("method", GENERAL)
def test_errors_decay_with_the_time_constant(method):
    """RBDA (8.22): the error's acceleration is -2/T rate - error/T², whatever the method."""
    model, T = four_bar(), 0.2
    q, qd = np.array([0, 1e-4, -2e-4]), np.array([0, 4e-4, 8e-4])
    found = solve(model, q, qd, np.zeros(3), method=method, stabilization=T)
    c = joint_space.constraint(model, q, qd, stabilization=T).implicit
    assert np.abs(c.K @ found.qdd - c.k).max() < 1e-9
    unstable = solve(model, q, qd, np.zeros(3), method=method)
    assert np.abs(found.qdd - unstable.qdd).max() > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_the_callers_rank_and_variables_change_nothing(seed):
    instant = random_instant(seed, kind="planar")
    model, state = instant.model, (instant.q, instant.qd, instant.tau)
    plain = solve(model, *state)
    for method in ("null_space", "kkt", "range_space"):
        assert_close(solve(model, *state, method=method, rank=plain.rank).qdd, plain.qdd, ulps=1e6)


# --- what is refused -----------------------------------------------------------------------------


def refused(error, message, model=None, q=None, qd=None, tau=None, **options):
    model = four_bar() if model is None else model
    q, qd, tau = (np.zeros(3) if x is None else x for x in (q, qd, tau))
    with pytest.raises(error, match=message):
        solve(model, q, qd, tau, **options)


def test_open_loops_are_rejected():
    refused(ShapeError, "q does not close loop 'pin'", q=np.array([0.1, 0, 0]))
    refused(ShapeError, "qd tears loop 'pin' apart", qd=np.array([1.0, 0, 0]))


def test_unknown_names_are_rejected():
    refused(UnknownNameError, "no method 'nullspace'.*null_space", method="nullspace")
    refused(UnknownNameError, "no loop joint 'pun'.*pin", loop_tau={"pun": 1.0})
    refused(UnknownNameError, "numbered 0 to 2, got 7", independent=[7])


def test_options_of_other_methods_are_rejected():
    refused(LoopError, "method 'kkt' does not take independent; 'null_space' does",
            method="kkt", independent=[0])  # fmt: skip
    refused(LoopError, "method 'sparse' does not take rank", method="sparse", rank=2)
    refused(LoopError, "method 'closure' needs a loop-closure function", method="closure")


def test_impossible_numbers_are_rejected():
    refused(ShapeError, "rank must be an integer from 0 to 3", rank=4)
    refused(ShapeError, "time constant above 0 s", stabilization=0.0)
    refused(ShapeError, r"loop_tau\['pin'\] must have shape \(1,\)", loop_tau={"pin": [1.0, 2.0]})
    refused(ShapeError, "takes one sample of numbers", q=np.zeros((2, 3)))


def test_methods_say_what_they_have_no_place_for():
    armed = four_bar().replace(dynamics={"crank_joint": JointDynamics(armature=1.0)})
    refused(ModelError, "does not support the armature", model=armed, method="articulated")
