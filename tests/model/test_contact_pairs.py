"""Surfaces and pairs of shapes that a model carries: kept, written, edited and checked."""

import pickle

import pytest

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model import attach, extract, floating, lump_fixed, reroot
from kinetree.model.geometry import Box, ContactPair, Sphere, Surface
from kinetree.writers.native import to_toml

RUBBER = Surface(
    friction=0.9, torsion=0.01, restitution=0.5, contype=2, conaffinity=6, priority=1,
    velocity=(0.5, 0.0, 0.0),
)  # fmt: skip


def builder():
    I = kt.shapes.sphere(0.1, mass=1.0)
    b = kt.ModelBuilder("crane")
    b.body("arm", joint=kt.Revolute("z"), inertia=I)
    b.body("hook", on="arm", joint=kt.Fixed(), inertia=I, at=(0, 0, 1))
    b.body("load", on="hook", joint=kt.Revolute("x"), inertia=I, at=(0, 0, 1))
    b.geometry(Sphere(0.1), on="arm", surface=RUBBER)
    b.geometry(Sphere(0.1), on="hook", name="ball").geometry(Box((1, 1, 1)), on="load")
    b.contact_pair("arm", "ball", surface=Surface(condim=1, margin=0.02, gap=0.01), name="rub")
    return b.exclude("arm[0]", "load")


@pytest.mark.parametrize(
    "again",
    [
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: kt.Model.from_dict(m.to_dict()),
        lambda m: kt.loads(to_toml(m), format="toml"),
        lambda m: m.replace(name="crane"),
    ],
    ids=["pickle", "dictionary", "toml", "replace"],
)
def test_kept_by_every_way_of_writing(again):
    m = builder().build()
    found = again(m)
    assert found == m
    assert found.contact_pairs == m.contact_pairs
    assert [g.surface for g in found.geometry] == [RUBBER, None, None]
    assert m != m.replace(contact_pairs=()) != m.replace(contact_pairs=m.contact_pairs[:1])


def test_links_keep_their_shapes_and_pairs_when_bodies_are_merged_moved_and_mounted():
    m = builder().build()
    lumped = lump_fixed(m)
    assert [g.link for g in lumped.geometry] == ["", "hook", ""]
    assert lumped.contact_pairs == m.contact_pairs
    assert kt.loads(to_toml(lumped), format="toml") == lumped
    assert reroot(floating(m), "load").contact_pairs == m.contact_pairs

    two = attach(m, lumped, on="load", prefix="other ")
    assert [(p.first, p.second) for p in two.contact_pairs] == [
        ("arm", "ball"), ("arm[0]", "load"), ("other arm", "other ball"),
        ("other arm[0]", "other load"),
    ]  # fmt: skip
    assert [g.link for g in two.geometry[3:]] == ["", "other hook", ""]
    assert [g.name for g in two.geometry] == ["", "ball", "", "", "other ball", ""]


def test_pairs_go_with_the_shapes_and_bodies_that_they_name():
    m = builder().build()
    assert extract(m, "load").contact_pairs == ()
    without_ball = m.replace(geometry=m.geometry[:1])
    assert without_ball.contact_pairs == m.contact_pairs[1:]


@pytest.mark.parametrize(
    ("surface", "message"),
    [
        (Surface(friction=-1.0), "friction of the surface of .* must not be negative, got -1"),
        (Surface(restitution=2.0), "restitution of the surface .* must be from 0 to 1, got 2"),
        (Surface(condim=2), "condim of the surface of .* must be 1, 3, 4 or 6, got 2"),
        (Surface(margin=float("inf")), "margin of the surface .* must be finite"),
        (Surface(priority=0.5), "priority of the surface of .* must be an integer, got 0.5"),  # type: ignore[arg-type]
        (Surface(velocity=(1.0, 0.0)), "velocity of the surface of .* must be three numbers"),  # type: ignore[arg-type]
        (
            {"friction": 1},
            "surface of geometry on body 'base' must be a geometry.Surface, got dict",
        ),
    ],
)
def test_surfaces_without_meaning_are_rejected(surface, message):
    with pytest.raises(ModelError, match=message):
        kt.ModelBuilder("m").geometry(Sphere(1.0), surface=surface).build()


def test_unknown_names_are_rejected_with_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"no shape, link, frame or body 'bal'.*'ball'"):
        builder().exclude("arm", "bal").build()
    with pytest.raises(ModelError, match="needs ContactPair objects here, got tuple"):
        builder().build().replace(contact_pairs=(("arm", "ball"),))
    pair = ContactPair("arm", "ball", surface=Surface(friction=-1.0))
    with pytest.raises(ModelError, match="surface of contact pair 'arm', 'ball' must not be neg"):
        builder().build().replace(contact_pairs=(pair,))


def test_the_summary_counts_pairs():
    assert "contact pairs: 1 that touch, 1 that do not" in builder().build().summary()
