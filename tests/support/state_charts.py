"""Charts of states, for tests of charts and of linear models on them."""

import numpy as np

from kinetree.loops.state_space import charts


def random_state_chart(system, q, v):
    """Coordinates that are random combinations of positions and velocities."""
    return charts.linear_state(system, q, v, np.random.default_rng(6).standard_normal((4, 8)))


def nonlinear_state_chart(system, q, v):
    """Coordinates of states that are curved in x and in y."""

    def R(x, y):
        z = np.array([x[0], x[3], x[4], x[7]])
        return z + 0.1 * z**2 - np.sin(y)

    start = np.array([q[0], q[3], v[0], v[3]])
    return charts.state(system, q, v, R, y=np.arcsin(np.clip(start + 0.1 * start**2, -1, 1)))
