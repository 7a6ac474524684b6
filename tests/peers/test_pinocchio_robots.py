"""Every robot of example-robot-data gives the same numbers here and in Pinocchio."""

import re
import warnings
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_agree
from support.example_robots import ROOT

from kinetree.algorithms import (
    aba,
    centroidal,
    crba,
    energy,
    jacobians,
    kinematics,
    reactions,
    rnea,
)
from kinetree.errors import ModelWarning, SingularError
from kinetree.interop import pinocchio as P
from kinetree.model import Model
from kinetree.spatial import Force

KNOWN = {
    "a1": "a1_description/urdf/a1.urdf",
    "alex": "alex_description/urdf/alex_nub_hands.urdf",
    "alex_psyonic_hands": "alex_description/urdf/alex_psyonic_hands.urdf",
    "alexander": "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
    "allegro_hand": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_kinova": "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "asr_twodof": "asr_twodof_description/urdf/TwoDofs.urdf",
    "b1_z1": "b1_description/urdf/b1-z1.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "bluevolta_bravo7": "bluevolta_description/urdf/bluevolta_bravo7_no_ee.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "borinot": "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "bravo7_gripper": "bravo7_description/urdf/bravo7_gripper.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "finger_edu": "finger_edu_description/robots/finger_edu.urdf",
    "g1": "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "hector": "hector_description/robots/quadrotor_base.urdf",
    "hextilt": "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
    "human": "human_description/robots/human.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "iris": "iris_description/robots/iris.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "quadruped": "quadruped_description/urdf/quadruped.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "romeo_laas_small": "romeo_description/urdf/romeo_laas_small.urdf",
    "romeo_small": "romeo_description/urdf/romeo_small.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "tiago_dual": "tiago_description/robots/tiago_dual.urdf",
    "tiago_pro": "tiago_pro_description/robots/tiago_pro.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
}
ROBOTS = {name: file for name, file in KNOWN.items() if (ROOT / file).exists()}  # they come and go

# Bodies whose published inertia no rigid body can have. A base has none when it is bolted down.
IMPOSSIBLE = {
    "romeo_laas_small": {
        "base_link",
        "LHipPitch_link",
        "RHipPitch_link",
        "LShoulderYaw_link",
        "LElbowYaw_link",
    },
    "romeo_small": {"RShoulderYawLink", "RElbowYawLink"},
}

# Frames that share their name with another body or frame.
RENAMED = {"b1_z1": {"gripperStator"}, "z1": {"gripperStator"}}

# Joints that move no inertia in the published model: forward dynamics has no answer.
SINGULAR = {
    "bravo7_gripper": "bravo_finger2_joint",
    "romeo": "RThumb3",
    "romeo_laas_small": "r_gripper_joint",
}


class Twin(NamedTuple):
    """A robot in both libraries, in the same state; vectors of theirs are called x, v, a."""

    ours: Model
    theirs: Any
    data: Any
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    x: np.ndarray
    v: np.ndarray
    a: np.ndarray
    A: np.ndarray  # v = A qd


def test_there_are_many_robots():
    assert len(ROBOTS) >= 40


@pytest.mark.covers(
    "RBDA Table 5.1",
    "RBDA Table 6.2",
    "RBDA Table 7.1",
    by=(rnea.inverse_dynamics, crba.joint_space_inertia, aba.forward_dynamics),
)
@pytest.mark.parametrize("name", ROBOTS)
def test_robot(name, rng):
    for floating in (False, True):
        theirs = _load(name, floating)
        if theirs.nv == 0:
            continue  # a drone without moving parts, bolted to the ground
        ours = _converted(name, floating, theirs)
        twin = _state(ours, theirs, rng)
        _check_frames(twin, rng)
        _check_energy_and_momentum(twin)
        _check_inverse_dynamics(twin, rng)
        _check_forward_dynamics(twin, SINGULAR.get(name))


def _load(name, floating):
    root = [pin.JointModelFreeFlyer()] if floating else []
    return pin.buildModelFromUrdf(str(ROOT / ROBOTS[name]), *root)


def _converted(name, floating, theirs):
    """Our model; the warnings on the way must be exactly those that the robot deserves."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = P.from_model(theirs)
    assert {w.category for w in caught} <= {ModelWarning}
    messages = [str(w.message) for w in caught]
    impossible = {m.split("'")[1] for m in messages if "is physically impossible" in m}
    expected = IMPOSSIBLE.get(name, set())
    assert impossible == (expected if floating else expected & set(ours.body_names[1:]))
    renamed = [re.findall("'([^']*)' to", m) for m in messages if "frames renamed" in m]
    assert {frame for frames in renamed for frame in frames} == RENAMED.get(name, set())
    assert len(messages) == len(impossible) + len(renamed)
    return ours


def _state(ours, theirs, rng):
    q, qd, qdd = ours.random_configuration(rng), *rng.standard_normal((2, ours.nv))
    x = P.to_q(ours, theirs, q)
    v, a = P.to_v(ours, theirs, q, qd), P.to_a(ours, theirs, q, qd, qdd)
    A = P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    return Twin(ours, theirs, theirs.createData(), q, qd, qdd, x, v, a, A)


def _check_frames(t, rng):
    pin.computeJointJacobians(t.theirs, t.data, t.x)
    pin.updateFramePlacements(t.theirs, t.data)
    references = {
        "world": pin.ReferenceFrame.WORLD,
        "body": pin.ReferenceFrame.LOCAL,
        "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    }
    shared = [n for n in (*t.ours.body_names, *t.ours.frame_names) if _only_frame(t.theirs, n)]
    for name in rng.permutation(shared)[:4]:
        frame, number = t.ours.frame(name), t.theirs.getFrameId(name)
        assert_agree(jacobians.frame_pose(t.ours, t.q, frame), t.data.oMf[number].homogeneous)
        for ours, theirs in references.items():
            J = pin.getFrameJacobian(t.theirs, t.data, number, theirs)
            assert_agree(
                jacobians.frame_jacobian(t.ours, t.q, frame, ours),
                np.roll(J, 3, axis=0) @ t.A,  # linear part first there
                scale=1.0,
            )


def _only_frame(theirs, name):
    return [f.name for f in theirs.frames].count(name) == 1


def _check_energy_and_momentum(t):
    kinetic = pin.computeKineticEnergy(t.theirs, t.data, t.x, t.v)
    potential = pin.computePotentialEnergy(t.theirs, t.data, t.x)
    weight = 9.81 * centroidal.total_mass(t.ours)  # potential energies of both signs may cancel
    assert_agree(energy.kinetic_energy(t.ours, t.q, t.qd), kinetic)
    assert_agree(energy.potential_energy(t.ours, t.q), potential, scale=weight)
    center = pin.centerOfMass(t.theirs, t.data, t.x)
    assert_agree(centroidal.center_of_mass(t.ours, t.q), center, scale=1.0)
    about_center = pin.computeCentroidalMomentum(t.theirs, t.data, t.x, t.v)
    h = centroidal.momentum(t.ours, t.q, t.qd)
    moment = h.angular - np.cross(center, h.linear)
    size = np.max(np.abs(h.to_array()))
    assert_agree(np.array([*h.linear, *moment]), about_center.vector, scale=size)


def _check_inverse_dynamics(t, rng):
    back = (t.ours, t.theirs, t.x)
    tau = pin.rnea(t.theirs, t.data, t.x, t.v, t.a)
    assert_agree(rnea.inverse_dynamics(t.ours, t.q, t.qd, t.qdd), P.from_tau(*back, tau))

    f_ext, f_local = _external_forces(t, rng)
    tau = pin.rnea(t.theirs, t.data, t.x, t.v, t.a, f_local)
    assert_agree(rnea.inverse_dynamics(t.ours, t.q, t.qd, t.qdd, f_ext), P.from_tau(*back, tau))
    f = reactions.joint_reactions(
        t.ours, t.q, t.qd, t.qdd, f_ext, joints=range(1, t.ours.body_count + 1)
    )
    assert_agree(f, np.array([[*x.angular, *x.linear] for x in t.data.f][1:]))

    assert_agree(crba.joint_space_inertia(t.ours, t.q), _inertia_matrix(t))


def _external_forces(t, rng):
    """The same forces on every body: in base coordinates for us, in body coordinates for them."""
    X_0 = kinematics.base_transforms(t.ours, kinematics.joint_transforms(t.ours, t.q)[0])
    ours, theirs = [None], pin.StdVec_Force()
    theirs.append(pin.Force.Zero())
    for i in range(1, t.theirs.njoints):
        f = Force.from_array(rng.standard_normal(6))
        local = X_0[i].star @ f
        ours.append(f)
        theirs.append(pin.Force(local.linear, local.angular))
    return ours, theirs


def _inertia_matrix(t):
    H = pin.crba(t.theirs, t.data, t.x)
    return t.A.T @ (np.triu(H) + np.triu(H, 1).T) @ t.A


def _check_forward_dynamics(t, singular):
    tau = rnea.inverse_dynamics(t.ours, t.q, t.qd, t.qdd)
    if singular:
        with pytest.raises(SingularError, match=f"joint '{singular}' moves no inertia"):
            aba.forward_dynamics(t.ours, t.q, t.qd, tau)
        return
    qdd = aba.forward_dynamics(t.ours, t.q, t.qd, tau)
    a = pin.aba(t.theirs, t.data, t.x, t.v, P.to_tau(t.ours, t.theirs, t.q, tau))
    condition = np.linalg.cond(_inertia_matrix(t))
    relative = max(1e-10, np.finfo(float).eps * condition)  # condition numbers reach 1e8 (iCub)
    assert_agree(qdd, t.qdd, relative=relative)
    assert_agree(P.to_a(t.ours, t.theirs, t.q, t.qd, qdd), a, relative=relative)
