"""Shapes by the names of shapes, links, frames and bodies, and feet by their height."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Pair, Scene, with_ground
from kinetree.errors import LoadError, ModelError, ModelWarning, UnknownNameError
from kinetree.model.geometry import Box, Capsule, ContactPair, Mesh, Sphere, Surface

INERTIA = kt.shapes.sphere(0.1, mass=1.0)


def leg(builder, name, x, height=0.0):
    """A thigh, a calf, and a foot that is part of the calf."""
    builder.body(f"{name}_thigh", on="trunk", joint=kt.Revolute("y"), inertia=INERTIA, at=(x, 0, 0))
    builder.body(
        f"{name}_calf", on=f"{name}_thigh", joint=kt.Revolute("y"), inertia=INERTIA, at=(0, 0, -0.2)
    )
    builder.frame(f"{name}_foot", on=f"{name}_calf", at=(0, 0, -0.2 + height))
    builder.geometry(Capsule(0.02, 0.1), on=f"{name}_thigh", at=(0, 0, -0.1))
    builder.geometry(Capsule(0.02, 0.1), on=f"{name}_calf", at=(0, 0, -0.1))
    at = {"on": f"{name}_calf", "at": (0, 0, -0.2 + height), "link": f"{name}_foot"}
    builder.geometry(Box((0.1, 0.1, 0.1)), **at, collision=False)
    return builder.geometry(Sphere(0.03), **at)


def dog(height=0.0):
    b = kt.ModelBuilder("dog")
    b.body("trunk", joint=kt.Free(), inertia=INERTIA)
    b.geometry(Box((0.5, 0.2, 0.1)), on="trunk", name="shell")
    b.geometry(Sphere(0.1), on="trunk", name="eye", at=(0.3, 0.1, 0))
    b.geometry(Sphere(0.1), on="trunk", name="eye", at=(0.3, -0.1, 0))
    b.frame("tool", on="trunk")
    return with_ground(leg(leg(b, "front", 0.2), "rear", -0.2, height).build())


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("shell", ["shell"]),
        ("eye", ["trunk[1]", "trunk[2]"]),
        ("eye[1]", ["trunk[2]"]),
        ("trunk", ["shell", "trunk[1]", "trunk[2]"]),
        ("trunk[0]", ["shell"]),
        ("front_foot", ["front_foot"]),  # its own sphere, not the box to be seen
        ("front_calf", ["front_calf"]),  # of the link, without the foot
        ("front_calf[0]", ["front_calf"]),
        ("tool", ["shell", "trunk[1]", "trunk[2]"]),  # a frame without shapes: those of its body
        ("geometry[0]", ["shell"]),
    ],
)
def test_shapes_are_found_by_name(end, found):
    scene = Scene(dog(), [("ground", end)])
    assert scene.pair_names == tuple(f"ground/{name}" for name in found)


def test_a_body_stands_for_links_that_are_part_of_it_where_it_has_no_shape_itself():
    m = dog()
    bare = m.replace(geometry=[g for g in m.geometry if g.link or g.body == 0])
    assert Scene(bare, [("ground", "front_calf")]).pair_names == ("ground/front_foot",)


def test_names_that_a_scene_shows_are_taken_by_it():
    m = dog()
    scene = Scene(m)
    assert len(set(scene.pair_names)) == len(scene.pairs)
    assert Scene(m, scene.pair_names).pair_names == scene.pair_names
    assert Scene(m, [name.split("/") for name in scene.pair_names]).pair_names == scene.pair_names
    touching = scene.contacts(m.neutral(), margin=0.1)
    assert set(Scene(m, touching.names).pair_names) == {n.split(":")[0] for n in touching.names}
    assert len(Scene(m, ignore=scene.pair_names[:3]).pairs) == len(scene.pairs) - 3
    hidden = next(g for g in m.geometry if not g.collision)
    [shown] = Scene(m, [("ground", hidden)]).pair_names
    assert Scene(m, [shown]).pairs[0].second is hidden
    two = m.replace(geometry=(*m.geometry, *(_named(m, 1, "a/b"), _named(m, 1, "a"))))
    slashes = Scene(two, [("ground", "a/b"), ("ground", "a")])
    assert Scene(two, slashes.pair_names).pair_names == slashes.pair_names


def _named(m, body, name):
    return kt.geometry.Geometry(body, Sphere(0.1), name=name)


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        (
            [("ground", "front_fot")],
            UnknownNameError,
            "or body 'front_fot'; .*'front_foot'",
        ),
        ([("ground", "trunk[7]")], UnknownNameError, r"'trunk\[7\]'"),
        (["ground/front_fot"], ModelError, "the name of a pair such as 'ground/foot', got"),
        ([("front_calf", "front_foot")], ModelError, "front_calf/front_foot are on the same body"),
        ([("ground", 3)], UnknownNameError, "body 3"),
    ],
)
def test_unknown_names_are_errors_that_suggest(pairs, error, message):
    with pytest.raises(error, match=message):
        Scene(dog(), pairs)


# --- feet ----------------------------------------------------------------------------------------


def test_feet_are_the_lowest_links_of_the_limbs_that_stand():
    m = dog()
    assert Scene(m, "feet").pair_names == ("ground/front_foot", "ground/rear_foot")
    assert Scene(dog(height=0.15), "feet").pair_names == ("ground/front_foot",)
    kneeling = m.neutral()
    kneeling[m.q_slice[m.joint_index("rear_calf_joint")]] = 2.0
    assert Scene(m, "feet", posture=kneeling).pair_names == ("ground/front_foot",)
    named = m.replace(postures=[kt.model.Posture("kneeling", tuple(kneeling))])
    for posture in ("kneeling", named.posture("kneeling")):
        assert Scene(named, "feet", posture=posture).pair_names == ("ground/front_foot",)
    upside_down = m.replace(gravity=(0, 0, 9.81))
    assert set(Scene(upside_down, "feet").pair_names) == {"ground/trunk[1]", "ground/trunk[2]"}


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        ("quadruped", [f"{a}_{b}_shank[1]" for a in ("front", "rear") for b in ("left", "right")]),
        ("humanoid", ["left_foot", "right_foot"]),
    ],
)
def test_samples_stand_on_their_feet(sample, found):
    m = with_ground(getattr(kt.samples, sample)())
    assert Scene(m, "feet").pair_names == tuple(f"ground/{name}" for name in found)


def test_meshes_that_cannot_be_read_are_named(tmp_path):
    m = dog()
    missing = kt.geometry.Geometry(1, Mesh(str(tmp_path / "none.stl")), name="mesh")
    with pytest.warns(ModelWarning, match="1 of its shapes are not looked at"):
        scene = Scene(m.replace(geometry=(*m.geometry, missing)), "feet")
    assert scene.pair_names == ("ground/front_foot", "ground/rear_foot")
    with pytest.raises(LoadError, match=r"none\.stl"):
        Scene(m.replace(geometry=(m.geometry[-1], missing)), "feet")


# --- surfaces ------------------------------------------------------------------------------------


def balls(*surfaces):
    b = kt.ModelBuilder("balls")
    for k, surface in enumerate(surfaces):
        b.body(f"b{k}", joint=kt.Free(), inertia=INERTIA)
        b.geometry(Sphere(0.1), on=f"b{k}", surface=surface)
    return b.build()


@pytest.mark.parametrize(
    ("one", "other", "friction", "restitution"),
    [
        (None, None, 0.8, 0.0),
        (Surface(), None, 0.8, 0.0),
        (Surface(friction=0.3, restitution=0.5), None, 0.3, 0.5),
        (Surface(friction=0.3, restitution=0.5), Surface(friction=0.4), 0.4, 0.5),
        (Surface(friction=0.3, priority=1), Surface(friction=0.4, restitution=0.2), 0.3, 0.2),
        (Surface(friction=0.3, condim=1), Surface(friction=0.4, condim=1), 0.0, 0.0),
        (Surface(friction=0.3, condim=1, priority=2), Surface(friction=0.4), 0.0, 0.0),
        (Surface(friction=0.3, condim=1), Surface(friction=0.4), 0.4, 0.0),
    ],
)
def test_coefficients_are_those_of_the_surfaces_unless_given(one, other, friction, restitution):
    for surfaces in ((one, other), (other, one)):
        m = balls(*surfaces)
        scene = Scene(m)
        assert (scene.friction.tolist(), scene.restitution.tolist()) == ([friction], [restitution])
        given = Scene(m, friction=0.1, restitution=0.9)
        assert (given.friction.tolist(), given.restitution.tolist()) == ([0.1], [0.9])
        [own] = Scene(m, [Pair("b0", "b1", friction=0.2)]).friction
        assert own == 0.2


@pytest.mark.parametrize("margin", [0.02, -0.02])
def test_margins_move_the_surfaces_apart_or_together(margin):
    m = with_ground(balls(Surface(margin=margin)))
    q = m.neutral()
    q[2] = 0.1 + margin
    touching = Scene(m).contacts(q, 1e-9)
    np.testing.assert_allclose(touching.gap, [0.0], atol=1e-15)
    q[2] += 1e-6
    assert not len(Scene(m).contacts(q).gap)


def test_a_ground_has_a_surface():
    ice = with_ground(balls(None, Surface(friction=0.2)), surface=Surface(friction=0.1))
    assert Scene(ice, "base").friction.tolist() == [0.1, 0.2]
    ice = with_ground(balls(None, Surface(friction=0.2)), surface=Surface(friction=0.1, priority=1))
    assert Scene(ice, "base").friction.tolist() == [0.1, 0.1]


def test_masks_pairs_and_exclusions_of_a_model():
    m = balls(Surface(contype=1, conaffinity=0), Surface(contype=2, conaffinity=1), None)
    assert set(Scene(m).pair_names) == {"b0/b1", "b0/b2", "b1/b2"}
    m = balls(Surface(contype=1, conaffinity=0), Surface(contype=2, conaffinity=2), None)
    assert set(Scene(m).pair_names) == {"b0/b2", "b1/b2"}
    ice = Surface(friction=0.01)
    pairs = (
        ContactPair("b1", "b0", surface=ice),
        ContactPair("b0", "b2", touch=False),
    )
    m = m.replace(contact_pairs=pairs)
    scene = Scene(m)
    assert scene.pair_names == ("b0/b1", "b1/b2")
    assert scene.friction.tolist() == [0.01, 0.8]
    assert Scene(m, [("b0", "b1")]).friction.tolist() == [0.01]
    assert Scene(m, [("b0", "b2")]).pair_names == ("b0/b2",)  # named by the caller


def test_parents_are_seen_through_massless_bodies_that_carry_one_other():
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("z"), inertia=INERTIA)
    b.body("cross", on="upper", joint=kt.Revolute("x"))
    b.body("cross_2", on="cross", joint=kt.Revolute("z"))
    b.body("lower", on="cross_2", joint=kt.Revolute("y"), inertia=INERTIA, at=(0, 0, 1))
    b.geometry(Sphere(0.1), on="upper").geometry(Sphere(0.1), on="lower")
    with pytest.warns(ModelWarning, match="no two of its 2 solid shapes are a pair"):
        assert Scene(b.build()).pairs == ()
    b.geometry(Sphere(0.1), on="cross", at=(0, 0, 1), name="pin")
    assert Scene(b.build()).pair_names == ("upper/lower",)
