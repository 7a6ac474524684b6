"""Public functions whose derivatives have recursions of their own, cheaper on most models.

Each takes a model and the arrays of the function and returns the derivatives by argument. The
compiler traces them beside the derivative of the graph and keeps what has fewest operations.
"""

from functools import partial

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.rnea_derivatives import is_applicable
from kinetree.spatial import Force

__all__ = ["recursions"]


def recursions(name, model, wrt):
    """Ways to the derivatives of the public function ``name``; none where there is no recursion."""
    of, arguments = _RECURSIONS.get(name, (None, frozenset()))
    is_tree = not (model.loops or model.couplings)
    if of is None or not set(wrt) <= arguments or not is_tree or not is_applicable(model):
        return ()
    return tuple(partial(of, in_body_coordinates) for in_body_coordinates in (False, True))


def _inverse_dynamics(in_body_coordinates, model, q, qd, qdd, f_ext=None):
    d = fewest.inverse_dynamics_derivatives(
        model, q, qd, qdd, _forces(f_ext), in_body_coordinates=in_body_coordinates
    )
    return {"q": d.dq, "qd": d.dqd, "qdd": d.dqdd}


def _bias_force(in_body_coordinates, model, q, qd, f_ext=None):
    d = _inverse_dynamics(in_body_coordinates, model, q, qd, model.zero_velocity, f_ext)
    return {"q": d["q"], "qd": d["qd"]}


def _gravity_force(in_body_coordinates, model, q):
    zero = model.zero_velocity
    return {"q": _inverse_dynamics(in_body_coordinates, model, q, zero, zero)["q"]}


def _forward_dynamics(in_body_coordinates, model, q, qd, tau, f_ext=None):
    d = fewest.forward_dynamics_derivatives(
        model, q, qd, tau, _forces(f_ext), in_body_coordinates=in_body_coordinates
    )
    return {"q": d.dq, "qd": d.dqd, "tau": d.dtau}


def _forces(f_ext):
    return None if f_ext is None else [None, *map(Force.from_array, f_ext)]


_RECURSIONS = {
    "inverse_dynamics": (_inverse_dynamics, {"q", "qd", "qdd"}),
    "bias_force": (_bias_force, {"q", "qd"}),
    "gravity_force": (_gravity_force, {"q"}),
    "forward_dynamics": (_forward_dynamics, {"q", "qd", "tau"}),
}
