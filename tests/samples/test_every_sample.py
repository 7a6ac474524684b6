"""What every sample promises: sound dynamics, looks, limits, motors, postures, closed loops."""

import json
import warnings

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import loop_errors

from kinetree import samples
from kinetree.algorithms import aba, crba, rnea
from kinetree.contact import Scene
from kinetree.doctor import check
from kinetree.joints import Fixed
from kinetree.model import Model, geometry
from kinetree.model.validate import inertia_defect, joints_without_inertia

MODELS = {name: samples.load(name) for name in samples.names()}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def test_forward_and_inverse_dynamics_agree(model, rng):
    assert joints_without_inertia(model) == ()
    q, (qd, tau) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    tree = model.replace(loops=())
    qdd = aba.forward_dynamics(tree, q, qd, tau)
    H = np.asarray(crba.joint_space_inertia(tree, q), dtype=float)
    assert np.linalg.eigvalsh(H)[0] > 0
    back = rnea.inverse_dynamics(tree, q, qd, qdd)
    assert_close(back, tau, condition=np.linalg.cond(H), scale=1 + np.abs(back).max())


def test_the_doctor_finds_nothing_wrong(model):
    assert [f for f in check(model) if f.severity != "note"] == []


def test_the_inertia_matrix_is_well_conditioned(model, rng):
    for q in (model.neutral(), model.random_configuration(rng)):
        H = np.asarray(crba.joint_space_inertia(model, q), dtype=float)
        d = np.sqrt(np.diag(H))
        assert np.linalg.cond(H / np.outer(d, d)) < 2e3


def test_every_body_has_mass_and_an_inertia_in_all_directions(model):
    for body in model.bodies:
        assert body.inertia.mass > 0
        assert inertia_defect(body.inertia) is None
        assert np.linalg.eigvalsh(body.inertia.rotational)[0] > 0


def test_every_body_is_seen_and_its_mass_centre_lies_within_what_is_seen(model):
    for i, body in enumerate(model.bodies, start=1):
        pieces = [piece for piece in model.geometry if piece.body == i and piece.visual]
        assert pieces, body.name
        assert all(len(p.color) == 4 for p in pieces)
        center = body.inertia.center_of_mass
        boxes = np.array([_bounds(p) for p in pieces])
        low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
        assert np.all((low <= center) & (center <= high)), body.name


def _bounds(piece):
    shape = piece.shape
    if isinstance(shape, geometry.Box):
        half = np.array(shape.size) / 2
    elif isinstance(shape, geometry.Ellipsoid):
        half = np.array(shape.radii)
    elif isinstance(shape, geometry.Sphere):
        half = np.full(3, shape.radius)
    else:
        ends = shape.radius if isinstance(shape, geometry.Capsule) else 0.0
        half = np.array([shape.radius, shape.radius, shape.length / 2 + ends])
    reach = np.abs(piece.placement.E.T) @ half
    return piece.placement.r - reach, piece.placement.r + reach


def test_every_joint_of_one_freedom_has_all_limits(model):
    for body in model.bodies:
        if body.joint.nv == 1:
            limits = body.limits
            assert limits is not None, body.joint_name
            assert limits.lower[0] < limits.upper[0]
            assert 0 < limits.velocity[0] < np.inf
            assert 0 < limits.effort[0] < np.inf


def test_motors_act_within_the_limits_of_their_joints(model):
    for motor in model.actuators:
        (most,) = model.bodies[motor.joint - 1].limits.effort
        assert motor.effort == motor.control == (-most, most)


def test_home_is_a_posture_that_closes_the_loops_and_keeps_the_limits(model):
    assert model.postures[0].name == "home"
    for posture in model.postures:
        q = np.array(posture.q)
        assert_close(model.normalize(q), q, scale=1)
        errors = loop_errors(model, q)
        assert_close(errors, np.zeros(len(errors)), scale=1)
    q = model.postures[0].q
    for i, body in enumerate(model.bodies, start=1):
        if body.limits is not None:
            for x, low, high in zip(
                q[model.q_slice[i]], body.limits.lower, body.limits.upper, strict=True
            ):
                assert low <= x <= high, body.joint_name


def test_loops_are_closed_at_the_neutral_position(model):
    errors = loop_errors(model, model.neutral())
    assert_close(errors, np.zeros(len(errors)), scale=1)


def test_it_survives_json(model):
    text = json.dumps(model.to_dict(), allow_nan=False)
    again = Model.from_dict(json.loads(text))
    assert again == model
    assert len(again.geometry) == len(model.geometry)
    assert again.postures == model.postures


def test_nothing_is_fixed_but_the_palm_of_the_gripper(model):
    fixed = [b.name for b in model.bodies if isinstance(b.joint, Fixed)]
    assert fixed == (["palm"] if model.name == "panda" else [])


def test_no_shapes_overlap_at_home(model):
    """Found by the scene of all pairs that may touch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some have nothing that can touch
        scene = Scene(model)
    found = scene.contacts(model.posture("home").q)
    gaps = dict(zip(found.names, found.gap, strict=True))
    assert {name: gap for name, gap in gaps.items() if gap < -1e-9} == {}


@pytest.mark.parametrize("name", ["scara", "arm", "ur5", "panda", "quadruped", "humanoid"])
def test_robots_can_touch(name):
    """Every link of an arm or leg has a shape that can touch, but for housings inside others."""
    model = MODELS[name]
    solid = {model.body_names[g.body] for g in model.geometry if g.collision}
    inside = {f"{side}_{part}" for side in ("left", "right") for part in ("hip", "hip_yoke")}
    inside = inside if name == "humanoid" else set()
    assert {*model.body_names[1:]} - solid == inside


def test_a_panda_folded_onto_itself_touches_itself():
    model = MODELS["panda"]
    q = model.posture("home").q.copy()
    scene = Scene(model)
    q[model.q_indices("link6_joint", "link7_joint")] = 0.0, -0.4  # the palm against the forearm
    assert any(name.startswith("link5[0]/palm") for name in scene.contacts(q).names)
    q[model.q_indices("left_finger_joint", "right_finger_joint")] = 0.0
    names = scene.contacts(q, margin=1e-9).names
    assert any(name.startswith("left_finger/right_finger") for name in names)
