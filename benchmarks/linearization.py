"""Linear models of closed chains, in units of one forward dynamics — Spencer 4.1 claims 2 to 4.

    python benchmarks/linearization.py

Times are those of the processor, on one thread: of single calls, with all that Python adds, and of
a sample of a batch. Operations are those of the compiled code. ``2 N`` evaluations are what central
differences of all ``N = 2 nv`` states take; ``differences`` moves the independent coordinates alone
and closes the loops again, which keeps the states on the manifold.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import kinetree as kt
from kinetree.algorithms.closed.independent import variable_names
from kinetree.benchmark import at_full_speed
from kinetree.codegen.runtime.threads import set_threads
from kinetree.expr.counting import cost
from kinetree.loops.linear.tangent_dynamics import kernel_and_columns
from kinetree.quantities import closed_chains

at_full_speed()

BATCH = 4096
MODELS = {
    "loader": ["boom_joint", "bucket_joint"],
    "four_bar": ["crank_joint"],
    "five_bar": ["link1_joint", "link2_joint"],
    "bennett": None,
    "clustered_linkage": None,
    "delta": None,
    "stewart": ["platform_pose"],
}


def seconds(call, repeats):
    """Least processor time of a call."""
    call()
    best = np.inf
    for _ in range(7):
        begin = time.process_time()
        for _ in range(repeats):
            call()
        best = min(best, (time.process_time() - begin) / repeats)
    return best


def states(model, rng):
    """States with loops closed, and forces."""
    start = model.neutral()
    near = np.array(
        [
            kt.loops.project_configuration(model, model.integrate(start, 0.05 * u))
            for u in rng.standard_normal((16, model.nv))
        ]
    )
    q = near[rng.integers(len(near), size=BATCH)]
    qd = kt.loops.project_velocity(model, q, rng.standard_normal((BATCH, model.nv)))
    return q, qd, rng.standard_normal((BATCH, model.nv))


def row(name, independent):
    """Forward dynamics and linear models of one mechanism."""
    model = getattr(kt.samples, name)()
    if independent is None:  # the variables that the plan of elimination leaves
        free = kernel_and_columns(model, None, 3)[1]
        independent = [variable_names(model)[k] for k in free]
    many = states(model, np.random.default_rng(0))
    one = [a[0] for a in many]
    forward = seconds(lambda: kt.forward_dynamics(model, *one), 200)
    linear = seconds(lambda: kt.linearize(model, *one, independent=independent), 100)
    chosen = seconds(lambda: kt.linearize(model, *one), 20)
    differences = seconds(
        lambda: kt.loops.linearize_in_coordinates(
            model, *one, independent=independent, method="differences"
        ),
        1,
    )
    forward_many = seconds(lambda: kt.forward_dynamics(model, *many), 3)
    linear_many = seconds(lambda: kt.linearize(model, *many, independent=independent), 3)
    chosen_names = kt.linearize(model, *one, independent=independent).coordinates
    columns = tuple(sorted(variable_names(model).index(n) for n in chosen_names))
    kernels = kernel_and_columns(model, columns, 3, columns)[0], closed_chains._kernel(model, 0, 3)
    operations = [cost(k.program.graph, k.program.roots) for k in kernels]
    return (
        name, str(len(columns)), f"{1e6 * forward:.1f}", f"{linear / forward:.1f}",
        f"{chosen / forward:.0f}", f"{4 * model.nv}", f"{differences / forward:.0f}",
        f"{1e9 * forward_many / BATCH:.0f}", f"{linear_many / forward_many:.1f}",
        f"{operations[0] / operations[1]:.1f}",
    )  # fmt: skip


def main():
    """Print the table."""
    set_threads(1)
    table = Table(title="linear models of closed chains, in forward dynamics")
    for title in (
        "mechanism", "p", "FD, µs", "linearize", "coordinates chosen", "2 N", "differences",
        "batch: FD, ns", "linearize", "operations",
    ):  # fmt: skip
        table.add_column(title, justify="right")
    for name, independent in MODELS.items():
        table.add_row(*row(name, independent))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
