"""Jacobian rates, kinematic Hessians, Coriolis matrix, centroidal quantities against Pinocchio.

The velocity variables of these robots differ from Pinocchio's by a constant matrix ``A``: theirs
are ``A`` times ours, the rows of a free-flyer in another order. Talos is computed by the text of
the algorithms, the others by compiled code.
"""

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from support.example_robots import ROBOTS, twins

import kinetree as kt
from kinetree.interop import pinocchio as P
from kinetree.spatial.dense import swap_matrix_order

FILES = ROBOTS | {"solo12": "solo_description/robots/solo12.urdf"}
# As they are used, arms bolted down and walkers not; one of each also the other way.
MOUNTED = [
    ("ur5", "bolted"), ("panda", "bolted"), ("panda", "floating"), ("anymal", "floating"),
    ("solo12", "floating"), ("talos", "floating"), ("talos", "bolted"),
]  # fmt: skip
REFERENCES = {
    "world": pin.ReferenceFrame.WORLD,
    "body": pin.ReferenceFrame.LOCAL,
    "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


class Twin(NamedTuple):
    """A robot in both libraries, in the same state; vectors of theirs are called x, v, a."""

    ours: kt.Model
    theirs: Any
    data: Any
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    x: np.ndarray
    v: np.ndarray
    a: np.ndarray
    A: np.ndarray


@pytest.fixture(params=MOUNTED, ids="-".join)
def twin(request, rng):
    name, base = request.param
    ours, theirs = twins(FILES[name], base == "floating")
    q, (qd, qdd) = ours.random_configuration(rng), rng.standard_normal((2, ours.nv))
    x = P.to_q(ours, theirs, q)
    v, a = P.to_v(ours, theirs, q, qd), P.to_a(ours, theirs, q, qd, qdd)
    A = P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    if name == "talos":
        q = q + 0j  # complex numbers take the way through the text
    return Twin(ours, theirs, theirs.createData(), q, qd, qdd, x, v, a, A)


def agree(actual, expected, scale=0.0):
    """To 1e-10 of the largest number, or of ``scale`` if that is larger."""
    size = max(np.max(np.abs(expected)), scale, 1e-300)
    assert actual.shape == expected.shape
    assert np.max(np.abs(actual - expected)) <= 1e-10 * float(size)


def angular_first(x):
    return np.roll(x, 3, axis=0)


def deepest(t):
    """The body at the end of the longest chain, and its joint there."""
    i = max(range(1, t.ours.body_count + 1), key=lambda i: len(t.ours.support[i]))
    return t.ours.body_names[i], t.theirs.getJointId(t.ours.joint_names[i - 1])


@pytest.mark.covers("6-D Guide 2: Jacobians", by=(kt.jacobian, kt.jacobian_rate, kt.hessian))
def test_jacobians_their_rates_and_derivatives(twin):
    t = twin
    body, joint = deepest(t)
    pin.computeJointJacobiansTimeVariation(t.theirs, t.data, t.x, t.v)
    pin.computeJointJacobians(t.theirs, t.data, t.x)
    pin.computeJointKinematicHessians(t.theirs, t.data)
    for frame, theirs in REFERENCES.items():
        J = pin.getJointJacobian(t.theirs, t.data, joint, theirs)
        agree(kt.jacobian(t.ours, t.q, body, frame=frame), angular_first(J) @ t.A)
        Jd = pin.getJointJacobianTimeVariation(t.theirs, t.data, joint, theirs)
        expected = angular_first(Jd) @ t.A
        rate = kt.jacobian_rate(t.ours, t.q, t.qd, body, frame=frame)
        agree(rate, expected, scale=1.0)
        kind = "classical" if frame == "aligned" else "spatial"
        bias = kt.bias_acceleration(t.ours, t.q, t.qd, body, frame=frame, kind=kind)
        agree(bias, expected @ t.qd, scale=1.0)
        H = pin.getJointKinematicHessian(t.theirs, t.data, joint, theirs)
        H = H.ravel().reshape(H.shape, order="F")  # its Python labels the axes in the wrong order
        in_our_order = np.einsum("ijk,jl,km->ilm", angular_first(H), t.A, t.A)
        agree(kt.hessian(t.ours, t.q, body, frame=frame), in_our_order, scale=1.0)


@pytest.mark.covers("RBDA 2.11", by=kt.acceleration)
def test_velocities_and_accelerations(twin):
    t = twin
    body, joint = deepest(t)
    pin.forwardKinematics(t.theirs, t.data, t.x, t.v, t.a)
    state = (t.ours, t.q, t.qd, t.qdd, body)
    for frame, theirs in REFERENCES.items():
        v = pin.getVelocity(t.theirs, t.data, joint, theirs).vector
        agree(kt.velocity(*state[:3], body, frame=frame), np.roll(v, 3))
        a = pin.getAcceleration(t.theirs, t.data, joint, theirs).vector
        agree(kt.acceleration(*state, frame=frame), np.roll(a, 3))
        a = pin.getClassicalAcceleration(t.theirs, t.data, joint, theirs).vector
        agree(kt.acceleration(*state, frame=frame, kind="classical"), np.roll(a, 3))


@pytest.mark.covers("Lynch & Park 9.4", by=kt.coriolis_matrix)
def test_coriolis_matrix(twin):
    t = twin
    C = pin.computeCoriolisMatrix(t.theirs, t.data, t.x, t.v)
    agree(kt.coriolis_matrix(t.ours, t.q, t.qd), t.A.T @ C @ t.A)


@pytest.mark.covers("RBDA 2.12", by=(kt.centroidal_momentum_matrix, kt.centroidal_momentum_rate))
def test_centroidal_momentum_and_inertia(twin):
    t = twin
    pin.ccrba(t.theirs, t.data, t.x, t.v)
    A_G = angular_first(t.data.Ag) @ t.A
    size = np.max(np.abs(A_G))
    agree(kt.centroidal_momentum_matrix(t.ours, t.q), A_G)
    agree(kt.centroidal_momentum(t.ours, t.q, t.qd), np.roll(t.data.hg.vector, 3), scale=size)
    agree(kt.centroidal_inertia(t.ours, t.q), swap_matrix_order(t.data.Ig.matrix()))
    pin.dccrba(t.theirs, t.data, t.x, t.v)
    dA = angular_first(t.data.dAg) @ t.A
    agree(kt.centroidal_momentum_matrix_rate(t.ours, t.q, t.qd), dA, scale=size)
    bias = kt.centroidal_momentum_bias(t.ours, t.q, t.qd)
    agree(bias, dA @ t.qd, scale=np.max(np.abs(dA)))
    pin.computeCentroidalMomentumTimeVariation(t.theirs, t.data, t.x, t.v, t.a)
    rate = kt.centroidal_momentum_rate(t.ours, t.q, t.qd, t.qdd)
    agree(rate, np.roll(t.data.dhg.vector, 3), scale=size)


@pytest.mark.covers("RBDA 2.12", by=kt.center_of_mass_jacobian)
def test_center_of_mass(twin):
    t = twin
    pin.centerOfMass(t.theirs, t.data, t.x, t.v, t.a)
    agree(kt.center_of_mass(t.ours, t.q), t.data.com[0], scale=1.0)
    agree(kt.center_of_mass_velocity(t.ours, t.q, t.qd), t.data.vcom[0], scale=1.0)
    a = kt.center_of_mass_acceleration(t.ours, t.q, t.qd, t.qdd)
    agree(a, t.data.acom[0], scale=1.0)
    J = pin.jacobianCenterOfMass(t.theirs, t.data, t.x)
    agree(kt.center_of_mass_jacobian(t.ours, t.q), J @ t.A)
