"""Plots: what is on them, whatever the mechanism; lines differ without colours."""

import importlib

import matplotlib as mpl
import numpy as np
import pytest
from support.shown_output import titles

import kinetree as kt
from kinetree import errors

mpl.use("Agg")
from matplotlib import pyplot

DOUBLE, FOUR_BAR = kt.samples.double_pendulum(), kt.samples.four_bar()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def motion(model, *, batch=()):
    """A motion that need not be simulated."""
    t = np.linspace(0, 1, 11)
    q = np.zeros((11, *batch, model.nv)) + np.sin(t).reshape(-1, *(1,) * (len(batch) + 1))
    scalars = np.zeros((11, *batch))
    return kt.Trajectory(model, t, q, 2 * q, 0 * q + 1, scalars, scalars, scalars)


def test_joints_have_positions_velocities_and_forces():
    figure = kt.plot.joints(motion(DOUBLE))
    assert titles(figure) == ["angles", "angular velocities", "joint forces"]
    lines = figure.axes[0].get_lines()
    assert np.array_equal(lines[0].get_ydata(), motion(DOUBLE).q[:, 0])
    assert titles(kt.plot.joints(motion(DOUBLE), "elbow")) == titles(figure)
    with pytest.raises(kt.UnknownNameError, match="no joint 'knee'"):
        kt.plot.joints(motion(DOUBLE), ["knee"])


def test_lines_differ_in_print():
    figure = kt.plot.joints(motion(DOUBLE))
    styles = {
        line._dash_pattern[1] and tuple(line._dash_pattern[1]) for line in figure.axes[0].lines
    }
    assert len(styles) == 2


def test_energy_has_its_parts_and_its_balance():
    figure = kt.plot.energy(motion(DOUBLE))
    assert titles(figure) == ["energy", "energy balance: change less work"]
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["kinetic", "potential", "total"]


def test_the_overview_is_that_of_the_trajectory():
    given = motion(DOUBLE)
    assert titles(kt.plot.overview(given)) == titles(given.plot())


def test_phase_portraits_have_velocity_over_position():
    given = motion(DOUBLE, batch=(2,))
    figure = kt.plot.phase(given)
    assert titles(figure) == ["shoulder", "elbow"]
    line = figure.axes[1].get_lines()[0]
    assert np.array_equal(line.get_xdata(), given.q[:, 0, 1])
    assert np.array_equal(line.get_ydata(), given.qd[:, 0, 1])
    assert figure.axes[1].get_xlabel() == "[rad]"
    assert len(figure.axes[1].get_lines()) == 6  # two motions, their beginnings and ends
    ball = kt.ModelBuilder("ball").body("ball", joint=kt.Spherical())
    model = ball.build()
    q, qd = np.tile(model.neutral(), (2, 1)), np.zeros((2, 3))
    still = kt.Trajectory(model, np.arange(2.0), q, qd, qd, qd[:, 0], qd[:, 0], qd[:, 0])
    with pytest.raises(kt.ModelError, match="no joint of 'ball' that was chosen"):
        kt.plot.phase(still)


def test_constraint_errors_are_on_logarithmic_axes():
    figure = kt.plot.constraint_error(motion(FOUR_BAR))
    assert titles(figure) == ["position error of loops", "velocity error of loops"]
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    seen = figure.axes[0].get_lines()[0].get_ydata()
    errors = np.max(np.abs(kt.loops.error(FOUR_BAR, motion(FOUR_BAR).q)), axis=-1)
    assert np.allclose(seen[1:], errors[1:])
    with pytest.raises(kt.ModelError, match="'double pendulum' has no loops"):
        kt.plot.constraint_error(motion(DOUBLE))


def test_contact_forces_are_normal_and_tangential_and_part_of_friction():
    forces = np.tile([10.0, 3.0, 4.0], (11, 2, 1))
    figure = kt.plot.contact_forces(
        t=np.arange(11.0), forces=forces, names=["a", "b"], friction=0.8
    )
    assert titles(figure) == ["normal force", "tangential force", "part of what friction bears"]
    assert [line.get_ydata()[0] for line in figure.axes[1].get_lines()] == [5.0, 5.0]
    assert figure.axes[2].get_lines()[0].get_ydata()[0] == pytest.approx(5 / 8)
    with pytest.raises(kt.ShapeError, match="the trajectory has no contact forces"):
        kt.plot.contact_forces(motion(DOUBLE))
    with pytest.raises(kt.ShapeError, match=r"must be \(T, K, 3\) with T times"):
        kt.plot.contact_forces(t=np.arange(3.0), forces=forces)


def test_reactions_are_magnitudes_of_many_joints_and_components_of_one():
    swing = motion(DOUBLE)
    f = swing.reactions(part="bearing", frame="aligned")
    figure = kt.plot.reactions(swing, part="bearing", frame="aligned")
    assert titles(figure) == ["bearing force", "bearing moment"]
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == list(DOUBLE.joint_names)
    np.testing.assert_array_equal(lines[1].get_ydata(), np.linalg.norm(f[:, 1, 3:], axis=-1))
    name = DOUBLE.joint_names[0]
    figure = kt.plot.reactions(swing, name, frame="aligned")
    assert titles(figure) == [f"reaction force of {name}", "reaction moment"]
    z = swing.reactions(name, frame="aligned")[:, 5]
    found = figure.axes[0].get_lines()[2].get_ydata()  # by code for all joints, not for this one
    np.testing.assert_allclose(found, z, rtol=0, atol=1e-14 * np.max(np.abs(z)))
    with pytest.raises(kt.UnknownNameError, match="has no joint 'knee'"):
        kt.plot.reactions(swing, ["knee"])


def test_contacts_that_never_push_are_left_out():
    forces = np.zeros((3, 4, 3))
    forces[1, 2, 0] = 5.0
    figure = kt.plot.contact_forces(t=np.arange(3.0), forces=forces)
    normal, sideways = figure.axes
    assert [line.get_label() for line in normal.lines] == ["contact 3"]
    assert normal.get_ylim()[0] == 0
    assert sideways.get_ylim() == (0, 1)
    still = kt.plot.contact_forces(t=np.arange(3.0), forces=np.zeros((3, 2, 3)))
    assert len(still.axes[0].lines) == 2


def test_of_many_contacts_the_largest_have_names():
    forces = np.ones((3, 12, 3)) * np.arange(12)[:, None]
    figure = kt.plot.contact_forces(t=np.arange(3.0), forces=forces)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == [f"contact {k}" for k in range(3, 13)]


def test_eigenvalues_have_marks_of_their_own_and_a_verdict():
    A = np.array([[0.0, 1.0], [-4.0, 0.0]])
    figure = kt.plot.eigenvalues(A, A - np.eye(2), names=["free", "damped"])
    lines = [line for line in figure.axes[0].get_lines() if line.get_marker() != "None"]
    assert sorted(lines[0].get_ydata()) == pytest.approx([-2, 2])
    assert [line.get_marker() for line in lines] == ["o", "x"]
    assert titles(figure) == ["eigenvalues"]
    assert titles(kt.plot.eigenvalues(A - np.eye(2))) == ["eigenvalues, all stable"]
    assert titles(kt.plot.eigenvalues(0.4 * A, discrete=True)) == ["eigenvalues, all stable"]
    with pytest.raises(kt.ShapeError, match="of square matrices, or of models"):
        kt.plot.eigenvalues(np.zeros((2, 3)))
    with pytest.raises(kt.ShapeError, match="needs at least one matrix"):
        kt.plot.eigenvalues()
    with pytest.raises(kt.ShapeError, match="there are 1 systems and 2 names"):
        kt.plot.eigenvalues(A, names=["a", "b"])


def test_sparsity_is_that_of_the_tree():
    quadruped = kt.samples.quadruped()
    figure = kt.plot.sparsity(quadruped)
    assert titles(figure) == ["mass matrix, 67 % filled", "factor L"]
    H = kt.algorithms.sparsity.pattern(quadruped.expanded_parent)
    assert np.array_equal(figure.axes[0].images[0].get_array(), H)
    assert np.array_equal(figure.axes[1].images[0].get_array(), np.tril(H))
    assert titles(kt.plot.sparsity(np.eye(3))) == ["3 of 9 entries are not zero"]
    with pytest.raises(kt.ShapeError, match=r"of a model or of a matrix, got shape \(3,\)"):
        kt.plot.sparsity(np.zeros(3))


def test_trees_have_every_body_and_joint_once():
    figure = kt.plot.tree(FOUR_BAR)
    words = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(words) == sorted([*FOUR_BAR.body_names, *["Revolute"] * 3])
    assert figure.axes[0].get_title(loc="left") == "four-bar: 3 bodies, 1 loop (dashed)"
    numbers = [text.get_text() for text in kt.plot.tree(FOUR_BAR, names=False).axes[0].texts]
    assert {"0", "1", "2", "3"} <= set(numbers)


@pytest.mark.parametrize("name", ["pendulum", "stewart", "humanoid", "panda"])
def test_trees_of_samples_can_be_drawn(name):
    kt.plot.tree(kt.samples.load(name)).canvas.draw()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = importlib.import_module

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module named 'matplotlib'")
        return real(name, *rest)

    monkeypatch.setattr(errors.importlib, "import_module", without)
    with pytest.raises(kt.errors.MissingPackageError, match=r'pip install "kinetree\[plot\]"'):
        kt.plot.tree(DOUBLE)


def test_the_style_is_one_that_matplotlib_takes():
    with pyplot.style.context(kt.plot.STYLE):
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"][0] == "#0072b2"


# --- postures -------------------------------------------------------------------------------------


def drawn(figure):
    """Ends of the lines of stick figures, and all texts."""
    lines = [
        line.get_xydata() for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"
    ]
    texts = [*(text.get_text() for text in figure.axes[0].texts), *figure.texts]
    return np.array(lines), texts


def test_stick_figures_have_links_where_they_are():
    five_bar = kt.samples.five_bar()
    q = np.array([five_bar.neutral(), five_bar.posture("singular").q])
    figure = kt.plot.postures(five_bar, q)
    lines, texts = drawn(figure)
    lengths = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    np.testing.assert_allclose(lengths, [1.0, 1.5, 1.5, 1.0] * 2, atol=1e-12)
    np.testing.assert_allclose(lines[4:, :, 1], 0, atol=1e-12)  # all on the line of the supports
    np.testing.assert_allclose(lines[3, 1], [1, 0], atol=1e-12)
    assert figure.axes[0].get_ylabel() == "z [m]"
    assert titles(figure) == ["five-bar, 2 postures"]
    assert sorted(texts[:5]) == ["1", "2", "3", "4", "5"]
    last = texts[5].get_text().splitlines()[-1].split()
    assert " ".join(last).replace("_", " ") == "5 right support"
    assert not kt.plot.postures(five_bar, q, numbers=False).texts


@pytest.mark.parametrize("name", ["gyroscope", "loader", "stewart", "humanoid"])
def test_samples_of_all_kinds_can_be_drawn(name):
    model = getattr(kt.samples, name)()
    figure = kt.plot.postures(model, model.neutral())
    listed = figure.texts[0].get_text().splitlines()
    assert len(listed) == min(len(model.joint_names) + len(model.loops), 40) or listed[-1] == "…"


def test_postures_that_cannot_be_drawn_are_named():
    with pytest.raises(kt.UnknownNameError, match=r"no plane 'zx'; use one of"):
        kt.plot.postures(FOUR_BAR, FOUR_BAR.neutral(), plane="zx")
    with pytest.raises(kt.ShapeError, match=r"\(nq,\) or \(n, nq\), got q of shape \(1, 1, 3\)"):
        kt.plot.postures(FOUR_BAR, FOUR_BAR.neutral()[None, None])
    with pytest.raises(kt.ModelError, match="'empty' has no bodies to draw"):
        kt.plot.postures(kt.ModelBuilder("empty").build(), [])
