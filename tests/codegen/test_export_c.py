"""Standalone C: what is in the folder, and that its own test passes and can fail."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.backends import COMPILER, exported_c

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import c
from kinetree.errors import BackendError, LoopError, UnknownNameError
from kinetree.functional import export
from kinetree.functional.differentiate import differentiate
from kinetree.functional.export import export_c
from kinetree.functional.kernel import kernel
from kinetree.joints.fixed import Following
from kinetree.model.define import kernel_of


def make_test(folder, expect=0):
    """Run ``make test`` in a folder, where there is a compiler."""
    if not COMPILER:
        return ""
    command = ["make", "test", f"CC={COMPILER}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert (done.returncode != 0) == expect, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pendulum():
    return kt.samples.double_pendulum()


def test_a_project_passes_its_own_test(pendulum, tmp_path):
    functions = ["inverse_dynamics", kt.mass_matrix, "forward_dynamics"]
    folder = export_c(pendulum, functions, tmp_path / "out" / "arm")
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["Makefile", "arm.c", "arm.h", "arm_test.c"]
    output = make_test(folder)
    if output:
        assert "inverse_dynamics: 4 samples, ok" in output
        assert "forward_dynamics: 4 samples, ok" in output


def test_single_precision_passes_its_own_test(pendulum, tmp_path):
    folder = export_c(pendulum, ["forward_dynamics"], tmp_path / "arm", dtype="float32")
    source = (folder / "arm.c").read_text()
    assert "double " not in source.partition("#include")[2]
    assert "sinf(" in source
    make_test(folder)


def test_floating_bases_frames_and_forces(tmp_path):
    model = kt.samples.satellite() if not kt.samples.satellite().loops else kt.samples.quadruped()
    body = model.body_names[-1]
    functions = [
        ("jacobian", {"name": body, "frame": "world"}),
        ("pose", {"name": body}),
        ("inverse_dynamics", {"f_ext": True}),
        "kinetic_energy",
    ]
    folder = export_c(model, functions, tmp_path / "craft", name="my craft")
    header = (folder / "my_craft.h").read_text()
    assert f"int my_craft_jacobian_{body}_world(" in header
    assert "int my_craft_inverse_dynamics_f_ext(" in header
    assert "unit quaternion" in header
    make_test(folder)


def test_functions_of_ones_own(pendulum, tmp_path):
    def power(model, q, qd, tau):
        """Power of the joint forces."""
        return qd @ kt.forward_dynamics(model, q, qd, tau), kt.pose(model, q, "lower")

    folder = export_c(pendulum, [power], tmp_path / "own")
    header = (folder / "own.h").read_text()
    assert "Power of the joint forces." in header
    assert "double out1[16]" in header
    make_test(folder)


def test_a_long_function_is_cut_into_parts(pendulum, tmp_path, monkeypatch):
    monkeypatch.setattr(c, "PIECE", 8)
    folder = export_c(pendulum, ["forward_dynamics", "mass_matrix"], tmp_path / "parts")
    source = (folder / "parts.c").read_text()
    assert "static int parts_forward_dynamics_part2(" in source
    make_test(folder)


def test_the_self_test_can_fail(pendulum, tmp_path):
    folder = export_c(pendulum, ["gravity_force"], tmp_path / "broken")
    source = folder / "broken.c"
    source.write_text(source.read_text().replace("sin(", "cos("))
    output = make_test(folder, expect=1)
    if output:
        assert "gravity_force: sample 0, element 0: got" in output
        assert "FAILED" in output


def test_the_header_says_what_is_inside(pendulum, tmp_path):
    folder = export_c(pendulum, ["inverse_dynamics"], tmp_path / "arm")
    header, source = (folder / "arm.h").read_text(), (folder / "arm.c").read_text()
    for text in (
        header,
        source,
        (folder / "arm_test.c").read_text(),
        (folder / "Makefile").read_text(),
    ):
        assert f"Written by kinetree {kt.__version__} from model 'double pendulum'" in text
        assert pendulum.fingerprint[:16] in text
        assert "Do not edit" in text
        assert text.isascii()
    assert "int arm_inverse_dynamics(" in header
    assert 'extern "C"' in header
    assert "multiplications" in header
    assert "qd[2]  joint velocities [m/s, rad/s]" in header
    assert "q[0]  rad  " in header
    assert "lower_1" in source  # values are named by body
    assert "sin_q0 = sin(q[0])" in source
    assert "#include <math.h>" in source
    assert source.count("#include") == 2


def test_other_peoples_files_are_left_alone(pendulum, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "Makefile").write_text("all:\n")
    with pytest.raises(FileExistsError, match="was not written by kinetree"):
        export_c(pendulum, ["mass_matrix"], folder)
    assert sorted(p.name for p in folder.iterdir()) == ["Makefile"]
    (folder / "Makefile").unlink()
    export_c(pendulum, ["mass_matrix"], folder)
    export_c(pendulum, ["gravity_force"], folder)  # our own are replaced
    assert "gravity_force" in (folder / "mine.c").read_text()


def test_what_cannot_be_exported_is_named(pendulum, tmp_path):
    with pytest.raises(UnknownNameError, match="no function 'xyz' to export; choose from"):
        export_c(pendulum, ["xyz"], tmp_path / "x")
    with pytest.raises(UnknownNameError, match="to export; did you mean 'gravity_force'"):
        export_c(pendulum, "gravity_forse", tmp_path / "x")
    with pytest.raises(UnknownNameError, match="pose needs 'name': give its value as an option"):
        export_c(pendulum, ["pose"], tmp_path / "x")
    with pytest.raises(LoopError):
        export_c(kt.samples.four_bar(), ["mass_matrix"], tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_bad_numbers_are_reported(tmp_path):
    model = (
        kt.ModelBuilder("top")
        .body("top", joint=kt.Spherical(), inertia=kt.shapes.sphere(0.1, mass=1))
        .build()
    )
    program = kernel_of(model, "inverse_dynamics").program
    text = c.render(program)
    assert f"status |= {c.NOT_FINITE}" in text
    assert f"status |= {c.UNSAFE}" in text
    if COMPILER:
        run = exported_c(tmp_path)(program, "float64")
        zero, unit = np.zeros(3), np.array([1.0, 0, 0, 0])
        assert run.status(unit, zero, zero) == 0
        assert run.status(2 * unit, zero, zero) == c.UNSAFE
        assert run.status(unit, np.array([0, np.inf, 0]), zero) & c.NOT_FINITE


def test_names_that_mean_something_in_c_are_changed():
    inputs = [Argument("double", (2,)), Argument("sin", ())]
    text = c.render(trace(lambda a, b: a * b, inputs, "f"))
    assert "const double double_[2], const double sin_[1]" in text.replace("\n    ", " ")


@pytest.mark.parametrize("name", ["q", "a b", "9lives", "größe", "for"])
def test_any_name_becomes_an_identifier(name, pendulum, tmp_path):
    folder = export_c(pendulum, ["gravity_force"], tmp_path / "f", name=name)
    assert all(p.name.isascii() for p in folder.iterdir())
    make_test(folder)


def test_units_follow_the_joints():
    assert kt.Prismatic("x").velocity_units() == ["m/s"]
    assert kt.Revolute("x").velocity_units() == ["rad/s"]
    assert kt.Free().position_units() == ["m"] * 3 + ["1"] * 4
    assert kt.Free().velocity_units() == ["rad/s"] * 3 + ["m/s"] * 3
    follower = Following(kt.Revolute("x"))  # of a coupling: without variables of its own
    assert follower.velocity_units() == follower.position_units() == []


def test_derivatives_and_kernels(pendulum, tmp_path):
    @kernel
    def reach(model, q, target: (3,)):
        """Squared distance of the lower body from a point."""
        error = kt.pose(model, q, "lower")[:3, 3] - target
        return error @ error

    functions = [
        differentiate(kt.inverse_dynamics, wrt=("q", "qd")),
        reach,
        differentiate(reach, wrt="q"),
    ]
    folder = export_c(pendulum, functions, tmp_path / "d")
    header = (folder / "d.h").read_text()
    assert "int d_derivative_of_inverse_dynamics_q_qd(" in header
    assert "out1[4] = out1[2][2]  derivative with respect to qd" in header
    assert "int d_derivative_of_reach_q(const double q[2], const double target[3]" in header
    assert "Derivative of: Squared distance" in header
    make_test(folder)


def test_what_the_page_shows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in export.__all__:
        monkeypatch.setattr(kt, name, getattr(export, name), raising=False)
    page = Path(__file__).parents[2] / "docs" / "export.md"
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(block, names)
    assert (tmp_path / "out" / "arm" / "arm.h").exists()
    shown = names["source"]
    quoted = re.search(r"```\n(    cos_q1.*?)```", page.read_text(encoding="utf-8"), re.S).group(1)
    for line in quoted.splitlines()[:4]:
        assert line.partition(" = ")[2] in shown
    assert names["tau"].shape == (100, 2)


# --- loops over tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_over_tables_pass_their_own_test(dtype, tmp_path):
    functions = ["inverse_dynamics", ("inverse_dynamics", {"f_ext": True}), "mass_matrix"]
    folder = export_c(
        kt.samples.quadruped(), functions, tmp_path / "legs", dtype=dtype, tier="general"
    )
    assert make_test(folder).count("ok") == 3
    header = (folder / "legs.h").read_text()
    assert "Loops over tables; 378 numbers on the stack." in header
    assert "H[324] = H[18][18]" in header


def test_the_text_of_loops_does_not_grow_with_the_robot(tmp_path):
    def text(bodies):
        folder = export_c(
            kt.samples.chain(bodies), "forward_dynamics", tmp_path / f"c{bodies}", tier="general"
        )
        assert "ok" in make_test(folder)
        return (folder / f"c{bodies}.c").read_text().partition("#define")[2]

    short, long = text(3), text(300)
    assert abs(len(long) - len(short)) < 200


def test_what_has_no_general_code_is_named(pendulum, tmp_path):
    with pytest.raises(BackendError, match=r"task_freedom has no general code .*tier='special"):
        export_c(pendulum, "task_freedom", tmp_path / "x", tier="general")
    with pytest.raises(UnknownNameError, match=r"'specialised' or 'general', got 'fast'"):
        export_c(pendulum, "mass_matrix", tmp_path / "x", tier="fast")
