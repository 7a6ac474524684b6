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
def test_files_of_other_things_are_refused(tmp_path, suffix):
    path = tmp_path / f"other{suffix}"
    with pytest.raises(kt.LoadError, match="no such file"):
        kt.Trajectory.load(path)
    path.write_bytes(b"something else altogether, and long enough to be read")
    with pytest.raises(kt.LoadError, match="not a trajectory of kinetree"):
        kt.Trajectory.load(path)


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(kt.LoadError, match="not a trajectory of kinetree"):
        kt.Trajectory.load(path)
    np.savez(path, about=np.array(json.dumps({"format": "kinetree trajectory 99"})))
    with pytest.raises(kt.LoadError, match="format is 'kinetree trajectory 99'"):
        kt.Trajectory.load(path)


def test_an_unknown_suffix_is_named(tmp_path, motion):
    with pytest.raises(kt.LoadError, match=r"\.npz, \.parquet, \.nc; this one ends in '\.h5'"):
        motion.save(tmp_path / "motion.h5")


@pytest.mark.parametrize(
    ("act", "package", "extra"),
    [
        (lambda m, p: m.save(p / "m.parquet"), "pyarrow", "tables"),
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
