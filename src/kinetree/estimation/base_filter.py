"""The error-state Kalman filter of a floating base."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.estimation.estimate import Estimate
from kinetree.estimation.estimator import Estimator, Uncertainty
from kinetree.estimation.filtering import Filter, step_all
from kinetree.estimation.legs import Foot, Noise
from kinetree.model import Model


class BaseFilter(Estimator):
    """Kalman filter of a floating base from IMU, encoders and contacts, on the manifold.

        observer = kt.estimation.BaseFilter(robot, feet, dt=2e-3)
        observer.reset(q)
        estimate = observer.step(gyro, accelerometer, joints, rates, contacts)
        controller(t, estimate.q, estimate.qd)

    The invariant extended Kalman filter, with biases of the IMU and the points where feet stand as
    states: see ``kinetree.estimation.base``. A step is one call of compiled code, for a robot or a
    batch of them.

    Args:
        model: a tree that hangs on one free joint.
        feet: names of frames that stand on the ground, or ``Foot`` objects.
        dt: time between readings [s].
        imu: name of the frame of the IMU; that of the base by default.
        noise: standard deviations of sensors and contacts.
        gate: error of the place of a foot, in standard deviations, beyond which it has slipped: it
            is not used, and stands anew at the next reading.
        batch: number of robots, each with its own readings; None for one without a batch axis.
    """

    def __init__(
        self,
        model: Model,
        feet: Sequence[str | Foot],
        dt: float,
        *,
        imu: str | None = None,
        noise: Noise | None = None,
        gate: float = 5.0,
        batch: int | None = None,
    ):
        super().__init__(model, feet, dt, imu=imu, noise=noise, batch=batch)
        if not gate > 0:
            raise ShapeError(f"gate must be a positive number of standard deviations, got {gate!r}")
        base, legs, robots, n = self._setup.base, self._setup.legs, batch or 1, len(self.feet)
        errors, noises, width = base.errors, base.noises, self._width
        sizes: dict[str, Any] = {"state": robots * width, "covariance": robots * errors**2}
        sizes |= {"nis": robots * n, "q": robots * model.nq, "qd": robots * model.nv}
        sizes |= {"reading": 6 + 15 * n, "noise": noises, "next": width, "error": errors}
        sizes |= {"F": errors**2, "G": noises * errors, "H": 3 * errors, "K": 3 * errors}
        arrays: Any = {name: np.zeros(size) for name, size in sizes.items()}
        for name in ("does", "slipped"):
            arrays[name] = np.zeros(robots * n, dtype=np.int64)
        self._filter = Filter(
            base=base,
            legs=legs,
            readings=self._readings,
            robots=robots,
            width=width,
            gate=float(gate) ** 2,
            **arrays,
        )
        self.reset(model.neutral())

    def reset(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        *,
        uncertainty: Uncertainty | ArrayLike = Uncertainty(),  # noqa: B008
        gyro_bias: ArrayLike = (0.0, 0.0, 0.0),
        accelerometer_bias: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Reset the filter to an initial state, with all feet in the air.

        Args:
            q: positions at the start, (..., nq).
            qd: velocities, (..., nv); zero by default.
            uncertainty: how well this is known: ``Uncertainty``, or a covariance as that of an
                ``Estimate``.
            gyro_bias: [rad/s], (..., 3).
            accelerometer_bias: [m/s²], (..., 3).
        """
        x, P = self._start(q, qd, uncertainty, (gyro_bias, accelerometer_bias))
        f = self._filter
        f.state[:], f.covariance[:], f.does[:] = x.reshape(-1), P.reshape(-1), 0

    def step(
        self,
        gyro: ArrayLike,
        accelerometer: ArrayLike,
        joints: ArrayLike,
        rates: ArrayLike,
        contacts: ArrayLike | Sequence[str] | Mapping[str, Any],
    ) -> Estimate:
        """Estimate of the base after the next sensor readings.

        Args:
            gyro: angular velocity of the interval that ends now, in the axes of the IMU [rad/s],
                (..., 3).
            accelerometer: acceleration less gravity, likewise [m/s²], (..., 3).
            joints: positions of all joints but that of the base, now, (..., nq - 7).
            rates: their velocities, (..., nv - 6).
            contacts: which feet stand: truth values (..., feet), or by name, or names.
        """
        f = self._filter
        self._read(gyro, accelerometer, joints, rates, contacts)
        self._setup.tie(f.robots)
        code = step_all(f)
        if code:
            self._raise(code)
        return self._estimate(f.state, f.covariance, f.does, f)
