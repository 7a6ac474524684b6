"""``kt.sensors``: a table of named readings of states and motions."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ContactError, ModelError, ShapeError, UnknownNameError
from kinetree.model import geometry


def arm(**more):
    """Two links with a motor, an IMU and a force sensor."""
    b = kt.ModelBuilder("arm")
    solid = kt.shapes.box(0.1, 0.1, 0.5, mass=2, at=(0, 0, 0.25))
    b.body("upper", joint=kt.Revolute("y"), joint_name="shoulder", inertia=solid)
    b.body("lower", on="upper", at=(0, 0, 0.5), joint=kt.Prismatic("x"), joint_name="rail",
           inertia=solid)  # fmt: skip
    b.frame("tool", on="lower", at=kt.rotx(0.3) @ kt.xlt(0, 0, 0.5))
    b.actuator("motor", joint="shoulder", gear=5)
    b.sensor("angle", "jointpos", of="shoulder").sensor("speed", "jointvel", of="rail")
    b.sensor("imu_acc", "accelerometer", of="tool").sensor("imu_gyro", "gyro", of="tool")
    b.sensor("wrist", "force", of="lower").sensor("torque", "actuatorfrc", of="motor")
    return b.build()


def states(model, rng, *batch):
    q = model.random_configuration(rng, int(np.prod(batch))).reshape(*batch, -1)
    return q, rng.normal(size=(*batch, model.nv)), rng.normal(size=(*batch, model.nv))


class TestTable:
    def test_it_is_a_mapping_with_units_that_prints(self):
        table = kt.sensors(arm())
        assert list(table) == ["angle", "speed", "imu_acc", "imu_gyro", "wrist", "torque"]
        assert (len(table), table.size) == (6, 12)
        assert table["imu_gyro"].kind == "gyro"
        assert table.at("wrist") == slice(8, 11)
        assert table.units["speed"] == "m/s"
        assert [*map(str.split, repr(table).splitlines())][:3] == [
            ["sensor", "kind", "of", "size", "unit"],
            ["angle", "jointpos", "shoulder", "1", "rad"],
            ["speed", "jointvel", "rail", "1", "m/s"],
        ]
        with pytest.raises(UnknownNameError, match=r"'imu_gyr', .*; did you mean 'imu_gyro'"):
            table["imu_gyr"]

    def test_it_is_made_once_and_of_some_or_of_others(self, rng):
        model = arm()
        assert kt.sensors(model) is kt.sensors(model)
        q, qd, qdd = states(model, rng, 3)
        whole = kt.sensors(model)(q, qd, qdd, controls=np.ones((3, 1)))
        some = kt.sensors(model, ["imu_gyro", kt.Sensor("tip", "framepos", "tool")])
        assert some.names == ("imu_gyro", "tip")
        readings = some(q, qd)
        assert_close(readings["imu_gyro"], whole["imu_gyro"])
        assert_close(readings["tip"], kt.pose(model, q, "tool")[..., :3, 3])
        with pytest.raises(UnknownNameError, match="a sensor is 'imu', which the model does not"):
            kt.sensors(model, ["imu"])

    def test_readings_have_names_batches_and_a_row(self, rng):
        model = arm()
        q, qd, qdd = states(model, rng, 2, 3)
        u = rng.normal(size=(2, 3, 1))
        readings = kt.sensors(model)(q, qd, qdd, controls=u)
        assert readings.values.shape == (2, 3, 12)
        assert readings["imu_acc"].shape == (2, 3, 3)
        assert_close(readings["angle"][..., 0], q[..., 0])
        assert_close(readings["torque"], u)
        row = np.concatenate([readings[name] for name in readings], axis=-1)
        assert_close(row, readings.values)
        wrench = kt.joint_reactions(model, q, qd, qdd, joint="rail")
        assert_close(readings["wrist"], wrench[..., 3:], condition=10)
        one = kt.sensors(model)(q[0, 0], qd[0, 0], qdd[0, 0], controls=u[0, 0])
        assert_close(one.values, readings.values[0, 0], condition=10)
        assert repr(one).splitlines()[0].split() == ["angle", f"{q[0, 0, 0]:.6g}", "rad"]
        assert repr(readings) == "<Readings of 6 sensors, (2, 3, 12)>"

    def test_compiled_code_agrees_with_the_source(self, rng):
        model = arm()
        given = (*states(model, rng), rng.normal(size=1))
        kernel = kt.sensor_readings.definition.kernel(model, ("qd", "qdd", "controls"))
        readings = kt.sensor_readings(model, *given[:3], controls=given[3])
        assert_close(readings, kernel.reference([np.asarray(x) for x in given]), condition=10)

    def test_it_has_derivatives(self, rng):
        model = kt.sensors(arm(), ["imu_acc", "imu_gyro", "wrist"]).model
        q, qd, qdd = states(model, rng)
        for name, at in (("q", 0), ("qd", 1), ("qdd", 2)):
            found = kt.differentiate(kt.sensor_readings, wrt=name)(model, q, qd, qdd)
            for k in range(model.nv):
                moved = [q.astype(complex), qd.astype(complex), qdd.astype(complex)]
                moved[at][k] += 1e-30j
                expected = np.imag(kt.sensor_readings(model, *moved)) / 1e-30
                assert_close(found[:, k], expected, condition=100)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, r"sensor 'speed' of model 'arm' \(jointvel\) needs the veloc"),
            ({"qd": [0, 0]}, r"'imu_acc' .*\(accelerometer\) needs the accelerations qdd, or"),
            ({"qd": [0, 0], "qdd": [0, 0]}, r"'torque' .* needs the controls of the actuators"),
        ],
    )
    def test_what_is_missing_is_named(self, given, message):
        with pytest.raises(ShapeError, match=message):
            kt.sensors(arm())(np.zeros(2), **given)


def test_a_sensor_between_merged_bodies_has_no_external_forces(rng):
    b = kt.ModelBuilder().body("a", joint=kt.Revolute("x"), inertia=kt.shapes.sphere(0.1, mass=1))
    b.body("b", on="a", joint=kt.Fixed(), inertia=kt.shapes.sphere(0.1, mass=1), at=(0, 0, 1))
    whole = b.sensor("f", "force", of="b").build()
    lumped = kt.edit.lump_fixed(whole)
    q, qd, qdd = states(whole, rng)
    assert_close(*(kt.sensor_readings(m, q, qd, qdd) for m in (whole, lumped)), condition=10)
    with pytest.raises(ModelError, match=r"'f' .* between bodies that were merged, and which"):
        kt.sensor_readings(lumped, q, qd, qdd, f_ext=np.zeros((1, 6)))
    push = np.array([[0, 0, 0, 1, 2, 3], [0, 0, 0, 4, 5, 6.0]])
    E = kt.pose(whole, q, "b")[:3, :3].T
    change = kt.sensor_readings(whole, q, qd, qdd, f_ext=push) - kt.sensor_readings(
        whole, q, qd, qdd
    )
    assert_close(change, -E @ push[1, 3:], condition=100)


@pytest.mark.filterwarnings("ignore::kinetree.errors.IndeterminateWarning")
def test_forces_of_loops_are_those_of_the_reactions(rng):
    linkage = kt.samples.four_bar()
    body = linkage.body_names[2]
    model = linkage.replace(sensors=[kt.Sensor(k, k, body) for k in ("torque", "force")])
    q = kt.loops.assemble(model)
    qd = kt.loops.project_velocity(model, q, rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    expected = kt.joint_reactions(model, q, qd, tau=tau, joint=model.joint_names[1])
    assert_close(kt.sensor_readings(model, q, qd, tau=tau), expected, condition=1e4)
    with pytest.raises(ShapeError, match=r"forces of loop .*: it needs the joint forces tau"):
        kt.sensor_readings(model, q, qd, 0 * qd)


class TestMotion:
    def test_readings_along_a_motion_are_those_of_its_states(self, rng):
        model = arm()
        motion = kt.simulate(model, [0.3, 0.1], duration=0.2, dt=0.01, controls=[0.4])
        readings = kt.sensors(model)(motion)
        assert readings.values.shape == (len(motion), 12)
        u = motion.controls
        again = kt.sensors(model)(motion.q, motion.qd, controls=u)
        assert_close(readings.values, again.values, condition=100)
        with pytest.raises(ModelError, match="a trajectory says all that sensors depend on"):
            kt.sensors(model)(motion, motion.qd)

    def test_clocks_and_batches(self, rng):
        model = kt.samples.double_pendulum()
        model = model.replace(sensors=[kt.Sensor("t", "clock"), kt.Sensor("e", "e_kinetic")])
        q = rng.normal(size=(3, 2))
        motion = kt.simulate(model, q, duration=0.05, dt=0.01)
        readings = kt.sensors(model)(motion)
        assert_close(readings["t"][:, 1, 0], motion.t)
        energy = kt.kinetic_energy(model, motion.q, motion.qd)
        assert_close(readings["e"][..., 0], energy, condition=10)

    @pytest.mark.parametrize("compiled", [True, False])
    def test_loops_and_forces_in_python(self, compiled):
        model = kt.samples.four_bar()
        sensor = kt.Sensor("imu", "accelerometer", model.body_names[2])
        model = model.replace(sensors=[sensor])
        push = np.array([0.3, 0.0, 0.0])
        force = (lambda model, t, q, qd: push) if compiled else (lambda m, t, q, qd: push.tolist())
        options = {"forces": force, "duration": 0.05, "dt": 0.01}
        motion = kt.simulate(model, kt.loops.assemble(model), **options)
        tau = push + kt.passive_force(model, motion.q, motion.qd)
        expected = kt.sensor_readings(model, motion.q, motion.qd, tau=tau)
        assert_close(kt.sensors(model)(motion).values, expected, condition=1e4)


def ball():
    b = kt.ModelBuilder("ball")
    b.body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=2.0))
    b.geometry(geometry.Plane(), name="ground")
    b.geometry(geometry.Sphere(0.1), on="ball", name="shell")
    b.sensor("imu", "accelerometer", of="ball").sensor("carried", "force", of="ball")
    b.sensor("foot", "touch", of="ball", at=(0, 0, -0.1), shape=geometry.Box((0.3, 0.3, 0.02)))
    b.sensor("aside", "touch", of="ball", at=(0.1, 0.1, -0.1), shape=geometry.Sphere(0.05))
    b.sensor("gap", "distance", of="shell", reference="ground", cutoff=0.02)
    return b.build()


class TestContact:
    @pytest.mark.parametrize("contact", [kt.contact.TimeStepping, kt.contact.EventDriven])
    def test_a_ball_on_the_ground_feels_its_weight(self, contact, tmp_path):
        model = ball()
        q, scene = model.neutral(), kt.contact.Scene(model)
        q[2] = 0.15
        motion = kt.simulate(model, q, duration=0.3, dt=0.01, contact=contact(scene))
        readings = kt.sensors(model)(motion)
        assert readings.values.shape == (len(motion), 9)
        flying = motion.t < 0.08
        assert_close(readings["foot"][flying], 0 * readings["foot"][flying])
        np.testing.assert_allclose(readings["imu"][flying], 0, atol=1e-9)
        np.testing.assert_allclose(readings["foot"][-1], 2 * 9.81, rtol=1e-9)
        np.testing.assert_allclose(readings["imu"][-1], [0, 0, 9.81], atol=1e-9)
        np.testing.assert_allclose(readings["carried"][-1], 0, atol=1e-9)
        assert readings["aside"][-1, 0] == 0
        np.testing.assert_allclose(readings["gap"][[0, -1], 0], [0.02, 0], atol=1e-9)
        again = kt.Trajectory.load(motion.save(tmp_path / "motion.npz"))
        with pytest.raises(ContactError, match=r"give the scene that it was simulated with, sens"):
            kt.sensors(model)(again)
        assert_close(kt.sensors(model)(again, scene=scene).values, readings.values)

    def test_touch_needs_forces(self):
        model = ball()
        q, zero = model.neutral(), np.zeros(6)
        with pytest.raises(ContactError, match=r"'foot' \(touch\) needs contact forces"):
            kt.sensors(model)(q, zero, zero)
        with pytest.raises(ModelError, match=r"'foot' .* in Python, .*: kinetree.sensors"):
            kt.sensor_readings(model, q, zero, zero)
        q[2] = 0.1
        contacts = kt.contact.Scene(model).contacts(q, 1e-9)
        with pytest.raises(ShapeError, match=r"contact_forces must have shape \(1, 3\)"):
            kt.sensors(model)(q, zero, zero, contacts=contacts, contact_forces=np.zeros(3))
        readings = kt.sensors(model)(q, zero, zero, contacts=contacts, contact_forces=[4.0])
        assert_close(readings["foot"], [4.0])
        assert_close(readings["carried"], [0, 0, 2 * 9.81 - 4.0])
