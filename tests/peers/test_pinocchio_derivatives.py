"""First derivatives, and products with them, of real robots: Pinocchio's and ours.

Complex arrays take the definition of the operations instead of machine code, which other tests
compare: compiling the derivatives of large robots takes long.
"""

import numpy as np
import pinocchio as pin
import pytest
from support.example_robots import ROBOTS, twins

import kinetree as kt
from kinetree.interop import pinocchio as P

FILES = ROBOTS | {"talos": "talos_data/robots/talos_reduced.urdf"}


def agree(ours, theirs):
    assert np.max(np.abs(np.real(ours) - theirs)) <= 1e-10 * np.max(np.abs(theirs))


def in_base(m, q, f_local):
    """Forces on the bodies, given in their own coordinates, in those of the base."""
    forces = []
    for name, f in zip(m.body_names[1:], f_local, strict=True):
        T = kt.pose(m, q, name)
        moment, force = T[:3, :3] @ f[:3], T[:3, :3] @ f[3:]
        forces.append(np.concatenate([moment + np.cross(T[:3, 3], force), force]))
    return np.stack(forces)


@kt.kernel
def forces_for(m, q, qd, qdd, f_local: ("body_count", 6)):  # noqa: F821
    return kt.inverse_dynamics(m, q, qd, qdd, in_base(m, q, f_local))


@kt.kernel
def accelerations_for(m, q, qd, tau, f_local: ("body_count", 6)):  # noqa: F821
    return kt.forward_dynamics(m, q, qd, tau, in_base(m, q, f_local))


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_products_with_external_forces(name, floating, rng):
    """Pinocchio's external forces turn with their bodies; a kernel makes ours do so, too."""
    ours, theirs = twins(FILES[name], floating)
    q, (qd, qdd, dq, dqd, w) = ours.random_configuration(rng), rng.standard_normal((5, ours.nv))
    x, A = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    f = rng.standard_normal((ours.body_count, 6))
    by_name = dict(zip(ours.joint_names, f, strict=True))
    fext = [pin.Force(np.zeros(6))]
    fext += [pin.Force(by_name[n][3:], by_name[n][:3]) for n in list(theirs.names)[1:]]
    data = theirs.createData()
    a, b, _ = pin.computeRNEADerivatives(theirs, data, x, A @ qd, A @ qdd, fext)
    a, b = A.T @ a @ A, A.T @ b @ A
    rate = kt.jvp(forces_for, ("q", "qd"))(ours, q + 0j, qd, qdd, f, tangents=(dq, dqd))
    agree(rate, a @ dq + b @ dqd)
    g_q, g_qd = kt.vjp(forces_for, ("q", "qd"))(ours, q + 0j, qd, qdd, f, cotangent=w)
    agree(g_q, w @ a)
    agree(g_qd, w @ b)
    if name == "talos":
        return
    tau = kt.inverse_dynamics(ours, q, qd, qdd, np.real(in_base(ours, q, f)))
    a, b, _ = pin.computeABADerivatives(
        theirs, data, x, A @ qd, P.to_tau(ours, theirs, q, tau), fext
    )
    products = (dq @ (np.linalg.solve(A, a) @ A).T, dqd @ (np.linalg.solve(A, b) @ A).T)
    rate = kt.jvp(accelerations_for, ("q", "qd"))(ours, q + 0j, qd, tau, f, tangents=(dq, dqd))
    agree(rate, sum(products))


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", ["ur5", "panda", "anymal"])
def test_derivatives_of_the_dynamics(name, floating, rng):
    ours, theirs = twins(FILES[name], floating)
    q, (qd, qdd) = ours.random_configuration(rng), rng.standard_normal((2, ours.nv))
    x, A = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    data = theirs.createData()
    a, b, H = pin.computeRNEADerivatives(theirs, data, x, A @ qd, A @ qdd)
    d = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd", "qdd"))(ours, q + 0j, qd, qdd)
    for found, exact in zip(d, (a, b, np.triu(H) + np.triu(H, 1).T), strict=True):
        agree(found, A.T @ exact @ A)
    tau = kt.inverse_dynamics(ours, q, qd, qdd)
    exact = pin.computeABADerivatives(theirs, data, x, A @ qd, P.to_tau(ours, theirs, q, tau))
    d = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd", "tau"))(ours, q + 0j, qd, tau)
    for found, derivative in zip(d, exact, strict=True):
        agree(found, np.linalg.solve(A, derivative) @ A)
