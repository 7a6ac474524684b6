"""States of bodies from and to those of joints — tutorial, sections 5.1 and 6."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.special_joints import Slot
from support.textbook import figure_1_tree

import kinetree as kt
from kinetree.errors import UnreachableError
from kinetree.joints import REPRESENTATIVES, Euler, Exponential
from kinetree.samples import random_inertia, random_placement, random_tree
from kinetree.spatial.rotation import rotation_exp


@pytest.mark.covers("Tutorial 5", by=(kt.maximal_state, kt.generalized_state))
@pytest.mark.parametrize("group", range(6))
def test_every_joint_comes_back_from_the_bodies(group, rng):
    """TU-36: q, qd, tau to bodies and back, batched; one body on each kind of joint."""
    builder = kt.ModelBuilder("every joint")
    builder.body("root", joint=kt.Free(), inertia=random_inertia(rng))
    for k, joint in enumerate((*REPRESENTATIVES, Slot())[group::6]):
        at = random_placement(rng)
        builder.body(f"b{k}", on="root", joint=joint, at=at, inertia=random_inertia(rng))
    model = builder.build()
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    qd, tau = rng.standard_normal((2, 3, model.nv))
    state = kt.maximal_state(model, q, qd, tau)
    J = kt.jacobians(model, q, frame="aligned")
    condition = float(np.max(np.linalg.cond(J.reshape(3, -1, model.nv))))
    found = kt.generalized_state(model, state)
    assert np.all(found.residual < 1e-9)
    assert_close(kt.poses(model, found.q), kt.poses(model, q), scale=10, condition=10)
    V = kt.jacobians(model, found.q, frame="aligned") @ found.qd[:, None, :, None]
    assert_close(V, J @ qd[:, None, :, None], scale=20, condition=condition)
    near = kt.generalized_state(model, state, near=q)  # not only the same motion: the same numbers
    assert_close(near.q, q, scale=10, condition=100)
    assert_close(near.qd, qd, condition=condition, scale=10)
    assert_close(near.tau, tau, condition=condition, scale=100)
    again = kt.generalized_state(model, state, near=q, method="least_squares")
    assert_close(again.qd, qd, condition=condition, scale=10)


@pytest.mark.covers("Tutorial 5", by=kt.maximal_state)
def test_the_state_of_a_body_is_that_of_its_mass_center(rng):
    model = random_tree(5, rng)
    q, (qd, tau) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    state = kt.maximal_state(model, q, qd, tau)
    for k, name in enumerate(model.body_names[1:]):
        c = model.inertia[k + 1].center_of_mass
        T, v = kt.pose(model, q, name), kt.velocity(model, q, qd, name, frame="aligned", point=c)
        assert_close(state.position[k], T[:3, :3] @ c + T[:3, 3], scale=10)
        assert_close(state.rotation[k], T[:3, :3])
        assert_close(np.concatenate([state.angular_velocity[k], state.velocity[k]]), v, scale=20)
    power = np.sum(state.force * state.velocity) + np.sum(state.torque * state.angular_velocity)
    assert_close(power, tau @ qd, condition=1e3, scale=10)
    at_origin = kt.maximal_state(model, q, qd, at="origin")
    assert_close(at_origin.position, kt.poses(model, q)[:, :3, 3], scale=10)
    back = kt.generalized_state(model, at_origin, at="origin", near=q)
    assert_close(back.q, q, condition=1e4)
    assert back.tau is None
    only_poses = kt.generalized_state(model, kt.maximal_state(model, q, qd)[:2])
    assert only_poses.qd is None


def test_couplings_and_loops(rng):
    for model in (kt.samples.panda(), kt.samples.delta()):
        q, qd = model.neutral(), rng.standard_normal(model.nv)
        if model.loops:
            q, qd = kt.loops.project_state(model, q, qd)
        found = kt.generalized_state(model, kt.maximal_state(model, q, qd), near=q)
        assert_close(found.q, q, condition=1e3, scale=1)
        assert_close(found.qd, qd, condition=1e3, scale=1)


def test_angles_and_quaternions_stay_near_where_they_were(rng):
    model = random_tree(
        6, rng, joints=[kt.Revolute("z"), kt.Planar(), kt.Spherical(), Euler("xyz")]
    )
    q = model.random_configuration(rng)
    for joint, part in zip(model.joint[1:], model.q_slice[1:], strict=True):
        for k in joint.angles:
            q[part][k] += 6 * np.pi
        for unit in joint.unit_parts:
            q[part][unit] *= -1
    T = kt.poses(model, q)
    assert_close(kt.generalized_position(model, T, near=q).q, q, condition=1e3)
    assert np.max(np.abs(kt.generalized_position(model, T).q - q)) > 1
    steps = kt.generalized_position(model, np.stack([T, T]), near=q).q
    assert_close(steps[1], q, condition=1e3)


@pytest.mark.covers("Tutorial 6", by=kt.generalized_position)
def test_poses_that_tear_joints_apart_are_named():
    model = figure_1_tree(Exponential())
    T = kt.poses(model, model.neutral() + 0.1)
    T[2, :3, 3] += [0.0, 0.02, 0.0]
    name, joint = model.body_names[3], model.joint_names[2]
    message = rf"no q gives these poses: body '{name}' on joint '{joint}' .* is off by 0\.0"
    with pytest.raises(UnreachableError, match=message):
        kt.generalized_position(model, T)
    with pytest.raises(UnreachableError, match=r"sample \(1,\): no q"):
        kt.generalized_position(model, np.stack([kt.poses(model, model.neutral()), T]))
    found = kt.generalized_position(model, T, tolerance=np.inf)
    assert 1e-3 < found.residual < 0.1
    state = kt.maximal_state(model, model.neutral() + 0.1, np.ones(model.nv))
    state.velocity[1] += 0.3
    with pytest.raises(UnreachableError, match="no qd gives these velocities"):
        kt.generalized_state(model, state)


def test_least_squares_shares_out_errors_of_measurement(rng):
    """The gradient of the sum of squares vanishes, and the sum is less than joint by joint."""
    model = kt.samples.ur5()
    q = rng.uniform(-1, 1, (3, 6))
    T = kt.poses(model, q)
    T[..., :3, 3] += 1e-3 * rng.standard_normal((3, 6, 3))
    turn = [rotation_exp(1e-3 * v).T for v in rng.standard_normal((18, 3))]
    T[..., :3, :3] = np.reshape(turn, (3, 6, 3, 3)) @ T[..., :3, :3]

    def squares(q):
        found = kt.poses(model, q)
        D = T[..., :3, :3] @ np.swapaxes(found[..., :3, :3], -1, -2)
        angle = np.arccos(np.clip((np.trace(D, axis1=-2, axis2=-1) - 1) / 2, -1, 1))
        shift = T[..., :3, 3] - found[..., :3, 3]
        return np.sum(angle**2, axis=-1) + np.sum(shift**2, axis=(-2, -1))

    best = kt.generalized_position(model, T, method="least_squares", tolerance=0.01).q
    first = kt.generalized_position(model, T, tolerance=0.01).q
    assert np.all(squares(best) < squares(first))
    for e in np.eye(6):
        slope = (squares(best + 1e-4 * e) - squares(best - 1e-4 * e)) / 2e-4
        assert np.all(np.abs(slope) < 1e-7)
    np.testing.assert_allclose(best, q, atol=0.01)


def test_singular_variables_are_named():
    """A ball whose Euler angles are in gimbal lock has poses, and spins that they cannot tell."""
    model = kt.ModelBuilder("ball").body(
        "ball", joint=Euler("zyx"), inertia=kt.shapes.sphere(0.1, mass=1.0)
    ).build()  # fmt: skip
    q = np.array([0.3, np.pi / 2, 0.1])
    state = kt.maximal_state(model, q, np.zeros(3))
    found = kt.generalized_state(model, state)
    assert_close(kt.poses(model, found.q), kt.poses(model, q), scale=10)
    allowed = kt.maximal_state(model, q, np.array([0.0, 1.0, 0.0]))
    qd = kt.generalized_state(model, allowed).qd
    assert np.all(np.isfinite(qd))
    locked = state._replace(
        angular_velocity=state.angular_velocity + kt.pose(model, q, "ball")[:3, 2]
    )
    with pytest.raises(kt.SingularError, match=r"joint 'ball_joint' \(Euler\) are singular"):
        kt.generalized_state(model, locked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda T: T[1:], r"poses must have shape \(..., body_count, 4, 4\)"),
        (lambda T: 2 * T, "is not a homogeneous matrix"),
        (lambda T: T * np.array([1, 1, -1, 1]), "det R = -1"),
        (lambda T: T * np.nan, "poses"),
    ],
)
def test_arrays_that_are_no_poses_are_rejected(change, message):
    model = kt.samples.ur5()
    with pytest.raises(kt.ShapeError, match=message):
        kt.generalized_position(model, change(kt.poses(model, model.neutral())))
    state = kt.maximal_state(model, model.neutral(), np.zeros(6))
    with pytest.raises(kt.UnknownNameError, match="at must be"):
        kt.maximal_state(model, model.neutral(), np.zeros(6), at="tip")
    with pytest.raises(kt.ShapeError, match="velocity must have shape"):
        kt.generalized_state(model, state._replace(velocity=np.zeros((3, 3))))


# --- a tiny simulator in maximal coordinates -----------------------------------------------------


class LooseBodies:
    """Bodies held together by points, two for a hinge and one for a ball, in Newton's equations."""

    def __init__(self, model):
        self.model = model
        self.I = [I.rotational_at_center for I in model.inertia[1:]]
        self.m = [I.mass for I in model.inertia[1:]]
        c = [np.zeros(3), *(I.center_of_mass for I in model.inertia[1:])]
        self.pins = []
        for i in range(1, model.body_count + 1):
            joint, X, p = model.joint[i], model.tree_transform[i], model.parent[i]
            axes = [np.zeros(3)] if joint.nv == 3 else [np.zeros(3), np.array(joint.axis)]
            for a in axes:  # of a hinge, points that its turn leaves where they are
                self.pins.append((p - 1, X.r + X.E.T @ a - c[p], i - 1, a - c[i]))

    def accelerations(self, x, R, v, w, force, torque):
        n = len(x)
        M, h, G, g = np.zeros((6 * n, 6 * n)), np.zeros(6 * n), [], []
        for k in range(n):
            J = R[k] @ self.I[k] @ R[k].T
            M[6 * k : 6 * k + 3, 6 * k : 6 * k + 3] = J
            M[6 * k + 3 : 6 * k + 6, 6 * k + 3 : 6 * k + 6] = self.m[k] * np.eye(3)
            h[6 * k : 6 * k + 3] = torque[k] - np.cross(w[k], J @ w[k])
            h[6 * k + 3 : 6 * k + 6] = force[k] + self.m[k] * self.model.gravity
        for p, r_p, k, r_k in self.pins:
            row, right = np.zeros((3, 6 * n)), np.zeros(3)
            for sign, b, r in ((1, k, r_k), (-1, p, r_p)):
                if b >= 0:
                    u = R[b] @ r
                    cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
                    row[:, 6 * b : 6 * b + 3], row[:, 6 * b + 3 : 6 * b + 6] = (
                        -sign * cross, sign * np.eye(3),
                    )  # fmt: skip
                    right -= sign * np.cross(w[b], np.cross(w[b], u))
            G.append(row)
            g.append(right)
        G, g = np.concatenate(G), np.concatenate(g)
        K = np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])
        a = np.linalg.lstsq(K, np.concatenate([h, g]), rcond=1e-11)[0][: 6 * n].reshape(n, 6)
        return a[:, 3:], a[:, :3]

    def run(self, state, forces, h, steps):
        """Fourth-order Runge–Kutta steps, in the variables x, R, v, w of loose bodies."""

        def rates(t, x, R, v, w):
            a, alpha = self.accelerations(x, R, v, w, *forces(t, x, R, v, w))
            skew = np.array([[[0, -c, b], [c, 0, -a], [-b, a, 0]] for a, b, c in w])
            return v, skew @ R, a, alpha

        y = state[:4]
        for k in range(steps):
            k1 = rates(k * h, *y)
            k2 = rates((k + 0.5) * h, *(a + h / 2 * b for a, b in zip(y, k1, strict=True)))
            k3 = rates((k + 0.5) * h, *(a + h / 2 * b for a, b in zip(y, k2, strict=True)))
            k4 = rates((k + 1) * h, *(a + h * b for a, b in zip(y, k3, strict=True)))
            y = [a + h / 6 * (b + 2 * c + 2 * d + e)
                 for a, b, c, d, e in zip(y, k1, k2, k3, k4, strict=True)]  # fmt: skip
        return y


@pytest.mark.covers(
    "Tutorial 6", by=(kt.maximal_state, kt.generalized_state, kt.generalized_position)
)
def test_an_engine_in_maximal_coordinates_moves_the_mechanism_alike(rng):
    """TU-62: joint forces go to the engine as forces and torques, its state comes back as q."""
    builder = kt.ModelBuilder("chain")
    kinds = (kt.Revolute((0.6, 0.0, 0.8)), kt.Spherical(), Exponential(), Euler("zyx"))
    for k, (joint, on) in enumerate(zip(kinds, ("base", "b0", "b0", "b2"), strict=True)):
        at, inertia = random_placement(rng), random_inertia(rng)
        builder.body(f"b{k}", on=on, joint=joint, at=at, inertia=inertia)
    model = builder.build()
    q0 = model.random_configuration(rng)
    qd0, push = rng.standard_normal((2, model.nv))
    last = [q0]

    def joint_state(x, R, *velocities):
        U, _, Vt = np.linalg.svd(R)  # stages of the method leave the rotations by a little
        found = kt.generalized_state(model, (x, U @ Vt, *velocities), near=last[0], tolerance=1e-4)
        last[0] = found.q
        return found

    def forces(t, x, R, v, w):
        q = joint_state(x, R).q
        return kt.maximal_state(model, q, 0 * qd0, push * np.cos(3 * t))[4:]

    start = kt.maximal_state(model, q0, qd0)
    end = joint_state(*LooseBodies(model).run(start, forces, 2.5e-3, 20))
    motion = kt.simulate(
        model, q0, qd0, duration=0.05, dt=1e-3, controller=lambda t, q, qd: push * np.cos(3 * t)
    )
    q, qd = motion.q[-1], motion.qd[-1]
    np.testing.assert_allclose(kt.poses(model, end.q), kt.poses(model, q), atol=1e-6)
    energies = [kt.kinetic_energy(model, *state) for state in ((end.q, end.qd), (q, qd))]
    np.testing.assert_allclose(*energies, rtol=1e-5)
