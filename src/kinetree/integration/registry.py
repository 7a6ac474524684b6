"""Integrators by name."""

from kinetree.errors import UnknownNameError, require_known
from kinetree.integration import explicit, implicit, rosenbrock
from kinetree.integration.explicit import ExplicitRungeKutta, SemiImplicitEuler
from kinetree.integration.integrator import Integrator
from kinetree.integration.variational import VariationalMidpoint

INTEGRATORS = {
    integrator.name: integrator
    for integrator in (
        ExplicitRungeKutta(explicit.EULER),
        SemiImplicitEuler(),
        ExplicitRungeKutta(explicit.MIDPOINT),
        ExplicitRungeKutta(explicit.HEUN),
        ExplicitRungeKutta(explicit.RK4),
        ExplicitRungeKutta(explicit.RK6),
        ExplicitRungeKutta(explicit.DORMAND_PRINCE),
        implicit.ImplicitMidpoint(),
        VariationalMidpoint(),
        rosenbrock.Rosenbrock(rosenbrock.RODAS3),
        rosenbrock.RosenbrockW(rosenbrock.ROS34PW2),
    )
}


STIFF = INTEGRATORS["rosenbrock_w"]
"""What ``"auto"`` is where springs, dampers or servos are too stiff for explicit steps."""
MASSLESS = INTEGRATORS["implicit_midpoint"]
"""And where next to nothing is moved: this one does not divide by inertias."""


def integrator_named(integrator, *, adaptive=False, constrained=False) -> Integrator:
    """Integrator by name, or ``"auto"``; integrators themselves pass through.

    ``"auto"`` is ``"dopri5"`` for steps that adapt; for steps of equal length ``"rk4"``, and
    ``"rk6"`` for mechanisms with loops; ``STIFF`` where these are not stable, which depends on the
    step: see ``simulation.setup.suited``.
    """
    if isinstance(integrator, Integrator):
        return integrator
    if not isinstance(integrator, str):
        raise UnknownNameError(
            f"integrator must be a name such as 'rk4' or an Integrator, got a "
            f"{type(integrator).__name__}; names are {', '.join(map(repr, INTEGRATORS))}"
        )
    if integrator == "auto":
        return INTEGRATORS["dopri5" if adaptive else "rk6" if constrained else "rk4"]
    require_known(integrator, ("auto", *INTEGRATORS), f"there is no integrator {integrator!r}")
    return INTEGRATORS[integrator]
