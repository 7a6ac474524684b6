"""Pictures of trajectories: what is on them, with names and units, whatever the mechanism."""

import matplotlib as mpl
import numpy as np
import pytest
from support.shown_output import titles

import kinetree as kt
from kinetree.simulation.results.plotting import COLORS

mpl.use("Agg")
from matplotlib import pyplot

DOUBLE = kt.samples.double_pendulum()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def legend(axes):
    found = axes.get_legend()
    return [text.get_text() for text in found.get_texts()] if found else []


def panel(figure, title):
    return next(axes for axes in figure.axes if axes.get_title(loc="left") == title)


def swing(**options):
    return kt.simulate(DOUBLE, [1.0, 0.5], duration=0.1, dt=1e-2, **options)


def steady(model, q, qd):
    """A motion at constant velocity, which need not be simulated."""
    t, zero = np.linspace(0, 0.1, 3), np.zeros(3)
    positions = np.array([model.integrate(q, x * qd) for x in t])
    velocities = np.tile(qd, (3, 1))
    return kt.Trajectory(model, t, positions, velocities, 0 * velocities, zero, zero, zero)


def test_a_motion_without_forces_shows_angles_velocities_and_energy():
    figure = swing().plot()
    assert titles(figure) == [
        "angles", "angular velocities", "energy", "energy balance: change less work",
    ]  # fmt: skip
    assert panel(figure, "angles").get_ylabel() == "[rad]"
    assert panel(figure, "angular velocities").get_ylabel() == "[rad/s]"
    assert legend(panel(figure, "angular velocities")) == ["shoulder", "elbow"]
    assert legend(panel(figure, "energy")) == ["kinetic", "potential", "total"]
    assert [a.get_xlabel() for a in figure.axes] == ["", "", "time [s]", "time [s]"]
    assert figure._suptitle.get_text() == "double pendulum: 0.1 s"


def test_lines_are_the_numbers_of_the_trajectory():
    motion = swing()
    shoulder, elbow = panel(motion.plot(), "angles").get_lines()
    assert np.array_equal(elbow.get_ydata(), motion["elbow"].q)
    assert np.array_equal(shoulder.get_xdata(), motion.t)


def test_forces_have_a_panel_when_there_are_any():
    figure = swing(controller=lambda t, q, qd: [1.0, 0.0]).plot()
    axes = panel(figure, "joint forces")
    assert axes.get_ylabel() == "[N·m]"
    assert legend(axes) == ["shoulder", "elbow"]
    assert "work" in legend(panel(figure, "energy"))


def test_events_are_marked_with_their_names():
    falls = kt.Event(lambda t, q, qd: q[0] - 0.99, name="falls")
    motion = swing(events=[falls])
    figure = motion.plot()
    assert [text.get_text() for text in figure.axes[0].texts] == ["falls"]
    for axes in figure.axes:
        assert [line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 2] == [
            motion.events[0].t
        ]


def test_springs_do_not_disturb_the_balance():
    spring = kt.JointDynamics(stiffness=20.0, damping=0.1)
    motion = kt.simulate(
        DOUBLE.replace(dynamics={"elbow": spring}), [1.0, 0.5], duration=0.5, dt=1e-3
    )
    axes = panel(motion.plot(), "energy balance: change less work")
    error, scale = axes.get_lines()[0].get_ydata(), axes.get_ylabel()
    assert scale.startswith("[10⁻")
    power = int(scale[3:].split()[0].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    assert np.max(np.abs(error)) * 10.0**power < 1e-6


def test_of_many_joints_those_that_move_most_have_colours_and_names():
    humanoid = kt.samples.humanoid()
    speed = np.zeros(humanoid.nv)
    speed[6:] = np.linspace(0.1, 2, humanoid.nv - 6)
    figure = steady(humanoid, humanoid.posture("home").q, speed).plot()
    assert titles(figure)[:6] == [
        "angles", "angular velocities", "distances", "velocities", "orientations",
        "angular velocities",
    ]  # fmt: skip
    named = legend(figure.axes[1])
    assert len(named) == len(COLORS) + 1
    assert named[-1] == f"{humanoid.nv - 6 - len(COLORS)} more"
    root = humanoid.joint_names[0]
    assert legend(figure.axes[2]) == []  # one legend for each row
    assert legend(figure.axes[3]) == [f"{root}.{axis}" for axis in "xyz"]
    assert legend(figure.axes[5]) == [f"{root}.{axis}" for axis in "wxyz"]
    assert figure.axes[4].get_ylabel() == "quaternion"
    assert figure.axes[2].get_ylabel() == "[m]"


def test_rounding_errors_of_what_stands_still_are_not_magnified():
    motion = steady(DOUBLE, [0.0, 0.0], np.array([1e-17, 0.0]))
    for title, unit in (("angles", "[rad]"), ("angular velocities", "[rad/s]")):
        axes = panel(motion.plot(), title)
        assert axes.get_ylim() == (-1, 1)
        assert axes.get_ylabel() == unit


def test_chosen_joints_alone():
    figure = swing().plot(joints=["elbow"])
    assert len(panel(figure, "angles").get_lines()) == 1
    assert legend(panel(figure, "angular velocities")) == ["elbow"]
    assert legend(panel(swing().plot(joints="elbow"), "angular velocities")) == ["elbow"]
    with pytest.raises(kt.UnknownNameError, match="no joint 'elbov'; did you mean 'elbow'"):
        swing().plot(joints=["elbov"])


def test_every_motion_of_a_batch_is_drawn():
    starts = np.linspace(0, 1, 10).reshape(5, 2)
    figure = kt.simulate(DOUBLE, starts, duration=0.05, dt=1e-2).plot()
    assert len(panel(figure, "angles").get_lines()) == 10
    assert legend(panel(figure, "angular velocities")) == ["shoulder", "elbow"]
    assert figure._suptitle.get_text() == "double pendulum: 0.05 s, 5 motions"


@pytest.mark.parametrize("name", ["cart_pole", "satellite"])
def test_samples_can_be_drawn(name, tmp_path):
    model = kt.samples.load(name)
    motion = kt.simulate(model, model.neutral(), duration=0.01, dt=1e-3)
    motion.plot().savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 20_000
