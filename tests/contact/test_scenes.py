"""Which shapes may touch, and their potential contacts in compiled code."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import pairs_of, state, two_bodies

import kinetree as kt
from kinetree.contact.contacts import Contacts, bias, jacobian, velocity
from kinetree.contact.finding import candidates
from kinetree.contact.finding.pairs import Pair
from kinetree.contact.scene import Scene, with_ground
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model.geometry import Box, Ellipsoid, Geometry, HeightField, Plane, Sphere


def chain(*joints, loops=()):
    """Balls in a row, each on the one before."""
    builder, on = kt.ModelBuilder("chain"), None
    for k, joint in enumerate(joints):
        inertia = kt.shapes.sphere(0.1, mass=1.0)
        builder.body(f"b{k}", joint=joint, on=on, at=(0.15, 0, 0), inertia=inertia)
        on = f"b{k}"
    model = builder.build()
    balls = [Geometry(0, Sphere(0.1), name="g0")]
    balls += [Geometry(k + 1, Sphere(0.1), name=f"g{k + 1}") for k in range(len(joints))]
    return model.replace(geometry=balls)


def names(scene):
    return set(scene.pair_names)


def test_neighbours_do_not_touch_unless_one_is_the_base():
    scene = Scene(chain(kt.Revolute("z"), kt.Revolute("z"), kt.Revolute("z")))
    assert names(scene) == {"g0/g1", "g0/g2", "g0/g3", "g1/g3"}


def test_welded_bodies_count_as_one():
    scene = Scene(chain(kt.Revolute("z"), kt.Fixed(), kt.Revolute("z")))
    assert names(scene) == {"g0/g1", "g0/g2", "g0/g3"}
    assert names(Scene(chain(kt.Fixed(), kt.Revolute("z")))) == {"g0/g2", "g1/g2"}


def test_bodies_that_a_loop_joint_connects_are_neighbours():
    model = chain(kt.Revolute("z"), kt.Revolute("z"), kt.Revolute("z"))
    loop = kt.Loop("pin", 1, 3, kt.Revolute("z"))
    assert "g1/g3" not in names(Scene(model.replace(loops=(loop,))))


def test_shapes_that_are_not_for_collision_and_two_grounds_are_left_out():
    model = two_bodies(Plane(), Sphere(0.1))
    ghost = Geometry(0, Sphere(1.0), name="ghost", collision=False)
    ground = Geometry(0, Plane(), name="ground")
    scene = Scene(model.replace(geometry=(*model.geometry, ghost, ground)))
    assert names(scene) == {"a/b", "ground/b"}


def test_pairs_by_name_of_shapes_or_bodies_with_numbers_of_their_own():
    model = chain(kt.Free(), kt.Revolute("z"))
    scene = Scene(model, [("g0", "b0"), Pair("b0", "g2", 0.1, 0.5)], friction=0.7)
    assert scene.pair_names == ("g0/g1", "g1/g2")
    assert_close(scene.friction, [0.7, 0.1])
    assert_close(scene.restitution, [0.0, 0.5])
    rough = Scene(model, friction=lambda a, b: a.shape.radius + b.shape.radius)
    assert_close(rough.friction, [0.2, 0.2])
    assert repr(rough) == "<Scene of 'chain': 2 pairs>"


def test_pairs_with_the_base_and_pairs_to_ignore():
    model = chain(kt.Revolute("z"), kt.Revolute("z"), kt.Revolute("z"))
    assert names(Scene(model, "base")) == {"g0/g1", "g0/g2", "g0/g3"}
    assert names(Scene(model, ignore=[("b0", "base")])) == {"g0/g2", "g0/g3", "g1/g3"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": "all"}, ModelError, "None, 'base', 'feet' or a list of pairs, got 'all'"),
        (
            {"pairs": [("g0", "g7")]},
            UnknownNameError,
            "link, frame or body 'g7'; known: 'g0'",
        ),
        ({"pairs": [("g0",)]}, ModelError, "a pair must be a Pair, two names"),
        ({"pairs": ["g0"]}, ModelError, "a pair must be a Pair, two names, .*, got 'g0'"),
        ({"pairs": [("g1", "b0")]}, ModelError, "on the same body 'b0': they cannot move"),
        ({"pairs": [("g0", "b1")]}, ModelError, "body 'b1' has no shape that can touch"),
        ({"friction": -0.1}, ModelError, "friction of 'g0/g1' must be zero or positive, and finit"),
        ({"restitution": 1.1}, ModelError, "restitution of 'g0/g1' must be from 0 to 1, got 1.1"),
    ],
)
def test_wrong_pairs_and_coefficients_are_named(options, error, message):
    model = chain(kt.Free(), kt.Revolute("z"))
    model = model.replace(geometry=model.geometry[:2])
    with pytest.raises(error, match=message):
        Scene(model, **options)


# --- in compiled code ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def feet():
    model = with_ground(kt.samples.quadruped(), normal=(0.1, 0.0, 1.0))
    return Scene(model, [("ground", f"{leg}_shank") for leg in ("front_left", "rear_right")])


@pytest.mark.covers("RBDA 11.3", by=Scene.candidate_terms)
def test_compiled_terms_are_those_of_the_source_and_of_the_contacts(feet, rng):
    model = feet.model
    q = model.integrate(model.neutral(), rng.normal(size=model.nv))
    qd = rng.normal(size=model.nv)
    found = feet.candidate_terms(model, q, qd)
    expected = candidates.terms(model, q, qd, pairs_of(feet))
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, ulps=1000)
    gaps, speeds = feet.candidate_velocities(model, q, qd)
    assert_close(gaps, found[0], scale=1.0)
    assert_close(speeds, found[1] @ qd, ulps=1000)
    contacts = feet.contacts(q, margin=10.0)
    assert contacts.names == feet.candidates.names
    assert_close(bias(model, q, qd, contacts), found[2], ulps=1000)
    assert_close(jacobian(model, q, contacts), found[1], ulps=1000)
    _, points, axes = feet.candidate_positions(model, q)
    assert_close(contacts.point, points, ulps=1000)
    assert_close(contacts.normal, axes[:, 0], ulps=1000)


def test_terms_in_a_kernel_and_over_a_batch(feet, rng):
    model = feet.model

    @kt.kernel
    def depth(model, q, qd):
        gaps, J, _ = feet.candidate_terms(model, q, qd)
        return gaps, (J @ qd)[:, 0]

    q = model.integrate(model.neutral(), rng.normal(size=(5, model.nv)))
    qd = rng.normal(size=(5, model.nv))
    gaps, speeds = depth(model, q, qd)
    assert gaps.shape == (5, feet.candidates.size)
    assert_close(gaps, feet.candidate_terms(model, q, qd)[0], scale=1.0)
    derivative = kt.differentiate(depth, wrt="q")(model, q[0], qd[0])[0]
    assert_close(derivative @ qd[0], speeds[0], ulps=1000)


def test_candidates_name_bodies_and_coefficients(feet):
    found = feet.candidates
    assert found.size == 6
    assert found.names[2] == "ground/front_left_shank[1]:0"
    assert set(found.predecessor) == {0}
    assert [feet.model.body_names[i] for i in found.successor[::3]] == [
        "front_left_shank",
        "rear_right_shank",
    ]
    assert_close(found.friction, np.full(6, 0.8))
    assert found.pair.tolist() == [0, 0, 1, 2, 2, 3]


def test_scene_without_pairs_has_no_candidates_and_no_contacts():
    model = two_bodies(Plane(), Sphere(0.1))
    scene = Scene(model, pairs=[])
    q, qd = model.neutral(), np.zeros(model.nv)
    shapes = [a.shape for a in scene.candidate_terms(model, q, qd)]
    assert shapes == [(0,), (0, 3, 12), (0, 3)]
    contacts = scene.contacts(q)
    assert contacts.size == scene.candidates.size == 0
    assert velocity(model, q, qd, contacts).shape == bias(model, q, qd, contacts).shape == (0, 3)


def test_pairs_without_closed_form_are_named_and_can_be_left_out():
    model = with_ground(two_bodies(Box((1, 1, 1)), Ellipsoid((1, 2, 3))))
    scene = Scene(model, friction=0.3)
    message = "1 of 3 pairs that have no closed form.*first 'a/b' .Box and Ellipsoid.*closed_forms"
    with pytest.raises(ModelError, match=message):
        scene.candidate_terms(model, model.neutral(), np.zeros(12))
    with pytest.raises(ModelError, match="no closed form"):
        _ = scene.candidates
    closed = scene.closed_forms()
    assert names(closed) == {"ground/a", "ground/b"}
    assert_close(closed.friction, [0.3, 0.3])


def test_large_height_fields_are_for_contacts_alone():
    field = HeightField(((0.0,) * 30,) * 30, (3.0, 3.0))
    scene = Scene(two_bodies(field, Sphere(0.1), fixed=True))
    assert scene.open_pairs == (0,)
    q = scene.model.neutral()
    assert_close(scene.contacts(q).gap, [-0.1])


# --- small things --------------------------------------------------------------------------------


def test_chosen_contacts_keep_everything(rng):
    model = two_bodies(Plane(), Box((0.2, 0.2, 0.2)), fixed=True)
    contacts = Scene(model).contacts(model.neutral(), margin=1.0)
    some = contacts.chosen([3, 1])
    assert some.size == 2
    assert some.names == (contacts.names[3], contacts.names[1])
    assert_close(some.travel, contacts.travel[[3, 1]])
    assert Contacts([0], [1], [[0, 0, 0]], [[0, 0, 1]], [0.0]).chosen([]).turn is None


def test_contacts_without_curvature_are_corners_on_faces(rng):
    model = two_bodies(Plane(), Box((0.2, 0.3, 0.4)))
    q, qd = state(model, rng, np.array([0.0, 0.0, 0.3]))
    contacts = Scene(model).contacts(q, margin=1.0)
    bare = contacts._replace(turn=None, travel=None)
    assert_close(bias(model, q, qd, bare), bias(model, q, qd, contacts), ulps=1e4)


def test_velocity_holds_what_prescribed_joints_add():
    builder = kt.ModelBuilder("lift")
    motion = kt.Prescribed(kt.Prismatic("z"), lambda t: ([0.1 * t], [0.1], [0.3]))
    builder.body("table", joint=motion)
    builder.body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
    model = builder.build().replace(
        geometry=(Geometry(1, Plane(), name="top"), Geometry(2, Sphere(0.1), name="ball"))
    )
    model, scene = model.at(2.0), Scene(model.at(2.0))
    q, qd = model.neutral(), np.zeros(6)
    contacts = scene.contacts(q, margin=1.0)
    assert_close(velocity(model, q, qd, contacts), [[-0.1, 0.0, 0.0]])
    assert_close(bias(model, q, qd, contacts)[0, 0], -0.3)
    assert_close(scene.candidate_velocities(model, q, qd)[1], [[-0.1, 0.0, 0.0]])


def test_ground_has_its_normal_and_point_and_rejects_what_is_no_direction():
    model = with_ground(two_bodies(Box((1, 1, 1)), Sphere(0.1)), (0, 3.0, 4.0), (0, 0, 1))
    plane = model.geometry[-1]
    assert_close(plane.placement.E[2], [0.0, 0.6, 0.8])
    assert_close(plane.placement.r, [0.0, 0.0, 1.0])
    for wrong in ((0, 0, 0), (1, 0), (0, 0, np.nan)):
        with pytest.raises(ModelError, match="normal must be a direction of three numbers"):
            with_ground(model, wrong)
