"""CuPy arrays, as far as they can be tested without a device: the arguments of a launch."""

import sys

import numpy as np
import pytest
from support import fake_cupy
from support.backends import general_in_cuda

import kinetree as kt


@pytest.fixture
def model():
    return kt.samples.double_pendulum()


@pytest.fixture
def launches(monkeypatch):
    """Launches so far; ``cupy`` is there while this is used."""
    found = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", fake_cupy.runtime(found))
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    yield found
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


def on_device(x, dtype=None):
    return sys.modules["cupy"].asarray(x, dtype)


def states(rng, batch=(4,), dtype="float64"):
    return [on_device(rng.normal(size=(*batch, 2)), dtype) for _ in range(3)]


def test_one_launch_on_the_current_stream(model, launches, rng):
    q, qd, qdd = states(rng)
    found = kt.inverse_dynamics(model, q, qd, qdd)
    assert type(found) is fake_cupy.ndarray
    assert launches == [("inverse_dynamics", "float64", 0, (2, 2, 2), 4, 7)]
    expected = kt.inverse_dynamics(model, *map(np.array, (q, qd, qdd)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("specialised")  # general code is counted first
def test_a_call_again_takes_the_short_way_and_others_do_not(model, launches, rng, monkeypatch):
    given = states(rng)
    kernel = kt.inverse_dynamics.definition.kernel(model)
    expected = kt.inverse_dynamics(model, *map(np.array, given))
    kt.inverse_dynamics(model, *(np.array(x)[0] for x in given))  # compiled for single samples
    kt.inverse_dynamics(model, *given)
    seen, lean = [], kernel.lean
    monkeypatch.setattr(kernel, "lean", lambda *arrays: (seen.append(arrays), lean(*arrays))[1])
    np.testing.assert_array_equal(kt.inverse_dynamics(model, *given), expected)
    assert not seen
    assert launches[-1] == launches[0]
    np.testing.assert_array_equal(
        kt.inverse_dynamics(model, *map(np.array, given)), expected, strict=True
    )
    kt.inverse_dynamics(model, *(x[:3] for x in given))
    assert len(seen) == 2


def test_what_samples_share_and_what_has_gaps_is_not_copied(model, launches, rng):
    q, _, qdd = states(rng)
    wide = on_device(rng.normal(size=(4, 6)))
    found = kt.inverse_dynamics(model, q[0], wide[:, 2:4], qdd[::-1].T.copy().T)
    assert launches[0][3] == (0, 6, 2)  # the last is not in rows, and is copied
    expected = kt.inverse_dynamics(model, *map(np.array, (q[0], wide[:, 2:4], qdd[::-1])))
    np.testing.assert_array_equal(found, expected)


def test_axes_of_a_batch_broadcast(model, launches, rng):
    (q, *_), (_, qd, qdd) = states(rng, (3, 1)), states(rng, (5,))
    found = kt.inverse_dynamics(model, q, qd, qdd)
    assert found.shape == (3, 5, 2)
    expected = kt.inverse_dynamics(model, *map(np.array, (q, qd, qdd)))
    np.testing.assert_array_equal(found, expected)
    assert kt.inverse_dynamics(model, q[:0], qd, qdd).shape == (0, 5, 2)
    assert len(launches) == 1  # nothing is launched for nothing


def test_precision_and_constants(model, launches, rng):
    single = states(rng, dtype="float32")
    found = kt.zero_moment_point(model, *single)  # of a point that is a tuple by default
    assert found.dtype == "float32"
    assert launches[0][1:4] == ("float32", 0, (2, 2, 2, 0))
    kt.inverse_dynamics(model, *single[:2], single[2].astype(float))
    assert launches[1][1] == "float64"


def test_rollouts_take_one_launch_for_each_state_that_is_stored(model, launches, rng):
    q0, qd0, tau = states(rng)
    options = {"dt": 0.01, "integrator": "euler"}
    found = kt.rollout(model, q0, qd0, tau[None], steps=10, store_every=5, **options)
    assert [name for name, *_ in launches] == ["rollout", "rollout"]
    given = [np.array(x) for x in (q0, qd0, tau[None])]
    expected = kt.rollout(model, *given, steps=10, store_every=5, **options)
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.work, expected.work)
    launches.clear()
    kt.rollout(model, q0, qd0, on_device(rng.normal(size=(6, 4, 2))), steps=6, **options)
    assert len(launches) == 6


def test_servos_of_rollouts_act_on_the_device(model, launches, rng):
    servos = [kt.Actuator(f"s{i}", i, gain=(20.0,), bias=(0.0, -20.0, -2.0)) for i in (1, 2)]
    driven, (q0, qd0, u) = model.replace(actuators=servos), states(rng)
    options = {"dt": 0.01, "integrator": "euler", "steps": 6, "store_every": 3}
    for controls in (u[None], on_device(rng.normal(size=(6, 4, 2)))):
        found = kt.rollout(driven, q0, qd0, controls=controls, **options)
        expected = kt.rollout(
            driven, np.array(q0), np.array(qd0), controls=np.array(controls), **options
        )
        np.testing.assert_array_equal(found.q, expected.q)
    assert len(launches) == 2 + 6


def test_configurations_move_on_the_device_and_the_host_gives_arrays_back(model, launches, rng):
    q, step, _ = states(rng)
    found = model.difference(q, model.integrate(q, step))
    np.testing.assert_allclose(found, step, rtol=0, atol=1e-15)
    assert [name for name, *_ in launches] == ["integrate", "difference"]
    linkage = kt.samples.four_bar()
    closed = kt.loops.assemble(linkage, on_device(linkage.neutral()))
    target = kt.pose(model, np.array(q[0]), "lower")[:3, 3]
    reached = kt.inverse_kinematics(model, "lower", on_device(target)).require()
    assert type(closed) is type(reached) is fake_cupy.ndarray


def test_errors_name_what_does_not_fit(model, launches, rng):
    q, qd, qdd = states(rng)
    qd.place = 1
    with pytest.raises(
        kt.errors.DeviceError, match="got q on device 0, qd on device 1; copy them with"
    ):
        kt.inverse_dynamics(model, q, qd, qdd)
    with pytest.raises(kt.ShapeError, match="gravity_force: q must be of float64 or float32, got"):
        kt.gravity_force(model, on_device(np.zeros((4, 2)), "float16"))
    with pytest.raises(kt.errors.ArrayKindError, match="q is a CuPy array, qd is a NumPy array"):
        kt.inverse_dynamics(model, q, np.array(qd), qdd)
    many = on_device(np.broadcast_to(np.zeros(2), (10**9, 2)))
    with pytest.raises(
        kt.errors.DeviceMemoryError, match=r"mass_matrix: no memory .* \(1000000000,\)"
    ):
        kt.mass_matrix(model, many)


# --- which code runs -----------------------------------------------------------------------------


@pytest.fixture
def general_launches(monkeypatch, tmp_path, launches):
    """Launches by CUDA C of loops over tables."""
    found = fake_cupy.runtime(launches, compile_loops=general_in_cuda(tmp_path))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", found)
    return launches


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_general_code_runs_where_the_tier_selects_it(model, general_launches, rng, dtype):
    given = states(rng, dtype=dtype)
    kernel = kt.inverse_dynamics.definition.kernel(model)
    with kt.tier("general"):
        found = [kt.inverse_dynamics(model, *given) for _ in range(3)]
        assert kernel.tier == "general"
        assert len(kernel.plans) == 1
    assert not kernel.plans  # another tier may run now
    expected = kt.inverse_dynamics(model, *(np.array(x, float) for x in given))
    for x in found:
        error = np.max(np.abs(x - expected)) / np.max(np.abs(expected))
        assert error < {"float64": 1e-14, "float32": 1e-5}[dtype]
    assert [launch[4] for launch in general_launches] == [4, 4, 4]


def test_by_itself_a_device_counts_samples_until_code_for_the_robot_pays(
    model, general_launches, rng, monkeypatch
):
    monkeypatch.setattr("kinetree.codegen.tiers.MANY", 10)
    given, kernel = states(rng), kt.inverse_dynamics.definition.kernel(model)
    with kt.tier("auto"):
        tiers = []
        for _ in range(4):
            kt.inverse_dynamics(model, *given)
            tiers.append((kernel.tier, len(kernel.plans)))
    assert tiers == [("general", 1), ("general", 0), ("specialised", 1), ("specialised", 1)]


def test_code_of_its_own_is_not_built_for_a_very_large_robot(general_launches, rng, monkeypatch):
    monkeypatch.setattr("kinetree.codegen.tiers.MANY", 1)
    monkeypatch.setattr("kinetree.codegen.runtime.kernel._LARGE", 5)
    model = kt.samples.chain(6)
    given = [on_device(rng.normal(size=(4, 6))) for _ in range(3)]
    with kt.tier("auto"):
        found = kt.inverse_dynamics(model, *given)
    kernel = kt.inverse_dynamics.definition.kernel(model)
    assert "program" not in vars(kernel)
    np.testing.assert_allclose(found, kt.inverse_dynamics(model, *map(np.array, given)), rtol=1e-12)
