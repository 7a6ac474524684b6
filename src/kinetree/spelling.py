"""Suggestions for names that are not known."""

import difflib

_SHOWN = 8


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


# --- What things are called elsewhere, in papers and in other libraries, and what they are here --

FUNCTIONS = {
    "aba": "forward_dynamics",
    "actuatorforce": "actuator_forces",
    "ccrba": "centroidal_momentum_matrix",
    "com": "center_of_mass",
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
    "lqr": "control.LQR",
    "massmatrixinverse": "inverse_mass_matrix",
    "minverse": "inverse_mass_matrix",
    "mppi": "control.PathIntegral",
    "nle": "bias_force",
    "nonlineareffects": "bias_force",
    "qfrcactuator": "driving_force",
    "pathintegral": "control.PathIntegral",
    "pd": "control.PDWithFeedforward",
    "read": "load",
    "readurdf": "load",
    "rnea": "inverse_dynamics",
    "scene": "contact.Scene",
    "sim": "simulate",
    "step": "simulate",
    "tsid": "control.WholeBody",
    "wbc": "control.WholeBody",
    "wholebody": "control.WholeBody",
    "write": "save",
}
"""Names of ``kinetree``, by what they are called elsewhere, in lower case without underlines."""

OF_MODELS = {
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


def name_here(name: str, table) -> str | None:
    """What a thing is called here that is called ``name`` elsewhere, if it is in the table."""
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
