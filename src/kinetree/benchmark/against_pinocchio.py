"""kinetree against Pinocchio.

It runs through its own batch function on one thread where it has one, otherwise through its Python
call in a loop.
"""

import numpy as np

import kinetree as kt
from kinetree.benchmark.measure import PEER_SAMPLES, Case, difference, is_too_large, measure
from kinetree.interop.pinocchio.library import pinocchio

__all__ = ["FUNCTIONS", "compare", "peer_cases"]

FUNCTIONS = (
    "RNEA", "ABA", "CRBA", "inverse of H", "dRNEA", "dABA", "Jacobian", "Coriolis", "centroidal",
    "regressor",
)  # fmt: skip
_ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def compare(pin_model, batches=(1, 16, 256, 4096), functions=FUNCTIONS, repeats=7, seed=0):
    """Yield a ``Result`` for every function and batch size, against Pinocchio."""
    model = kt.interop.pinocchio.from_model(pin_model)
    for n in batches:
        for function, case in peer_cases(model, pin_model, n, seed).items():
            if function in functions and not is_too_large(model, function, n):
                yield measure(function, n, case, repeats)


def peer_cases(model, pin_model, n, seed=0):
    """What to time for ``n`` samples, by the name of the function."""
    pin = pinocchio()

    P = kt.interop.pinocchio
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(n)])
    qd, x = rng.standard_normal((2, n, model.nv))
    pq, pv = P.to_q(model, pin_model, q), P.to_v(model, pin_model, q, qd)
    pa, pt = P.to_a(model, pin_model, q, qd, x), P.to_tau(model, pin_model, q, x)
    data, order = pin_model.createData(), _velocity_order(P, model, pin_model)
    last, joint = model.body_names[-1], pin_model.getJointId(model.joint_names[-1])
    numbers = np.arange(10.0 * (pin_model.njoints - 1))
    parameters = P.from_parameters(model, pin_model, numbers).astype(int)
    if n == 1:
        q, qd, x = q[0], qd[0], x[0]
    d_rnea = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    d_aba = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd", "tau"))

    def case(ours, one, batch, answer):
        """``one(k)`` is Pinocchio's call for sample k, ``answer`` its result in our order."""
        samples = n if batch else min(n, PEER_SAMPLES)

        def loop():
            for k in range(samples):
                one(k)

        return Case(ours, batch or loop, samples, lambda: difference(ours(), one, answer, n))

    F = np.asfortranarray
    out, pool = np.zeros((pin_model.nv, n), order="F"), pin.ModelPool(pin_model, 1)
    columns = [F(a.T) for a in (pq, pv, pa, pt)]
    from_tau = lambda k, tau: P.from_tau(model, pin_model, pq[k], tau)  # noqa: E731
    from_a = lambda k, a: P.from_a(model, pin_model, pq[k], pv[k], a)  # noqa: E731

    def square(k, M):
        return np.reshape(M, (model.nv, model.nv))[np.ix_(order, order)]

    def rnea_batch():
        pin.rneaInParallel(1, pool, columns[0], columns[1], columns[2], out)

    def aba_batch():
        pin.abaInParallel(1, pool, columns[0], columns[1], columns[3], out)

    return {
        "RNEA": case(
            lambda: kt.inverse_dynamics(model, q, qd, x),
            lambda k: pin.rnea(pin_model, data, pq[k], pv[k], pa[k]),
            rnea_batch if n > 1 else None,
            from_tau,
        ),
        "ABA": case(
            lambda: kt.forward_dynamics(model, q, qd, x),
            lambda k: pin.aba(pin_model, data, pq[k], pv[k], pt[k]),
            aba_batch if n > 1 else None,
            from_a,
        ),
        "CRBA": case(
            lambda: kt.mass_matrix(model, q),
            lambda k: pin.crba(pin_model, data, pq[k]),
            None,
            lambda k, H: square(k, np.triu(H) + np.triu(H, 1).T),
        ),
        "inverse of H": case(
            lambda: kt.inverse_mass_matrix(model, q),
            lambda k: pin.computeMinverse(pin_model, data, pq[k]),
            None,
            lambda k, M: square(k, np.triu(M) + np.triu(M, 1).T),
        ),
        "dRNEA": case(
            lambda: d_rnea(model, q, qd, x),
            lambda k: pin.computeRNEADerivatives(pin_model, data, pq[k], pv[k], pa[k]),
            None,
            lambda k, d: [square(k, M) for M in d[:2]],
        ),
        "dABA": case(
            lambda: d_aba(model, q, qd, x),
            lambda k: pin.computeABADerivatives(pin_model, data, pq[k], pv[k], pt[k]),
            None,
            lambda k, d: [square(k, M) for M in d[:3]],
        ),
        "Jacobian": case(
            lambda: kt.jacobian(model, q, last, frame="body"),
            lambda k: pin.computeJointJacobian(pin_model, data, pq[k], joint),
            None,
            lambda k, J: np.reshape(J, (6, -1))[_ANGULAR_FIRST][:, order],
        ),
        "Coriolis": case(
            lambda: kt.coriolis_matrix(model, q, qd),
            lambda k: pin.computeCoriolisMatrix(pin_model, data, pq[k], pv[k]),
            None,
            square,
        ),
        "centroidal": case(
            lambda: kt.centroidal_momentum_matrix(model, q),
            lambda k: pin.ccrba(pin_model, data, pq[k], pv[k]),
            None,
            lambda k, _: np.reshape(data.Ag, (6, -1))[_ANGULAR_FIRST][:, order],
        ),
        "regressor": case(
            lambda: kt.regressor(model, q, qd, x),
            lambda k: pin.computeJointTorqueRegressor(pin_model, data, pq[k], pv[k], pa[k]),
            None,
            lambda k, Y: np.reshape(Y, (model.nv, -1))[order][:, parameters],
        ),
    }


def _velocity_order(P, model, pin_model):
    """Places of our velocity variables among Pinocchio's."""
    q = model.neutral()
    unit = [P.to_tau(model, pin_model, q, e) for e in np.eye(model.nv)]
    return [int(np.argmax(np.abs(u))) for u in unit]
