"""The same algorithm texts on other algebras: dense, planar, axial screws."""

import copy
import pickle

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_state

from kinetree.algorithms import aba, crba, rnea
from kinetree.errors import ModelError, SingularError
from kinetree.expr.counting import count
from kinetree.joints import Fixed, Prismatic, Revolute, Spherical
from kinetree.joints.one_axis import Helical
from kinetree.joints.planar import Planar
from kinetree.model import ModelBuilder
from kinetree.model.views import ModelView, axial_view, dense_view, planar_view
from kinetree.samples import chain, random_inertia, random_tree
from kinetree.spatial import Force, Inertia, rotx, rotz, xlt
from kinetree.spatial.axial_screw import dh_step
from kinetree.spatial.planar_inertia import restrict
from kinetree.textbook.aba_variants import true_accelerations

PLANAR_JOINTS = (
    Revolute("z"),
    Prismatic("x"),
    Prismatic((3.0, -4.0, 0.0)),
    Planar(),
    Fixed(),
)


def planar_tree(rng, bodies=8):
    """A random tree that moves in the x-y plane, with placements off the plane."""
    builder = ModelBuilder("planar", gravity=(1.0, -9.0, 2.0))
    names = ["base"]
    for i in range(bodies):
        on = names[rng.integers(len(names))]
        names.append(f"body{i + 1}")
        at = rotz(rng.uniform(-3, 3)) @ xlt(rng.standard_normal(3))
        joint = PLANAR_JOINTS[i % len(PLANAR_JOINTS)]
        builder.body(names[-1], on=on, joint=joint, at=at, inertia=random_inertia(rng))
    return builder.build()


def dh_tree(rng, bodies=7):
    """A random tree of Denavit–Hartenberg steps with turning, sliding and helical joints."""
    joints = (Revolute("z"), Prismatic("z"), Helical("z", pitch=0.3), Revolute("-z"), Fixed())
    builder, names = ModelBuilder("dh"), ["base"]
    for i in range(bodies):
        on = names[rng.integers(len(names))]
        names.append(f"body{i + 1}")
        a, alpha, d, theta = rng.uniform(-1.5, 1.5, 4)
        at = dh_step(a, alpha, d, theta if i % 2 else 0).to_plucker()
        joint = joints[i % len(joints)]
        builder.body(names[-1], on=on, joint=joint, at=at, inertia=random_inertia(rng))
    return builder.build()


def assert_same_dynamics(model, view, rng, convert):
    """RNEA, CRBA, ABA and the factorisations agree, with external forces."""
    q, qd, x = random_state(model, rng)
    f_ext = [Force.from_array(f) for f in rng.standard_normal((model.body_count + 1, 6))]
    f_view = [convert(f) for f in f_ext]
    H = crba.joint_space_inertia(model, q)
    stiffness = np.linalg.cond(H)
    assert_close(crba.joint_space_inertia(view, q), H, ulps=1000)
    for f, g in ((None, None), (f_ext, f_view)):
        tau = rnea.inverse_dynamics(model, q, qd, x, f)
        assert_close(rnea.inverse_dynamics(view, q, qd, x, g), tau, ulps=1000)
        qdd = aba.forward_dynamics(model, q, qd, x, f)
        assert_close(aba.forward_dynamics(view, q, qd, x, g), qdd, ulps=1000, condition=stiffness)
        by_factors = crba.forward_dynamics(view, q, qd, x, g)
        assert_close(by_factors, qdd, ulps=1000, condition=stiffness)
    bodies, viewed = (aba.articulated_bodies(m, q, qd, x) for m in (model, view))
    pairs = zip(true_accelerations(model, bodies), true_accelerations(view, viewed), strict=True)
    for a, b in pairs:
        a, b = (x if isinstance(x, np.ndarray) else x.to_array() for x in (convert(a), b))
        assert_close(b, a, ulps=1000, condition=stiffness, scale=np.max(np.abs(a), initial=10))


@pytest.mark.covers("6-D Guide 2: Arithmetic", "RBDA A.2", by=dense_view)
def test_dense_matrices_give_the_same_dynamics(rng):
    for model in (random_tree(8, rng), random_tree(5, rng, floating_base=True), chain(4)):
        assert_same_dynamics(model, dense_view(model), rng, lambda f: f.to_array())


@pytest.mark.covers("RBDA A.2", by=dense_view)
def test_dense_view_consists_of_plain_arrays(rng):
    model = random_tree(5, rng)
    view = dense_view(model)
    q, qd, qdd = random_state(model, rng)
    result = rnea.newton_euler(view, q, qd, qdd)
    assert type(result.tau) is np.ndarray
    for i in range(1, model.body_count + 1):
        assert type(view.inertia[i]) is np.ndarray
        assert view.tree_transform[i].shape == (6, 6)
        assert type(result.v[i]) is type(result.f[i]) is np.ndarray
        assert result.v[i].shape == (6,)
    X = view.tree_transform[1]
    assert_close(X.star, np.linalg.inv(X).T)
    assert_close(X.T @ view.inertia[1] @ X, (np.asarray(X).T @ view.inertia[1] @ np.asarray(X)))
    assert type(view.inertia[1] @ X) is np.ndarray


@pytest.mark.covers("RBDA 2.16", "RBDA A.1", by=planar_view)
def test_planar_vectors_give_the_same_dynamics(rng):
    for bodies in (1, 5, 9):
        model = planar_tree(rng, bodies)
        assert_same_dynamics(model, planar_view(model), rng, restrict)


@pytest.mark.covers("RBDA 2.16", by=planar_view)
def test_planar_articulated_body_algorithm_takes_fewer_operations(rng):
    model = planar_tree(rng, 8)
    q, qd, tau = random_state(model, rng)
    for algorithm in (aba.forward_dynamics, rnea.inverse_dynamics):
        planar = count(algorithm, planar_view(model), q, qd, tau).total
        spatial = count(algorithm, model, q, qd, tau).total
        assert planar < spatial


@pytest.mark.covers("RBDA 2.16", by=planar_view)
def test_planar_two_link_arm_by_hand():
    l1, c1, c2, m1, m2, I1, I2 = 0.7, 0.4, 0.3, 2.0, 1.5, 0.1, 0.05
    arm = ModelBuilder("arm", gravity=(0, 0, 0))
    for name, on, at, m, c, I in (
        ("upper", None, 0.0, m1, c1, I1),
        ("fore", "upper", l1, m2, c2, I2),
    ):
        inertia = Inertia.from_mass_center(m, (c, 0, 0), np.diag([I / 2, I / 2, I]))
        arm.body(name, on=on, joint=Revolute("z"), at=(at, 0, 0), inertia=inertia)
    q, qd = np.array([0.3, 0.8]), np.array([0.5, -0.9])
    view = planar_view(arm.build())
    H12 = I2 + m2 * (c2**2 + l1 * c2 * np.cos(q[1]))
    H22 = I2 + m2 * c2**2
    H11 = I1 + m1 * c1**2 + m2 * (l1**2 + l1 * c2 * np.cos(q[1])) + H12
    assert_close(crba.joint_space_inertia(view, q), np.array([[H11, H12], [H12, H22]]))
    k = m2 * l1 * c2 * np.sin(q[1])
    expected = [-k * (2 * qd[0] * qd[1] + qd[1] ** 2), k * qd[0] ** 2]
    assert_close(rnea.bias_force(view, q, qd), expected)


@pytest.mark.covers("RBDA A.4", "RBDA Table A.5", by=axial_view)
def test_axial_screws_give_the_same_dynamics(rng):
    for model in (chain(6), dh_tree(rng), dh_tree(rng, 10)):
        view, (q, qd, x) = axial_view(model), random_state(model, rng)
        H = crba.joint_space_inertia(model, q)
        assert_close(crba.joint_space_inertia(view, q), H, ulps=1000)
        tau, qdd = rnea.inverse_dynamics(model, q, qd, x), aba.forward_dynamics(model, q, qd, x)
        assert_close(rnea.inverse_dynamics(view, q, qd, x), tau, ulps=1000)
        for forward_dynamics in (aba.forward_dynamics, crba.forward_dynamics):
            found = forward_dynamics(view, q, qd, x)
            assert_close(found, qdd, ulps=1000, condition=np.linalg.cond(H))


@pytest.mark.covers("RBDA A.4", by=axial_view)
def test_axial_screws_take_fewer_operations(rng):
    model = chain(8)
    q, qd, x = random_state(model, rng)
    screws = axial_view(model)
    for algorithm in (aba.forward_dynamics, rnea.inverse_dynamics):
        assert count(algorithm, screws, q, qd, x).total < count(algorithm, model, q, qd, x).total
    H = crba.joint_space_inertia
    assert count(H, screws, q).total < count(H, model, q).total


def test_views_differentiate_by_complex_step(rng):
    h = 1e-30
    for model, make in ((planar_tree(rng), planar_view), (chain(4), axial_view)):
        q, qd, qdd = random_state(model, rng)
        direction = rng.standard_normal(model.nv)
        step = q + 1j * h * direction
        expected = rnea.inverse_dynamics(model, step, qd, qdd).imag / h
        assert_close(
            rnea.inverse_dynamics(make(model), step, qd, qdd).imag / h, expected, ulps=1000
        )


def test_views_answer_as_the_model_does(rng):
    model = planar_tree(rng)
    for view in (dense_view(model), planar_view(model)):
        assert view.parent == model.parent
        assert view.nv == model.nv
        assert view.joint_names == model.joint_names
        assert view.body_index("body2") == 2
        assert repr(view) == f"ModelView({model!r})"
        assert copy.copy(view).model is model
        with pytest.raises(AttributeError, match="no_such_thing"):
            view.no_such_thing  # noqa: B018
    with pytest.raises(AttributeError):
        ModelView.__new__(ModelView).parent  # noqa: B018


@pytest.mark.parametrize("make", [dense_view, planar_view, axial_view])
def test_views_survive_pickling(make, rng):
    model = ModelBuilder("pendulum").body("bob", joint=Revolute("z"), inertia=random_inertia(rng))
    view = make(model.build())
    again = pickle.loads(pickle.dumps(view))
    q, qd, qdd = random_state(view, rng)
    expected = rnea.inverse_dynamics(view, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(again, q, qd, qdd), expected)


def test_singular_joint_is_named_through_a_view():
    model = ModelBuilder().body("spoke", joint=Revolute("z")).build()
    for make in (dense_view, planar_view, axial_view):
        with pytest.raises(SingularError, match="'spoke_joint' moves no inertia"):
            aba.forward_dynamics(make(model), np.zeros(1), np.zeros(1), np.ones(1))


def single(joint, at=None):
    inertia = Inertia.from_mass_center(1.0, (0.1, 0.2, 0.3), np.eye(3))
    builder = ModelBuilder("arm").body("good", joint=Revolute("z"), inertia=inertia)
    return builder.body("bad", on="good", joint=joint, at=at, inertia=inertia).build()


@pytest.mark.parametrize(
    ("joint", "at", "problem"),
    [
        (Revolute("x"), None, "moves bodies out of the x-y plane: Revolute"),
        (Prismatic((1.0, 0.0, 1.0)), None, "moves bodies out of the x-y plane: Prismatic"),
        (Helical("z", pitch=0.1), None, "moves bodies out of the x-y plane: Helical"),
        (Spherical(), None, "moves bodies out of the x-y plane: Spherical"),
        (Revolute("z"), rotx(0.1), "sits on a placement that does not just turn about z"),
        (Revolute("z"), rotx(np.pi), "sits on a placement that does not just turn about z"),
    ],
)
def test_a_model_that_is_not_planar_names_the_joint(joint, at, problem):
    with pytest.raises(ModelError, match=r"'arm' is not planar: joint 'bad_joint' " + problem):
        planar_view(single(joint, at))
