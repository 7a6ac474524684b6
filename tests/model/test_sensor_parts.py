"""Sensors as parts of models: named, checked, carried along by edits and files."""

import json

import pytest
from support.closeness import assert_close
from support.mechanisms import gripper

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model import (
    MechanismGraph,
    Model,
    Sensor,
    attach,
    extract,
    floating,
    geometry,
    lock,
    lump_fixed,
    reroot,
)
from kinetree.model.sensors import KINDS, size_of
from kinetree.samples import random_inertia, random_placement
from kinetree.writers.native import to_toml


def sensed(rng):
    """A gripper with a sensor of every kind of object."""
    return gripper(rng).replace(
        sensors=(
            Sensor("angle", "jointpos", "lead", offset=0.25, noise=0.01),
            Sensor("ball", "ballquat", "socket"),
            Sensor("motor force", "actuatorfrc", "motor", cutoff=2.0),
            Sensor("imu", "gyro", "tip", placement=random_placement(rng)),
            Sensor("palm", "framepos", "palm", "right", reference_placement=random_placement(rng)),
            Sensor("wrist", "force", "tip"),
            Sensor("compass", "magnetometer", "palm", data=(0.0, -0.5, 0.0)),
            Sensor("foot", "touch", "tip", shape=geometry.Box((0.1, 0.2, 0.3))),
            Sensor("gap", "distance", "case", "right", cutoff=1.0),
            Sensor("energy", "e_kinetic"),
        )
    )


def names(model):
    return [s.name for s in model.sensors]


def same(a, b):
    return a.to_dict().get("sensors") == b.to_dict().get("sensors")


def test_builders_take_sensors(rng):
    b = kt.ModelBuilder().body("a", joint=kt.Revolute("x"), joint_name="A")
    b.sensor("s", "gyro", of="a", at=(1, 2, 3), noise=0.1).sensor("q", "jointpos", of="A")
    s, q = b.build().sensors
    assert (s.kind, s.of, s.noise, s.placement.r.tolist()) == ("gyro", "a", 0.1, [1, 2, 3])
    assert (q.kind, q.of) == ("jointpos", "A")


def test_sizes_are_those_of_kinds_and_joints(rng):
    model = sensed(rng)
    sizes = [size_of(model, s) for s in model.sensors]
    assert sizes == [1, 4, 1, 3, 3, 3, 3, 1, 1, 1]
    assert size_of(model, Sensor("f", "jointpos", "float")) == 7
    assert size_of(model, Sensor("f", "jointvel", "float")) == 6
    assert {k.of for k in KINDS.values()} == {"joint", "tendon", "actuator", "frame", "shape", ""}


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (Sensor("s", "gyros", "tip"), r"kind 'gyros', .* did you mean 'gyro'"),
        (Sensor("s", "gyro", "tipp"), r"what sensor 's' \(gyro\) is of, a frame, is 'tipp', which"),
        (Sensor("s", "gyro", "tip", "palm"), "has no reference, got reference='palm'"),
        (Sensor("s", "framepos", "tip", "pal"), "the reference of sensor 's' is 'pal', which"),
        (Sensor("s", "distance", "case"), "the reference of sensor 's' is ''"),
        (Sensor("s", "jointpos", "string"), "a joint, is 'string'"),
        (Sensor("s", "ballquat", "lead"), "must be a ball joint; 'lead' is a Revolute"),
        (Sensor("s", "jointlimitpos", "float"), "a joint of one variable; 'float' is a Free"),
        (Sensor("s", "clock", "tip"), "of the whole mechanism, got of='tip'"),
        (Sensor("s", "gyro", "tip", noise=-1.0), "noise of sensor 's' must not be negative"),
        (Sensor("s", "magnetometer", "tip"), "needs the magnetic field in base coordinates"),
        (Sensor("s", "force", "tip", beyond=("x",)), "a body beyond sensor 's' is 'x'"),
        (Sensor("", "clock"), "sensor name must be a non-empty string"),
        ("gyro", "a model needs Sensor objects here, got str"),
    ],
)
def test_sensors_of_nothing_are_rejected(rng, sensor, message):
    with pytest.raises((ModelError, UnknownNameError), match=message):
        gripper(rng).replace(sensors=(sensor,))


def test_they_are_part_of_content_and_summary(rng):
    model = sensed(rng)
    bare = model.replace(sensors=())
    assert model != bare
    assert model == model.replace(sensors=model.sensors)
    noisy = kt.Sensor("energy", "e_kinetic", noise=1.0)
    assert model != model.replace(sensors=(*model.sensors[:-1], noisy))
    assert "sensors: angle, ball, motor force, imu, palm" in model.summary()
    assert "sensors" not in bare.to_dict()


def test_files_and_dictionaries_keep_them(rng):
    model = lump_fixed(sensed(rng).replace(loops=()))
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    assert same(again, model)
    model = model.replace(geometry=[g for g in model.geometry if g.name])
    text = to_toml(model)
    assert kt.loads(text) == model


class TestEdits:
    def test_locked_joints_and_lost_objects_take_theirs_along(self, rng):
        model = sensed(rng)
        assert names(lock(model, {"lead": 0.5})) == [
            n for n in names(model) if n not in ("angle", "motor force")
        ]
        assert "wrist" not in names(model.replace(frames=()))
        assert "gap" not in names(model.replace(geometry=()))

    def test_lumping_keeps_what_is_beyond_the_weld(self, rng):
        model = sensed(rng).replace(loops=())
        (force,) = (s for s in lump_fixed(model).sensors if s.name == "wrist")
        assert force.beyond == ("ball",)
        pad = model.inertia[model.body_index("pad")]
        moved = pad.transformed(model.frame("tip").placement)
        assert_close(force.inertia.parameters(), moved.parameters())
        whole = lump_fixed(model.replace(sensors=(Sensor("c", "subtreecom", "left"),)))
        assert whole.sensors[0].inertia is None

    def test_a_subtree_has_those_inside(self, rng):
        part = extract(sensed(rng).replace(loops=(), couplings=()), "left")
        assert names(part) == ["angle", "ball", "motor force", "imu", "wrist", "foot", "energy"]

    def test_mounting_renames_and_moves(self, rng):
        other = sensed(rng)
        base = (Sensor("b", "framepos", "base"), Sensor("total", "subtreecom", "base"))
        other = other.replace(sensors=(*other.sensors, *base))
        host = kt.ModelBuilder("h").body("arm", joint=kt.Revolute("z")).build()
        both = attach(host, other, on="arm", at=(0, 0, 1))
        assert names(both) == names(other)
        assert (both.sensors[-2].of, both.sensors[-2].placement.r.tolist()) == ("arm", [0, 0, 1])
        assert both.sensors[-1].beyond == ("palm",)
        prefixed = attach(host, other, on="arm", at=(0, 0, 1), prefix="x_")
        assert [(s.name, s.of) for s in prefixed.sensors[-2:]] == [
            ("x_b", "x_base"),
            ("x_total", "x_base"),
        ]

    def test_graphs_move_them_with_the_frames_of_bodies(self, rng):
        graph = MechanismGraph().body("a", inertia=random_inertia(rng))
        ends = {"predecessor": "base", "successor": "a"}
        graph.joint("A", kt.Revolute("x"), **ends, successor_at=(0.1, 0, 0))
        model = graph.sensor("s", "framepos", of="a").to_model()
        assert model.sensors[0].placement.r.tolist() == [-0.1, 0, 0]
        again = MechanismGraph.from_model(sensed(rng)).to_model()
        assert names(again) == names(sensed(rng))

    def test_a_new_root_is_rejected_for_what_bodies_carry(self, rng):
        model = sensed(rng).replace(couplings=(), loops=(), actuators=())
        with pytest.raises(ModelError, match=r"sensor 'wrist' \(force\) is about what 'tip' carr"):
            reroot(model, "ball")
        kept = model.replace(sensors=[s for s in model.sensors if s.kind != "force"])
        assert names(reroot(kept, "ball")) == names(kept)

    def test_a_floating_base_keeps_all(self, rng):
        fixed = extract(sensed(rng).replace(loops=(), couplings=()), "left")
        assert names(floating(fixed)) == names(fixed)
