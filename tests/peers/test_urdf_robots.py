"""Every URDF file of example-robot-data gives the same numbers here and in Pinocchio."""

import warnings
from collections import Counter

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_agree
from support.example_robots import ROOT

import kinetree as kt
from kinetree.algorithms import aba, crba, jacobians, rnea
from kinetree.errors import LoadError, SingularError
from kinetree.interop import pinocchio as P
from kinetree.loaders import loads, read
from kinetree.loaders.report import EFFECTS, in_lines, kind_of
from kinetree.writers.urdf import to_urdf

KNOWN_AS_BROKEN = {
    "falcon_description/urdf/falcon.urdf": r":182: <child link='Z_propeller'>: there is no link",
    "ur_description/urdf/ur3.urdf": r":6: <robot>: the robot has no <link>",
}
FILES = sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*.urdf"))
BROKEN = {name: why for name, why in KNOWN_AS_BROKEN.items() if name in FILES}  # robots come and go
ROBOTS = [name for name in FILES if name not in BROKEN]


def test_there_are_many_files():
    assert len(ROBOTS) >= 60
    assert BROKEN


@pytest.mark.parametrize("name", BROKEN)
def test_neither_reads_a_broken_file(name):
    with pytest.raises(LoadError, match=BROKEN[name]):
        read(ROOT / name)
    with pytest.raises(ValueError, match="does not contain a valid URDF model"):
        pin.buildModelFromUrdf(str(ROOT / name))


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    """The name of a file and its robot, bolted down and floating: most of the time is reading."""
    return request.param, [read(ROOT / request.param, floating_base=f).model for f in (False, True)]


def test_robot(robot, rng):
    name, models = robot
    for floating, model in enumerate(models):
        ours = _without_couplings(model)
        theirs = _theirs(name, floating)
        assert (ours.nv, len(ours.bodies)) == (theirs.nv, theirs.njoints - 1)
        _check_limits(ours, theirs)
        if ours.nv:
            _check_dynamics(ours, theirs, rng)


def _without_couplings(model):
    """Pinocchio drops them. Every copy of a model reports impossible inertias again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if not model.strict else "error")
        return model.replace(couplings=())


def _theirs(name, floating):
    root = [pin.JointModelFreeFlyer()] if floating else []
    return pin.buildModelFromUrdf(str(ROOT / name), *root)


def _check_limits(ours, theirs):
    for body in ours.bodies:
        number = theirs.getJointId(body.joint_name)
        if body.joint.nq == 1 == theirs.nqs[number] and body.limits and body.limits.lower:
            at = theirs.idx_qs[number]
            assert body.limits.lower == (theirs.lowerPositionLimit[at],)
            assert body.limits.upper == (theirs.upperPositionLimit[at],)
        if body.joint.nv == 1:
            at, passive = theirs.idx_vs[number], body.dynamics
            assert (passive.damping if passive else (0.0,)) == (theirs.damping[at],)
            assert (passive.friction if passive else (0.0,)) == (theirs.upperDryFrictionLimit[at],)


def _check_dynamics(ours, theirs, rng):
    data = theirs.createData()
    q, qd, qdd = ours.random_configuration(rng), *rng.standard_normal((2, ours.nv))
    x, v, a = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, qd), P.to_a(ours, theirs, q, qd, qdd)
    A = P.to_v(ours, theirs, q, np.eye(ours.nv)).T

    tau = rnea.inverse_dynamics(ours, q, qd, qdd)
    assert_agree(P.to_tau(ours, theirs, q, tau), pin.rnea(theirs, data, x, v, a))
    H = pin.crba(theirs, data, x)
    H = A.T @ (np.triu(H) + np.triu(H, 1).T) @ A
    assert_agree(crba.joint_space_inertia(ours, q), H)
    try:
        ours_qdd = aba.forward_dynamics(ours, q, qd, tau)
    except SingularError:
        assert np.linalg.cond(H) > 1e12  # a joint that moves no inertia
    else:
        relative = max(1e-10, np.finfo(float).eps * np.linalg.cond(H))
        theirs_a = pin.aba(theirs, data, x, v, P.to_tau(ours, theirs, q, tau))
        assert_agree(P.to_a(ours, theirs, q, qd, ours_qdd), theirs_a, relative=relative)
    _check_frames(ours, theirs, data, q, x, A, rng)


def _check_frames(ours, theirs, data, q, x, A, rng):
    pin.computeJointJacobians(theirs, data, x)
    pin.updateFramePlacements(theirs, data)
    bodies = {f.name: k for k, f in enumerate(theirs.frames) if f.type == pin.FrameType.BODY}
    names = {*ours.body_names, *ours.frame_names}
    assert set(bodies) <= names, "a link is lost"
    for name in rng.permutation(sorted(bodies))[:5]:
        frame, number = ours.frame(name), bodies[name]
        assert_agree(jacobians.frame_pose(ours, q, frame), data.oMf[number].homogeneous)
        J = pin.getFrameJacobian(theirs, data, number, pin.ReferenceFrame.LOCAL)
        assert_agree(
            jacobians.frame_jacobian(ours, q, frame, "body"), np.roll(J, 3, axis=0) @ A, scale=1
        )


def test_round_trip_keeps_the_dynamics(robot, rng):
    _, (_, model) = robot
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # impossible inertias are still there
        again = loads(to_urdf(model), folders=[ROOT])
        q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    assert again.joint_names == model.joint_names
    assert sorted(again.frame_names) == sorted(model.frame_names)
    for what in ("couplings", "actuators"):
        assert getattr(again, what) == getattr(model, what)
    assert Counter(g.shape for g in again.geometry) == Counter(g.shape for g in model.geometry)
    for function in (_inertia, _bias):
        assert_agree(function(again, q, qd), function(model, q, qd), relative=1e-12)


def _bias(model, q, qd):
    return rnea.inverse_dynamics(model, q, qd, np.zeros(model.nv))


def _inertia(model, q, qd):
    return crba.joint_space_inertia(model, q)


@pytest.mark.parametrize(
    "name",
    [
        "baxter_description/urdf/baxter.urdf",
        "panda_description/urdf/panda.urdf",
        "talos_data/robots/talos_full_v2.urdf",
        "tiago_pro_description/robots/tiago_pro.urdf",
    ],
)
def test_mimic_joints_move_as_an_explicit_coupling_says(name, rng):
    """Pinocchio drops them, so its inertia matrix is reduced by hand: qdd = G ydd."""
    model, theirs = read(ROOT / name).model, _theirs(name, False)
    assert model.couplings
    q, (qd, tau) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    G, full = _explicit(model), model.uncoupled
    x, v = P.to_q(model, theirs, q), P.to_v(model, theirs, q, qd)
    A = P.to_v(full, theirs, model.expand(q), np.eye(full.nv)).T
    data = theirs.createData()
    H = pin.crba(theirs, data, x)
    H = G.T @ A.T @ (np.triu(H) + np.triu(H, 1).T) @ A @ G
    C = P.from_tau(model, theirs, x, pin.nonLinearEffects(theirs, data, x, v))
    relative = max(1e-10, 10 * np.finfo(float).eps * np.linalg.cond(H))
    assert_agree(kt.mass_matrix(model, q), H)
    assert_agree(kt.bias_force(model, q, qd), C)
    expected = np.linalg.solve(H, tau - C)
    assert_agree(kt.forward_dynamics(model, q, qd, tau), expected, relative=relative)


def _explicit(model):
    """G with qd = G yd."""
    n = model.body_count
    assert model.uncoupled.nv == n  # so that the numbers of joints are columns
    G = np.eye(n)
    for c in model.couplings:
        G[c.joint - 1] = c.coefficients[1] * np.eye(n)[c.source - 1]
    return np.delete(G, [c.joint - 1 for c in model.couplings], axis=1)


@pytest.mark.parametrize("name", ["baxter_description/urdf/baxter.urdf",
                                  "panda_description/urdf/panda.urdf"])  # fmt: skip
def test_mimic_joints_are_those_of_pinocchio(name, rng):
    """Which has them too: the same variables, the same numbers."""
    model = read(ROOT / name).model
    theirs = pin.buildModelFromUrdf(str(ROOT / name), mimic=True)
    assert model.nv == theirs.nv < model.uncoupled.nv
    q, (qd, qdd) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    x, v = P.to_q(model, theirs, q), P.to_v(model, theirs, q, qd)
    a = P.to_a(model, theirs, q, qd, qdd)
    tau = P.from_tau(model, theirs, x, pin.rnea(theirs, theirs.createData(), x, v, a))
    assert_agree(kt.inverse_dynamics(model, q, qd, qdd), tau)
    A = P.to_v(model, theirs, q, np.eye(model.nv)).T
    H = pin.crba(theirs, theirs.createData(), x)
    assert_agree(kt.mass_matrix(model, q), A.T @ (np.triu(H) + np.triu(H, 1).T) @ A)


_INERTIA = "inertia of link: physically impossible"
MOTION = {
    "pr2_description/urdf/pr2.urdf": {
        _INERTIA, "<gazebo reference=>: settings of a simulator: turnGravityOff",
    },
    "panda_description/urdf/panda.urdf": {
        f"attribute {name!r} of <dynamics>: kinetree does not use it"
        for name in ("D", "K", "mu_coulomb", "mu_viscous")
    },
    "go2_description/urdf/go2.urdf": set(),
    "ur_description/urdf/ur5_robot.urdf": set(),
    "talos_data/robots/talos_reduced.urdf": set(),
    "anymal_b_simple_description/robots/anymal.urdf": {_INERTIA},
    "kinova_description/robots/kinova.urdf": {
        "lower and upper limit: a continuous joint has none"
    },
    "alex_description/urdf/alex_psyonic_hands.urdf": {
        _INERTIA, "<mimic joint=>: there is no joint to follow",
    },
    "tiago_description/robots/tiago.urdf": {_INERTIA},
    "cassie_description/robots/cassie.sdf": {_INERTIA},
    "icub_description/robots/icub.urdf": set(),
    "quadruped_description/urdf/quadruped.urdf": {
        "lower and upper limit: a revolute joint needs them; it is unlimited"
    },
}  # fmt: skip
"""What is said about the motion of robots of different makers, read by eye; pr2 has 200 notices."""


@pytest.mark.parametrize("name", MOTION)
def test_nothing_that_changes_motion_is_buried(name):
    if not (ROOT / name).exists():
        return  # robots come and go
    notices = read(ROOT / name).notices
    order = [EFFECTS.index(notice.effect) for notice in notices]
    assert order == sorted(order)
    kinds = [kind_of(n.what, n.why) for n in notices if n.effect == "motion"]
    said = {f"{what.strip()}: {' '.join(why.split())}" for what, why in kinds}
    assert {text.partition(", kept as")[0] for text in said} == MOTION[name]
    lines = in_lines(notices)
    assert all(str(notices[0].file) in line for line in lines[: len(set(kinds))])
    assert len(lines) <= max(10, len(set(kinds))) + 2
