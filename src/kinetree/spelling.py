"""Suggestions for names that are not known."""

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, TypeVar

_SHOWN = 8
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def did_you_mean(name, known, otherwise=None, *, most=1, cutoff=0.6) -> str:
    """``did you mean 'x'?``, or ``otherwise`` where no name is close: by default what there is."""
    known = [str(k) for k in known]
    close = close_names(name, known, most=most, cutoff=cutoff)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    if otherwise is not None:
        return otherwise
    if not known:
        return "there are none"
    shown = ", ".join(map(repr, known[:_SHOWN]))
    return f"known: {shown}" + (f", ... ({len(known)} in all)" if len(known) > _SHOWN else "")


def close_names(name, known, *, most=1, cutoff=0.6) -> list[str]:
    """Known names that are spelled alike, whatever the case, or that begin with ``name``.

    Of enormous names and lists only the beginning counts.
    """
    import difflib  # not needed where all names are known

    plain = {k.lower(): k for k in reversed(list(known)[:2000])}
    wanted = str(name)[:100].lower()
    close = difflib.get_close_matches(wanted, plain, n=most, cutoff=cutoff)
    longer = [k for k in plain if len(wanted) > 1 and k.startswith(wanted) and k not in close]
    return [plain[k] for k in (*close, *reversed(longer))][:most]


def suggesting(module, known):
    """A ``__getattr__`` for a module, whose error says what may have been meant."""

    def missing(name):
        # Tools look for their own names in every module, such as ``__wrapped__``.
        hint = "" if name.startswith("_") else did_you_mean(name, known, "", most=2)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint and '; '}{hint}")

    return missing


def module_of(package, name, renamed: Mapping[str, str] = MappingProxyType({})):
    """Module for the ``__getattr__`` of a package that imports its modules on first use.

    Args:
        package: its name.
        name: of a module of the package, or a former name of a module.
        renamed: modules by the names that they had, which are taken with a warning.
    """
    if name in renamed:
        new = renamed[name]
        warnings.warn(f"{package}.{name} is deprecated: use {new}", DeprecationWarning, 3)
        return import_module(new)
    if name.startswith("_") or find_spec(f"{package}.{name}") is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(f"{package}.{name}")


def from_textbook(module: str, name: str | None = None) -> Any:
    """Text of ``kinetree.textbook``, or a name in it, that a package below it has as a public name.

    The textbook may use any of these packages, and none of them needs it: so it is imported when
    somebody asks for the name.
    """
    text = import_module(f"kinetree.textbook.{module}")
    return text if name is None else getattr(text, name)


# --- Calls with arguments that a function does not have ----------------------------------------


EXPLAINED = "_explained"
"""Attribute of what ``explains`` returns: the function inside, for a guard that explains itself."""


def explains(function: F) -> F:
    """Let a public function, or method, say what may have been meant by a wrong argument."""

    @wraps(function)
    def wrapped(*args, **named):
        try:
            return function(*args, **named)
        except TypeError as error:
            explain_call(function, error)
            raise

    setattr(wrapped, EXPLAINED, function)
    return wrapped  # pyright: ignore[reportReturnType]


def takes_former(**names: str) -> Callable[[F], F]:
    """Let a public function take options by their former names, ``former="present"``."""

    def takes_both(function: F) -> F:
        @wraps(function)
        def with_present_names(*args, **named):
            for former, present in names.items():
                if former in named:
                    value = named.pop(former)
                    if value is not None:
                        message = f"{former}= of {function.__name__} is deprecated: use {present}="
                        warnings.warn(message, DeprecationWarning, 2)
                        named[present] = value
            return function(*args, **named)

        # A guard goes past what explains a function to what it explains, and would go past this.
        vars(with_present_names).pop(EXPLAINED, None)
        return with_present_names  # pyright: ignore[reportReturnType]

    return takes_both


def explains_itself(kind: C) -> C:
    """Let the constructor of a class say what may have been meant by a wrong argument."""
    setattr(kind, "__init__", explains(kind.__init__))  # noqa: B010, of a class that is not known
    return kind


def explains_methods(kind: C) -> C:
    """Explain wrong arguments of the constructor of a class and all of its public methods."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, explains(method))
    return kind


def joins_bases(kind: C) -> C:
    """Make public methods and properties of bases, over which a class is split, its own.

    Messages, tracebacks and the reference then say ``World.step``, wherever it is written.
    """
    package = kind.__module__.rpartition(".")[0]
    for base in kind.__mro__[1:]:
        if base.__module__.rpartition(".")[0] != package:
            continue
        setattr(base, "_is_part_of", kind.__qualname__)  # noqa: B010, of a class that is not known
        for name, member in list(vars(base).items()):
            parts = (member.fget, member.fset) if isinstance(member, property) else (member,)
            for part in parts:
                if inspect.isfunction(part) and part.__qualname__ == f"{base.__qualname__}.{name}":
                    part.__qualname__ = f"{kind.__qualname__}.{name}"
            if not name.startswith("_") and name not in vars(kind):
                setattr(kind, name, member)
    return kind


def explain_call(function, error: TypeError) -> None:
    """Raise the error with a hint, if it is about the arguments of this call of a function.

    Python raises such errors in the frame of the caller; all others come from deeper inside.
    """
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        return
    owner, _, name = function.__qualname__.rpartition(".")
    name = owner if name == "__init__" else name
    parameters = list(inspect.signature(function).parameters.values())
    if owner and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    unknown = re.search(r"unexpected keyword argument '(.*)'", str(error))
    if unknown is None:
        raise TypeError(f"{error}; it is called as {name}({_signature_text(parameters)})") from None
    raise TypeError(no_argument(name, unknown[1], [p.name for p in parameters])) from None


def _signature_text(parameters):
    """Parameters as in a signature, without options by name where there are many."""
    shown = [
        p.replace(annotation=p.empty)
        for p in parameters
        if len(parameters) < 8 or p.kind is p.POSITIONAL_OR_KEYWORD or p.default is p.empty
    ]
    more = ", ..." if len(shown) < len(parameters) else ""
    return str(inspect.Signature(shown))[1:-1] + more


def no_argument(function: str, name: str, known) -> str:
    """Message for an argument that a function does not have."""
    known = [k for k in known if not k.startswith("_")]
    meant = [n for n in ARGUMENTS.get(name.replace("_", "").lower(), ()) if n in known]
    longer = [k for k in known if len(name) > 3 and k.startswith(name)]
    meant = meant[:1] or (longer if len(longer) > 1 else [])
    hint = f"did you mean {' or '.join(map(repr, meant))}?" if meant else did_you_mean(name, known)
    return f"{function} has no argument {name!r}; {hint}"


# --- What things are called elsewhere, in papers and in other libraries, and what they are here --

_SHAPES = ("Box", "Capsule", "Cone", "Cylinder", "Ellipsoid", "HeightField", "Mesh", "Sphere")
FUNCTIONS = {
    **{name.lower(): f"geometry.{name}" for name in _SHAPES},
    "aba": "forward_dynamics",
    "actuatorforce": "actuator_forces",
    "ccrba": "centroidal_momentum_matrix",
    "com": "center_of_mass",
    "cost": "control.QuadraticCost",
    "computedtorque": "control.ComputedTorque",
    "coriolis": "coriolis_matrix",
    "crba": "mass_matrix",
    "fd": "forward_dynamics",
    "fk": "pose",
    "forwardkinematics": "pose",
    "fromurdf": "load",
    "grad": "differentiate",
    "gravity": "gravity_force",
    "gravitycompensation": "control.GravityCompensation",
    "hessianmatrix": "hessian",
    "id": "inverse_dynamics",
    "inertiamatrix": "mass_matrix",
    "jac": "jacobian",
    "jit": "kernel",
    "loadmjcf": "load",
    "loadmodel": "load",
    "loadrobot": "load",
    "loadsdf": "load",
    "loadurdf": "load",
    "loadxml": "load",
    "log": "control.pose_error",
    "logmap": "control.pose_error",
    "lqr": "control.LQR",
    "massmatrixinverse": "inverse_mass_matrix",
    "minverse": "inverse_mass_matrix",
    "mpc": "control.MPC",
    "mppi": "control.PathIntegral",
    "nle": "bias_force",
    "nonlineareffects": "bias_force",
    "optimize": "control.optimize",
    "orientationerror": "control.pose_error",
    "poseerror": "control.pose_error",
    "qfrcactuator": "driving_force",
    "tenlength": "tendon_lengths",
    "tenj": "tendon_jacobian",
    "pathintegral": "control.PathIntegral",
    "pd": "control.PDWithFeedforward",
    "read": "load",
    "readurdf": "load",
    "rnea": "inverse_dynamics",
    "rotationerror": "control.pose_error",
    "rotationlog": "spatial.rotation.rotation_log",
    "rotationvector": "control.pose_error",
    "scene": "contact.Scene",
    "sim": "simulate",
    "step": "simulate",
    "tsid": "control.WholeBody",
    "wbc": "control.WholeBody",
    "wholebody": "control.WholeBody",
    "write": "save",
}
"""Names of ``kinetree``, by what they are called elsewhere, in lower case without underlines."""

ARGUMENTS = {
    "base": ("floating_base", "fixed"), "body": ("name", "on"), "collisions": ("contact",),
    "count": ("worlds", "steps"), "dt": ("dt", "timestep"), "endtime": ("duration",),
    "envs": ("worlds",), "externalforces": ("f_ext", "forces"), "fext": ("f_ext", "forces"),
    "floating": ("floating_base", "fixed"), "forces": ("f_ext", "tau"), "fov": ("angle",),
    "frame": ("name", "frame"), "friction": ("contacts",), "gain": ("kp",),
    "goal": ("reference", "target"), "guess": ("q0",), "horizon": ("steps",),
    "initialguess": ("q0", "guess"), "length": ("z", "x"), "link": ("name", "on"),
    "lookat": ("target",), "m": ("mass",), "mass": ("inertia",), "maxiter": ("iterations",),
    "maxiterations": ("iterations",), "method": ("integrator",), "mu": ("friction",),
    "n": ("steps", "worlds"), "njobs": ("threads",),
    "nsteps": ("steps",), "numenvs": ("worlds",), "numsteps": ("steps",), "origin": ("at",),
    "parent": ("on",), "policy": ("controller",), "pos": ("at",), "pose": ("at",),
    "position": ("at",), "processes": ("threads",), "qgoal": ("goal", "reference"),
    "qinit": ("q0",), "reference": ("frame",), "referenceframe": ("frame", "relative_to"),
    "resolution": ("size",), "solver": ("integrator",), "steps": ("duration",),
    "t": ("duration", "steps"), "target": ("goal", "reference", "targets"),
    "tau": ("effort", "controller"), "tf": ("duration",), "tfinal": ("duration",),
    "time": ("duration",), "timestep": ("timestep", "dt"), "tol": ("tolerance",),
    "torque": ("tau", "effort", "controller"),
    "torques": ("tau", "controller"), "u": ("controls", "tau"), "weight": ("mass",),
    "workers": ("threads",), "xyz": ("at",),
}  # fmt: skip
"""Arguments by what they are called elsewhere, in lower case without underlines; the first that a
function has is meant."""

OF_MODELS = {
    "damping": "model.bodies[i].dynamics, of joint i + 1",
    "dof": "model.nv",
    "dynamics": "model.bodies[i].dynamics, of joint i + 1",
    "friction": "model.bodies[i].dynamics, of joint i + 1",
    "masses": "[I.mass for I in model.inertia[1:]]",
    "ndof": "model.nv",
    "placement": "model.bodies[i].placement, of joint i + 1",
    "q0": "model.neutral(), or model.posture(name).q",
    "stiffness": "model.bodies[i].dynamics, of joint i + 1",
    "effortlimit": "model.effort_limits",
    "home": "model.posture('home').q",
    "joints": "model.joint, or model.joint_names",
    "jointlimits": "model.position_limits",
    "limits": "model.position_limits, .velocity_limits or .effort_limits",
    "body": "model.bodies[model.body_index(name) - 1]",
    "link": "model.bodies[model.body_index(name) - 1]",
    "links": "model.bodies, or model.body_names",
    "linknames": "model.body_names",
    "interpolate": "model.integrate(q0, s * model.difference(q0, q1))",
    "lower": "model.position_limits.lower",
    "lowerpositionlimit": "model.position_limits.lower",
    "mass": "model.total_mass",
    "nbodies": "model.body_count",
    "njoints": "model.body_count; joint i carries body i",
    "ntendon": "len(model.tendons)",
    "nu": "len(model.actuators)",
    "qmax": "model.position_limits.upper",
    "qmin": "model.position_limits.lower",
    "random": "model.random_configuration()",
    "upper": "model.position_limits.upper",
    "upperpositionlimit": "model.position_limits.upper",
    "velocitylimit": "model.velocity_limits",
    "zero": "model.neutral()",
    "describe": "model.summary()",
    "plot": "kinetree.plot.tree(model)",
    "tourdf": "kinetree.save(model, 'robot.urdf')",
    **{
        verb: f"kinetree.{verb}(model, ...)"
        for verb in ("check", "rollout", "save", "simulate", "view")
    },
}
"""What to write for an attribute that models have elsewhere."""

OF_TRAJECTORIES = {
    "accelerations": "kinetree.forward_dynamics(model, motion.q, motion.qd, motion.tau)",
    "forces": "motion.tau",
    "positions": "motion.q",
    "qpos": "motion.q",
    "qvel": "motion.qd",
    "record": "kinetree.viewer.record(motion, 'motion.mp4')",
    "show": "kinetree.view(motion)",
    "time": "motion.t",
    "times": "motion.t",
    "tocsv": "motion.save('motion.csv')",
    "tohtml": "kinetree.viewer.save_html(motion, 'motion.html')",
    "torques": "motion.tau",
    "v": "motion.qd",
    "velocities": "motion.qd",
    "view": "kinetree.view(motion)",
}
"""What to write for an attribute that motions have elsewhere."""


def name_here(name: str, table) -> str | None:
    """Name here of a thing that is called ``name`` elsewhere, if it is in the table."""
    return table.get(name.replace("_", "").lower())


# --- Text of strangers as people may see it ------------------------------------------------------
# Names in robot files, and the names of the files themselves, may hold control characters that
# drive a terminal, marks that turn the direction of writing, and halves of surrogate pairs, which
# no encoding has. Whatever shows such text passes it through ``printable`` first.


def printable(text, keep: str = "") -> str:
    r"""The text with escapes such as ``\x1b`` in place of all that has no picture.

    Args:
        text: anything; its ``str`` is meant.
        keep: characters that stay although they have none, such as a line feed in a message.
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
