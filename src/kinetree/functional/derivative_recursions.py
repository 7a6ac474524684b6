"""Public functions whose derivatives have a recursion of their own, cheaper on most models.

Each takes a model and the arrays of the function and returns the derivatives by argument. The
compiler traces it beside the derivative of the graph and keeps what has fewer operations.
"""

from kinetree.algorithms.aba_derivatives import forward_dynamics_derivatives
from kinetree.algorithms.rnea_derivatives import inverse_dynamics_derivatives, is_applicable
from kinetree.spatial import Force

__all__ = ["recursion"]


def recursion(name, model, wrt):
    """Derivatives of the public function ``name`` by recursion, or None where there is none."""
    found = _RECURSIONS.get(name)
    is_tree = not (model.loops or model.couplings)
    if found is None or not set(wrt) <= found[1] or not is_tree or not is_applicable(model):
        return None
    return found[0]


def _inverse_dynamics(model, q, qd, qdd, f_ext=None):
    d = inverse_dynamics_derivatives(model, q, qd, qdd, _forces(f_ext))
    return {"q": d.dq, "qd": d.dqd, "qdd": d.dqdd}


def _bias_force(model, q, qd, f_ext=None):
    d = inverse_dynamics_derivatives(model, q, qd, model.zero_velocity, _forces(f_ext))
    return {"q": d.dq, "qd": d.dqd}


def _gravity_force(model, q):
    zero = model.zero_velocity
    return {"q": inverse_dynamics_derivatives(model, q, zero, zero).dq}


def _forward_dynamics(model, q, qd, tau, f_ext=None):
    d = forward_dynamics_derivatives(model, q, qd, tau, _forces(f_ext))
    return {"q": d.dq, "qd": d.dqd, "tau": d.dtau}


def _forces(f_ext):
    return None if f_ext is None else [None, *map(Force.from_array, f_ext)]


_RECURSIONS = {
    "inverse_dynamics": (_inverse_dynamics, {"q", "qd", "qdd"}),
    "bias_force": (_bias_force, {"q", "qd"}),
    "gravity_force": (_gravity_force, {"q"}),
    "forward_dynamics": (_forward_dynamics, {"q", "qd", "tau"}),
}
