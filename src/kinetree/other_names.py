"""What things are called elsewhere, in papers and in other libraries, and what they are here."""

__all__ = ["FUNCTIONS", "OF_MODELS", "name_here"]

FUNCTIONS = {
    "aba": "forward_dynamics",
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
    "pathintegral": "control.PathIntegral",
    "pd": "control.PDWithFeedforward",
    "read": "load",
    "readurdf": "load",
    "rnea": "inverse_dynamics",
    "scene": "contact.Scene",
    "sim": "simulate",
    "step": "simulate",
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
