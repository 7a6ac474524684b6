"""``kinetree eval``: the same numbers as the library, in and out as JSON."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli.app import app
from kinetree.cli.arguments import functions


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["eval", *arguments], input=stdin)


def answer(*arguments, stdin=None):
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


MODEL = kt.samples.double_pendulum()
Q, QD, QDD = [0.3, -0.5], [1.0, 2.0], [0.5, 0.25]
TIP = MODEL.frame_names[-1]


def test_numbers_are_those_of_the_library():
    found = answer(
        "inverse_dynamics", "double_pendulum", "--q", "0.3,-0.5", "--qd", "1 2", "--qdd",
        "[0.5, 0.25]",
    )  # fmt: skip
    assert found["result"] == kt.inverse_dynamics(MODEL, Q, QD, QDD).tolist()
    assert (found["model"], found["function"]) == (MODEL.name, "inverse_dynamics")
    assert (found["q"], found["qd"], found["qdd"]) == (Q, QD, QDD)


def test_positions_are_neutral_and_the_rest_is_zero():
    found = answer("forward_dynamics", "double_pendulum", "--q", "neutral")
    assert found["q"] == [0.0, 0.0]
    assert found["qd"] == found["tau"] == [0.0, 0.0]


@pytest.mark.parametrize("name", sorted(functions()))
def test_every_function_can_be_evaluated(name):
    options = ["--q", "0.3,-0.5"]
    if "of" in kt_words(name):
        options += ["--of", TIP]
    if "rows" in kt_words(name):
        # the tip of a planar chain has no six degrees of freedom
        options += ["--in", "aligned", "--set", 'rows=["x", "z"]']
    if name == "joint_reactions":  # of a motion, or of given forces
        options += ["--qdd", "0.5,0.25"]
    assert np.all(np.isfinite(np.array(answer(name, "double_pendulum", *options)["result"])))


def test_coordinates_are_those_that_the_function_has_by_default():
    found = answer("joint_reactions", "double_pendulum", "--q", "0.3,-0.5", "--qdd", "0.5,0.25")
    assert found["in"] == "joint"
    assert found["result"] == kt.joint_reactions(MODEL, Q, [0.0, 0.0], QDD).tolist()
    assert run("joint_reactions", "double_pendulum").output.startswith(
        "error: joint_reactions needs the motion qdd or the joint forces tau"
    )


def kt_words(name):
    from kinetree.cli.arguments import spelling

    return spelling(functions()[name]).values()


def test_frames_and_coordinates():
    found = answer("jacobian", "panda", "--of", "tool", "--in", "body", "--q", "home")
    panda = kt.samples.panda()
    q = np.array(next(p.q for p in panda.postures if p.name == "home"))
    assert found["result"] == kt.jacobian(panda, q, "tool", frame="body").tolist()
    assert (found["of"], found["in"]) == ("tool", "body")
    world = answer("jacobian", "panda", "--of", "tool")
    assert world["in"] == "world"
    moved = answer("velocity", "double_pendulum", "--of", TIP, "--in", "aligned", "--point",
                   "0,0,1", "--qd", "1,0", "--q", "random:3")  # fmt: skip
    q = MODEL.random_configuration(3)
    expected = kt.velocity(MODEL, q, [1.0, 0.0], TIP, frame="aligned", point=[0, 0, 1])
    assert moved["result"] == expected.tolist()


def test_forces_on_bodies_and_other_arguments():
    body = MODEL.body_names[-1]
    forces = {body: [0, 0, 0, 0, 0, 5.0]}
    found = answer("bias_force", "double_pendulum", "--f-ext", json.dumps(forces))
    zero = np.zeros(2)
    assert found["result"] == kt.bias_force(MODEL, zero, zero, forces).tolist()
    crba = answer("forward_dynamics", "double_pendulum", "--set", "method=crba")
    assert crba["method"] == "crba"


def test_json_from_standard_input_comes_back():
    given = {"q": [Q, [0, 0]], "qd": QD}
    found = answer("bias_force", "double_pendulum", "-", stdin=json.dumps(given))
    assert found["result"] == kt.bias_force(MODEL, [Q, [0, 0]], QD).tolist()
    again = {key: found[key] for key in ("q", "qd")}
    assert answer("bias_force", "double_pendulum", "-", stdin=json.dumps(again)) == found
    option = answer("bias_force", "double_pendulum", "-", "--qd", "0,0", stdin=json.dumps(given))
    assert option["qd"] == [0, 0]


def test_a_table_names_rows_and_columns():
    output = run("mass_matrix", "double_pendulum", "--table").stdout
    for name in MODEL.joint_names:
        assert output.count(name) == 2
    assert run("kinetic_energy", "double_pendulum", "--table").stdout.endswith("\n0\n")
    assert "wx" in run("jacobian", "double_pendulum", "--of", TIP, "--table").stdout


def test_what_is_optional_stays_at_its_default_or_is_set():
    ur5 = kt.samples.ur5()
    q = ur5.random_configuration(1)
    found = answer("operational_space_inertia", "ur5", "--of", "tool", "--q", "random:1")
    assert found["result"] == kt.operational_space_inertia(ur5, q, "tool").tolist()
    assert "rows" not in found
    found = answer("regressor", "double_pendulum", "--q", "0.3,-0.5", "--set", "rotors=true")
    zero = np.zeros(2)
    assert found["result"] == kt.regressor(MODEL, Q, zero, zero, rotors=True).tolist()


def test_what_needs_a_force_on_every_body_is_not_offered():
    assert not {"generalized_force", "task_space_forward_dynamics"} & set(functions())
    assert "there is no function 'generalized_force'" in run("generalized_force", "ur5").stderr


def labels(*arguments):
    """Labels of the columns and of the rows of a table."""
    lines = run(*arguments, "--table").stdout.splitlines()[2:]
    return lines[0].split(), [line.split()[0] for line in lines[1:]]


def test_a_table_of_a_robot_with_six_joints_tells_joints_from_coordinates():
    joints = list(kt.samples.ur5().joint_names)
    assert labels("jacobian", "ur5", "--of", "tool") == (joints, ["wx", "wy", "wz", "x", "y", "z"])
    task = ["operational_space_inertia", "ur5", "--of", "tool", "--q", "random:1"]
    assert labels(*task) == (["rx", "ry", "rz", "x", "y", "z"],) * 2
    assert labels(*task, "--set", "rows=linear") == (["x", "y", "z"],) * 2
    parameters = kt.identification.parameter_names(kt.samples.ur5(), rotors=True)
    columns, rows = labels("regressor", "ur5", "--set", "rotors=true")
    assert (tuple(columns), rows) == (parameters, joints)


def test_a_table_of_a_batch_numbers_the_samples():
    assert labels("gravity_force", "double_pendulum", "--q", "[[0, 1], [0, 0], [1, 1]]") == (
        list(MODEL.joint_names),
        ["0", "1", "2"],
    )


def test_the_list_of_functions():
    output = run("--list").stdout
    assert all(name in output for name in functions())
    assert {row["name"] for row in json.loads(run("--list", "--json").stdout)} == set(functions())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mas_matrix", "panda"], "no function 'mas_matrix'; did you mean 'mass_matrix'"),
        (["xyzzy", "panda"], "kinetree eval --list lists them"),
        (["mass_matrix"], "which robot? kinetree eval mass_matrix ROBOT"),
        (["pose", "panda"], "pose of what? Give --of and one of tool"),
        (["mass_matrix", "panda", "--qd", "0"], "mass_matrix takes no 'qd'; it takes q"),
        (
            ["mass_matrix", "panda", "--q", "hoome"],
            "no posture is called 'hoome'; did you mean 'ho",
        ),
        (["mass_matrix", "double_pendulum", "--q", "1,x"], "q must be 1,2,3 or JSON"),
        (["mass_matrix", "double_pendulum", "--q", "1"], "q needs 2 numbers, got 1; one for each"),
        (["mass_matrix", "double_pendulum", "--q", '["a"]'], "q must hold numbers"),
        (["mass_matrix", "double_pendulum", "--q", "random:x"], "a seed is an integer"),
        (["mass_matrix", "double_pendulum", "--set", "q"], "--set needs NAME=VALUE"),
        (["mass_matrix", "double_pendulum", "x"], "'-' reads JSON from stdin"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("stdin", "message"), [("{", "is not JSON"), ("[1]", "a JSON object")])
def test_bad_standard_input_is_explained(stdin, message):
    result = run("mass_matrix", "double_pendulum", "-", stdin=stdin)
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_the_library_rejects_is_an_error_without_a_traceback():
    result = run("pose", "panda", "--of", "tol")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: model 'panda' has no frame or body 'tol'")
    assert "Traceback" not in result.output
