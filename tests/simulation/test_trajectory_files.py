"""Trajectories in files and tables: all that was there comes back, and mistakes are named."""

import importlib
import json

import numpy as np
import pytest

import kinetree as kt
from kinetree.integration.events import Event

DOUBLE = kt.samples.double_pendulum()
SATELLITE = kt.samples.satellite()
ARRAYS = ("t", "q", "qd", "tau", "energy", "work", "loop_error")


def one():
    def push(t, q, qd):
        return [np.sin(t), -qd[1]]

    passes = Event(lambda t, q, qd: q[0] - 0.399, name="passes")
    return kt.simulate(DOUBLE, [0.4, 0.1], duration=0.05, dt=1e-2, controller=push, events=[passes])


def batch():
    spin = np.random.default_rng(0).normal(size=(2, 3, SATELLITE.nv))
    return kt.simulate(SATELLITE, SATELLITE.neutral(), spin, duration=0.05, dt=1e-2)


@pytest.fixture(scope="module", params=[one, batch])
def motion(request):
    return request.param()


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".nc"])
def test_what_is_saved_is_loaded(tmp_path, motion, suffix):
    path = motion.save(tmp_path / f"motion{suffix}")
    found = kt.Trajectory.load(path)
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(motion, name)), name
        assert getattr(found, name).dtype == float
    assert found.model == motion.model
    assert found.report == motion.report
    assert len(found.events) == len(motion.events)
    for one, other in zip(found.events, motion.events, strict=True):
        assert (one.t, one.name, one.sample) == (other.t, other.name, other.sample)
        assert np.array_equal(one.qd_after, other.qd_after)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_contact_comes_back(tmp_path):
    slide = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    m = kt.contact.with_ground(slide.geometry(kt.geometry.Sphere(0.1), on="ball").build())
    ground = kt.contact.TimeStepping(kt.contact.Scene(m))
    motion = kt.simulate(m, [0.12], duration=0.1, dt=1e-2, contact=ground)
    for suffix in (".npz", ".parquet", ".nc"):
        found = kt.Trajectory.load(motion.save(tmp_path / f"motion{suffix}"))
        assert np.array_equal(found.contact.force, motion.contact.force)
        assert found.contact.names == motion.contact.names
        assert found.report == motion.report
        assert str(found.report) == str(motion.report)


def test_a_model_with_a_joint_of_the_users_is_given_again(tmp_path):
    slide = kt.joints.CustomJoint(lambda q: kt.xlt(q[0], 0 * q[0], 0 * q[0]), 1)
    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    builder = kt.ModelBuilder("slide")
    builder.body("cart", joint=slide, inertia=inertia)
    model = builder.build()
    motion = kt.simulate(model, [0.0], [1.0], duration=0.02, dt=1e-2)
    path = motion.save(tmp_path / "motion.npz")
    with pytest.raises(kt.LoadError, match="has joints that a file cannot hold; give the model"):
        kt.Trajectory.load(path)
    found = kt.Trajectory.load(path, model)
    assert np.array_equal(found.q, motion.q)
    with pytest.raises(kt.LoadError, match="a motion of another model, 'slide'"):
        kt.Trajectory.load(path, DOUBLE)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".nc"])
def test_files_of_other_things_are_rejected(tmp_path, suffix):
    path = tmp_path / f"other{suffix}"
    with pytest.raises(kt.LoadError, match="no such file"):
        kt.Trajectory.load(path)
    path.write_bytes(b"something else altogether, and long enough to be read")
    with pytest.raises(kt.LoadError, match="not a trajectory of kinetree"):
        kt.Trajectory.load(path)


def test_other_archives_are_rejected(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(kt.LoadError, match="not a trajectory of kinetree"):
        kt.Trajectory.load(path)
    np.savez(path, about=np.array(json.dumps({"format": "kinetree trajectory 99"})))
    with pytest.raises(kt.LoadError, match="format is 'kinetree trajectory 99'"):
        kt.Trajectory.load(path)


def test_an_unknown_suffix_is_named(tmp_path, motion):
    with pytest.raises(kt.LoadError, match=r"\.csv, \.mcap; this one ends in '\.h5'"):
        motion.save(tmp_path / "motion.h5")


@pytest.mark.parametrize(
    ("act", "package", "extra"),
    [
        (lambda m, p: m.save(p / "m.parquet"), "pyarrow", "tables"),
        (lambda m, p: m.save(p / "m.mcap"), "mcap", "mcap"),
        (lambda m, p: m.save(p / "m.nc"), "xarray", "tables"),
        (lambda m, p: m.to_pandas(), "pandas", "tables"),
        (lambda m, p: m.to_xarray(), "xarray", "tables"),
        (lambda m, p: m.plot(), "matplotlib", "plot"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    motion, tmp_path, monkeypatch, act, package, extra
):
    without(monkeypatch, package)
    message = rf'needs the package {package}, .*: pip install "kinetree\[{extra}\]"'
    with pytest.raises(kt.errors.MissingPackageError, match=message):
        act(motion, tmp_path)
    assert not list(tmp_path.iterdir())


def test_netcdf_needs_one_of_three_packages(motion, tmp_path, monkeypatch):
    without(monkeypatch, "netCDF4", "h5netcdf", "scipy")
    with pytest.raises(
        kt.errors.MissingPackageError, match="netCDF4, h5netcdf or scipy beside xarray"
    ):
        motion.save(tmp_path / "motion.nc")


def without(monkeypatch, *packages):
    real = importlib.import_module

    def imported(name, *rest):
        if name.partition(".")[0] in packages:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", imported)


def test_datasets_are_labelled_by_joint():
    motion = one()
    data = motion.to_xarray()
    assert data["q"].dims == ("time", "position")
    assert np.array_equal(data["q"].sel(position="elbow"), motion.q[:, 1])
    assert np.array_equal(data["tau"].sel(velocity="shoulder"), motion.tau[:, 0])
    assert data["energy"].attrs["units"] == "J"
    assert data["position_unit"].values.tolist() == ["rad", "rad"]
    assert data["time"].attrs["units"] == "s"
    assert batch().to_xarray()["qd"].dims == ("time", "motion_0", "motion_1", "velocity")


def test_events_are_kept(tmp_path):
    found = kt.Trajectory.load(one().save(tmp_path / "motion.npz"))
    assert [event.name for event in found.events] == ["passes"]


def test_tables_have_a_column_for_each_variable():
    motion = one()
    table = motion.to_pandas()
    assert table.index.name == "time"
    assert np.array_equal(table["q.elbow"], motion.q[:, 1])
    assert list(table.columns) == [
        "q.shoulder", "q.elbow", "qd.shoulder", "qd.elbow", "tau.shoulder", "tau.elbow",
        "energy", "work", "loop_error",
    ]  # fmt: skip
    many = batch()
    rows = many.to_pandas()
    assert rows.index.names == ["time", "motion_0", "motion_1"]
    name = SATELLITE.joint_names[0]
    assert rows[f"qd.{name}.wy"].iloc[4] == many.qd[0, 1, 1, 1]


# --- For other programs --------------------------------------------------------------------------


def test_a_csv_file_is_what_pandas_would_write_and_read(tmp_path, motion):
    path = motion.save(tmp_path / "motion.csv")
    table = importlib.import_module("pyarrow.csv").read_csv(path).to_pandas()
    index = [name for name in table.columns if name.partition("_")[0] in ("time", "motion")]
    assert table.set_index(index).equals(motion.to_pandas())
    found = kt.Trajectory.load(path, motion.model)
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(motion, name)), name
    with pytest.raises(kt.LoadError, match="a CSV file holds numbers alone; give the model"):
        kt.Trajectory.load(path)


@pytest.mark.parametrize(
    "text", ["", "time\nx\n", "time,q.shoulder\n0\n", "time,q.a\n0,1\n", "\0", "time,energy\n0,1\n"]
)
def test_a_csv_file_of_something_else_is_named(tmp_path, text):
    path = tmp_path / "motion.csv"
    path.write_text(text)
    with pytest.raises(kt.LoadError, match=r"motion\.csv: "):
        kt.Trajectory.load(path, DOUBLE)


def bag(path):
    """Messages by topic, decoded by the reader of the MCAP project."""
    reader = importlib.import_module("mcap.reader")
    decoder = importlib.import_module("mcap_ros2.decoder").DecoderFactory()
    found = {}
    with path.open("rb") as file:
        messages = reader.make_reader(file, decoder_factories=[decoder]).iter_decoded_messages()
        for message in messages:
            found.setdefault(message.channel.topic, []).append(
                (message.message.log_time, message.decoded_message)
            )
    return found


def matrix(transform):
    t, p = transform.translation, transform.rotation
    found = np.eye(4)
    found[:3, :3] = kt.spatial.rotation.rotation_from_quaternion((p.w, p.x, p.y, p.z)).T
    found[:3, 3] = t.x, t.y, t.z
    return found


def test_a_bag_holds_joint_states_and_transforms(tmp_path):
    """Joints of one freedom by name; bodies and frames where ``kt.pose`` says they are."""
    model = kt.samples.quadruped()
    q, qd = model.posture("home").q, 0.3 * np.ones(model.nv)
    motion = kt.simulate(model, q, qd, duration=0.02, dt=1e-2, controller=lambda t, q, qd: -qd)
    found = bag(motion.save(tmp_path / "motion.mcap"))
    assert set(found) == {"/joint_states", "/tf", "/tf_static"}
    assert [time for time, _ in found["/joint_states"]] == [0, 10_000_000, 20_000_000]
    legs = [name for name in model.joint_names if name != "root"]
    ((_, fixed),) = found["/tf_static"]
    frames = {t.child_frame_id: (t.header.frame_id, matrix(t.transform)) for t in fixed.transforms}
    assert set(frames) == {f.name for f in model.frames}
    for k, ((_, state), (_, tf)) in enumerate(
        zip(found["/joint_states"], found["/tf"], strict=True)
    ):
        stamp = state.header.stamp
        assert stamp.sec + 1e-9 * stamp.nanosec == pytest.approx(motion.t[k])
        assert list(state.name) == legs
        for values, name in ((state.position, "q"), (state.velocity, "qd"), (state.effort, "tau")):
            expected = [getattr(motion[j], name)[k].item() for j in legs]
            assert np.array_equal(values, expected), name
        at = {model.base_name: np.eye(4)}
        for t in tf.transforms:  # parents come first
            at[t.child_frame_id] = at[t.header.frame_id] @ matrix(t.transform)
        for name in model.body_names[1:]:
            assert np.allclose(at[name], kt.pose(model, motion.q[k], name), atol=1e-14)
        for name, (parent, place) in frames.items():
            assert np.allclose(at[parent] @ place, kt.pose(model, motion.q[k], name), atol=1e-14)


def test_a_bag_holds_one_motion_and_is_not_loaded(tmp_path):
    with pytest.raises(kt.ShapeError, match=r"a batch of shape \(2, 3\); choose one"):
        batch().save(tmp_path / "motion.mcap")
    assert list(tmp_path.iterdir()) == []
    path = batch().motion((0, 1)).save(tmp_path / "motion.mcap")
    with pytest.raises(kt.LoadError, match=r"save it as \.npz, \.parquet or \.nc"):
        kt.Trajectory.load(path)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".nc", ".csv"])
def test_a_rollout_is_saved_with_all_its_motions(tmp_path, suffix):
    q0 = np.random.default_rng(1).normal(size=(2, 3, 2))
    rollout = kt.rollout(DOUBLE, q0, dt=1e-2, steps=5)
    found = kt.Trajectory.load(rollout.save(tmp_path / f"many{suffix}"), DOUBLE)
    for name in ("t", "q", "qd", "tau", "energy", "work"):
        assert np.array_equal(getattr(found, name), getattr(rollout, name)), name
    one = rollout.motion((1, 2))
    for name in ARRAYS:
        assert np.array_equal(getattr(found.motion((1, 2)), name), getattr(one, name)), name


def test_a_rollout_whose_samples_differ_warns_that_a_file_has_one_model(tmp_path):
    masses = {"mass:upper": np.array([1.0, 2.0])}
    rollout = kt.rollout(DOUBLE, np.ones((2, 2)), dt=1e-2, steps=2, parameters=masses)
    with pytest.warns(kt.errors.ModelWarning, match=r"differ in mass:upper, and a trajectory"):
        rollout.save(tmp_path / "many.npz")
