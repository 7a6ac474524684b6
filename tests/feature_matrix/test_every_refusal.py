"""No refusal stands outside the one table of what cannot be combined.

An error that leaves a door is about one argument, about what happened in a run, or a row of the
table. Classes tell apart what happened (``SimulationError``, ``SingularError``) and arguments of
the wrong kind (``ShapeError``, ``TypeError``, ``UnknownNameError``); functions that raise other
errors are listed here with the argument that they are about: a new one has to be looked at.
"""

import ast
from pathlib import Path

import kinetree
from kinetree.integration.refusals import REFUSALS

SOURCE = Path(kinetree.__file__).parent
DRIVERS = ("simulation", "worlds", "learning", "contact", "integration")
REFUSING = {
    "ArrayKindError", "ContactError", "JointError", "KinetreeError", "LoopError", "ModelError",
    "TraceError",
}  # fmt: skip
ABOUT_ONE_ARGUMENT = {
    "contact/attached.py": "_require_model",  # scene
    "contact/collision/convex.py": "convex_distance",
    "contact/collision/distance.py": "_check_pair _tables distance make",  # shapes
    "contact/collision/shapes.py": "_measure",  # shape
    "contact/finding/pairs.py": "_pair_of _shapes_named check_coefficient named_pairs pairs_of",
    "contact/impacts/collision.py": "__post_init__",  # q
    "contact/mobility.py": "_motions",  # prescribed
    "contact/rigid/forward_dynamics.py": "_refuse_hitting body_contact",  # qd, contacts
    "contact/rigid/problem.py": "disc_corners reduced",  # accuracy
    "contact/scene.py": "with_ground",  # normal
    "contact/settings.py": "__post_init__ check_settings",
    "contact/soft/force.py": "__call__ __init__ _laws",  # a law with memory as a function, numbers
    "contact/soft/laws.py": "__post_init__ require_positive",
    "contact/soft/patch.py": "__post_init__ lumped",
    "integration/prescription.py": "_check_values as_prescription prescribed_start",  # motions
    "learning/environment.py": "__init__",  # arrays, dtype
    "learning/task.py": "_check_parameters",  # parameters
    "simulation/contact_sensors.py": "_scene",  # scene of a trajectory from a file
    "simulation/controllers.py": "as_controller of_posture",  # controller or controls, posture
    "simulation/forces/actuators.py": "__post_init__ servos_of",  # curve, controls
    "simulation/forces/applied.py": "as_force",  # force
    "simulation/forces/friction.py": "__post_init__ of",
    "simulation/forces/limits.py": "__post_init__ of",
    "simulation/results/observables.py": "reactions",  # f_ext of contacts
    "simulation/results/storage.py": "_check_names",  # model of a file
    "simulation/rollouts/rollout.py": "_as_control _as_controls",  # tau or controls
    "simulation/sensors.py": "__call__ _of_contact",  # contacts
    "worlds/inputs.py": "rows",  # control
    "worlds/options.py": "check_options",
    "worlds/parts.py": "_free",  # velocity
    "worlds/pieces.py": "as_state give_velocity inertia_of on_base put_down",  # what is added
    "worlds/samples.py": "columns_of",  # mass
    "worlds/ties.py": "tie",  # name, joint, second
    "worlds/adding.py": "_moved_object _robot _object _unique surface_of",  # what is added
    "worlds/world.py": "with_model",  # model
}


def raised(path):
    """Names of functions and of the classes that they raise errors of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield function.name, ast.unparse(node.exc.func)


def test_every_error_is_a_row_of_the_table_or_about_one_argument():
    strangers = []
    for driver in DRIVERS:
        for path in sorted((SOURCE / driver).rglob("*.py")):
            file = path.relative_to(SOURCE).as_posix()
            known = ABOUT_ONE_ARGUMENT.get(file, "").split()
            new = {f for f, error in raised(path) if error in REFUSING and f not in known}
            strangers += [f"{file}: {name}" for name in sorted(new)]
    assert not strangers, (
        "these refuse something: raise a row of integration/refusals.py, or CONFLICTS of "
        f"simulation/compatibility.py, or list them here with their argument: {strangers}"
    )


def test_functions_that_are_listed_still_raise():
    gone = [
        f"{file}: {name}"
        for file, names in ABOUT_ONE_ARGUMENT.items()
        for name in names.split()
        if not any(f == name and e in REFUSING for f, e in raised(SOURCE / file))
    ]
    assert not gone


def test_every_row_is_raised_and_has_a_reason_and_a_remedy():
    from kinetree.integration import refusals

    names = {name for name, x in vars(refusals).items() if isinstance(x, refusals.Refusal)}
    errors = {
        error
        for driver in DRIVERS
        for path in (SOURCE / driver).rglob("*.py")
        for _, error in raised(path)
    }
    assert {f"{name}.of" for name in names} <= errors
    assert len(names) == len(REFUSALS) == len({(r.first, r.second) for r in REFUSALS})
    for row in REFUSALS:
        message = str(row.of("a", "b"))
        assert message.startswith("a cannot be combined with b: ")
        assert message.endswith(row.instead.replace("`", ""))
        assert row.reason
        assert row.instead
