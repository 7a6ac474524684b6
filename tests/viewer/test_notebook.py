"""What notebooks show: tables and pages, of whole HTML, into which names inject nothing."""

import pickle
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import kinetree as kt
from kinetree import notebook
from kinetree.model.geometry import Box, Mesh

DOUBLE = kt.samples.double_pendulum()
NASTY = '<img src=x onerror="alert(1)">\x1b[31m'


class Reader(HTMLParser):
    """Rows of the tables, and tags, which must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def read(thing):
    return Reader(thing._repr_html_())


def test_a_model_is_its_tree_and_a_page():
    model = kt.samples.stewart()
    found = read(model)
    assert found.tags.count("iframe") == 1
    assert found.rows[0] == ["body", "name", "parent", "joint", "kind", "dof", "mass [kg]"]
    names = [(row[1], row[2], row[3]) for row in found.rows[2:]]
    assert names == [(b.name, model.body_names[b.parent], b.joint_name) for b in model.bodies]
    assert [float(row[6]) for row in found.rows[2:]] == [b.inertia.mass for b in model.bodies]
    assert "loop leg1_ball: Spherical from leg1_rod to platform" in model._repr_html_()


def test_large_meshes_are_not_read_for_a_table(tmp_path):
    path = tmp_path / "large.stl"
    path.write_bytes(bytes(4_000_000))
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("m").body("b", joint=kt.Free(), inertia=inertia)
    model = builder.geometry(Mesh(str(path)), on="b").build()
    found = read(model)
    assert "iframe" not in found.tags
    assert "no picture of 4 MB of meshes; kt.viewer.embedded(model) shows" in model._repr_html_()


def test_a_mesh_that_is_missing_leaves_the_table(tmp_path):
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("m").body("b", joint=kt.Free(), inertia=inertia)
    model = builder.geometry(Mesh(str(tmp_path / "none.stl")), on="b").build()
    assert read(model).rows[2][1] == "b"


def test_a_motion_is_a_page_and_a_table_of_its_variables():
    motion = kt.simulate(DOUBLE, [0.4, 0.1], duration=0.1, dt=1e-2)
    found = read(motion)
    assert found.tags.count("iframe") == 1
    assert found.tags.count("polyline") == 4
    name, unit, first, last, least, largest, _ = found.rows[1]
    assert (name, unit, float(first)) == ("shoulder", "rad", 0.4)
    q = motion.q[:, 0]
    numbers = [float(x) for x in (last, least, largest)]
    assert np.allclose(numbers, [q[-1], q.min(), q.max()], rtol=1e-5)
    assert ["result", "can be trusted"] in found.rows
    assert [row[0] for row in read(motion.report).rows][:2] == ["integrator", "steps"]


def test_a_batch_of_motions_is_a_table():
    motion = kt.simulate(DOUBLE, [[0.4, 0.1], [0.5, 0.2]], duration=0.05, dt=1e-2)
    found = read(motion)
    assert "iframe" not in found.tags
    assert found.rows[1][2] == ""  # there are two first ones
    assert float(found.rows[1][5]) == pytest.approx(motion.q[..., 0].max(), rel=1e-5)
    rollout = kt.rollout(DOUBLE, np.ones((3, 2)), dt=1e-2, steps=2)
    assert read(rollout).rows[2][:2] == ["q", "(3, 3, 2)"]


def test_inverse_kinematics_is_counted_by_reason():
    arm = kt.samples.arm()
    near = kt.pose(arm, 0.3 * np.ones(arm.nq), "tool")
    one = kt.inverse_kinematics(arm, "tool", near)
    assert read(one).rows[1][:2] == ["1", "converged"]
    assert f"q = ({one.q[0]:.6g}, " in one._repr_html_()
    targets = np.stack([near[:3, 3], near[:3, 3] + 50.0])
    many = read(kt.inverse_kinematics(arm, "tool", targets, restarts=1))
    assert [row[:2] for row in many.rows[1:]] == [["1", "converged"], ["1", "out of reach"]]


def test_identification_is_a_table_of_estimates(rng):
    q, qd, qdd = rng.normal(size=(3, 50, 2))
    tau = kt.inverse_dynamics(DOUBLE, q, qd, qdd)
    found = kt.identification.identify(DOUBLE, q, qd, qdd, tau)
    rows = read(found).rows
    assert [row[0] for row in rows[1:]] == list(found.names)
    assert np.allclose([float(row[1]) for row in rows[1:]], found.values, rtol=1e-5)
    assert [row for (row,) in read(found.base).rows[1:]] == list(found.base.labels)


def test_findings_are_a_tuple_that_reads(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text('<robot name="r"><link name="a"/><joint name="j" type="revolut"/></robot>')
    found = kt.check(path)
    assert isinstance(found, tuple)
    assert str(found) == "\n".join(map(str, found))
    rows = read(found).rows
    assert [row[:2] for row in rows[1:]] == [[f.severity, f.code] for f in found]
    assert read(found[0]).rows[1] == rows[1]
    assert pickle.loads(pickle.dumps(found)) == found
    assert str(kt.check(DOUBLE)) == "no findings"
    assert "no findings" in kt.check(DOUBLE)._repr_html_()


def test_a_world_and_its_contacts():
    world = kt.World()
    world.add_ground()
    world.add(Box((0.1, 0.1, 0.1)), mass=1.0, at=(0, 0, 0.05))
    world.step(5)
    contacts = world.contacts()
    assert read(world).tags.count("iframe") == 1
    assert len(contacts) == 4
    assert [row[0] for row in read(contacts).rows[1:]] == list(contacts.names)


def test_names_of_strangers_are_text():
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder(NASTY).body(NASTY, joint=kt.Revolute("y"), inertia=inertia)
    model = builder.frame(f"{NASTY}2", on=NASTY).build()
    motion = kt.simulate(model, [0.1], duration=0.02, dt=1e-2)
    for thing in (model, motion, kt.check(model)):
        assert "img" not in read(thing).tags
        assert "\x1b" not in thing._repr_html_()


def test_text_tables_fit_a_hundred_columns(rng):
    """However long the names; numbers are never cut."""
    long = [f"{'very_' * 12}long_name_of_body_{k}" for k in range(4)]
    builder = kt.ModelBuilder("long")
    for k, name in enumerate(long):
        builder.body(name, on=long[k - 1] if k else "base", joint=kt.Revolute("y"),
                     inertia=kt.shapes.sphere(0.1, mass=1.2345 + k))  # fmt: skip
        builder.frame(f"{name}_frame", on=name)
        builder.actuator(f"{name}_motor", joint=f"{name}_joint")
    model = builder.build()
    lines = model.summary().splitlines()
    assert max(map(len, lines)) <= notebook.WIDTH
    assert "1.2345" in model.summary()
    rows = [line.split()[1] for line in lines[3:7]]
    assert [row[-6:] for row in rows] == [f"body_{k}" for k in range(4)]  # names stay different
    words = " ".join(line.strip() for line in lines)
    assert all(f"{name}_motor" in words for name in long)
    q, qd, qdd = rng.normal(size=(3, 60, 4))
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    text = kt.identification.identify(model, q, qd, qdd, tau).summary()
    assert max(map(len, text.splitlines())) <= notebook.WIDTH
    for sample in ("quadruped", "stewart", "humanoid"):
        lines = getattr(kt.samples, sample)().summary().splitlines()
        assert max(map(len, lines)) <= notebook.WIDTH


def test_names_that_are_cut_still_differ():
    names = [f"ground/dog.{end}_{side}_shank[1]:0" for end in ("front", "rear") for side in "ab"]
    rows = [("contact", "x"), *((name, "y" * 80) for name in names)]
    cells = {line.split()[0] for line in notebook.text_table(rows).splitlines()[1:]}
    assert len(cells) == 4


def test_results_are_shown_in_few_lines(rng):
    m = kt.samples.double_pendulum()
    cart = kt.samples.cart_pole()
    shown = [
        kt.identification.exciting_trajectory(m, samples=50, candidates=1, rng=rng),
        kt.loops.mobility(kt.samples.four_bar(), kt.samples.four_bar().neutral()),
        kt.simulate(m, [0.1, 0.2], duration=0.01).report,
        kt.control.LQR(cart, [0.0, np.pi], Q=1.0, R=0.1, actuated=["rail"]),
        kt.control.LQR(cart, [0.0, np.pi], Q=1.0, R=0.1, actuated=["rail"], dt=0.01),
        kt.control.WholeBody(m, [kt.control.PostureTask([0.0, 0.0])]),
        kt.ModelBuilder("arm"),
        kt.World().report(),
    ]
    for each in shown:
        text = repr(each)
        assert " at 0x" not in text
        assert len(text) < 700
        assert "array(" not in text


def test_a_figure_is_shown_once(monkeypatch):
    """As the result of a cell it is closed, so that the end of the cell does not show it again."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shown = []
    display = SimpleNamespace(display=shown.append, Image=lambda data: data[:4])
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    motion = kt.simulate(DOUBLE, [0.4, 0.1], duration=0.05, dt=1e-2)
    for figure in (motion.plot(), kt.plot.tree(DOUBLE)):
        assert figure.number in pyplot.get_fignums()
        figure._ipython_display_()
        assert figure.number not in pyplot.get_fignums()
    assert shown == [b"\x89PNG"] * 2


def test_equations_are_formulas_where_they_fit():
    text = kt.equations_of_motion(DOUBLE)._repr_latex_()
    assert text.startswith("$$\n\\begin{aligned}\n\\tau_{1} &=")
    assert text.endswith("\\end{aligned}\n$$")
    assert text.count("{") == text.count("}")
    assert "\\ddot" in text


def test_results_of_control_are_matrices():
    upright = np.array([np.pi, 0.0])
    system = kt.linearize(DOUBLE, upright, np.zeros(2), np.zeros(2))
    found = read(system)
    assert [len(row) for row in found.rows] == [5] * 4 + [3] * 4
    shown = np.array([[float(x) for x in row[1:]] for row in found.rows[:4]])
    assert np.allclose(shown, system.A, rtol=1e-5, atol=1e-9)
    assert "eigenvalues: " in system._repr_html_()
    gain = kt.control.lqr_gain(system.A, system.B, 1.0, 1.0)
    assert "Feedback u = -K x" in gain._repr_html_()
    assert [len(row) for row in read(gain).rows[:2]] == [5, 5]
    lqr = kt.control.LQR(DOUBLE, upright, Q=1.0, R=1.0)
    assert [len(row) for row in read(lqr).rows] == [5, 5]
    still = kt.control.equilibrium(DOUBLE, upright)
    assert [row[0] for row in read(still).rows] == ["q", "tau"]
    many = kt.linearize(DOUBLE, np.array([upright] * 3), np.zeros((3, 2)), np.zeros((3, 2)))
    assert not read(many).rows
    assert "A: 3×4×4" in many._repr_html_()


def test_linear_models_in_chosen_coordinates_name_them():
    four_bar = kt.samples.four_bar()
    q = kt.loops.assemble(four_bar)
    system = kt.linearize(four_bar, q, np.zeros(four_bar.nv), np.zeros(four_bar.nv))
    text = system._repr_html_()
    assert f"y: {', '.join(system.coordinates)}" in text
    assert "eigenvalues: " in text
