"""The moving-horizon estimator of a floating base."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.estimation.estimate import Estimate
from kinetree.estimation.estimator import Estimator, Uncertainty
from kinetree.estimation.horizon import HorizonWindows, estimate_all
from kinetree.estimation.legs import Foot
from kinetree.model import Model
from kinetree.model.arrays import whole_number


class MovingHorizon(Estimator):
    """State of a floating base that fits the readings of a window best, by least squares.

    The models are those of ``BaseFilter``, and so are the arguments; but all states of the window
    are found anew with every reading (Gauss and Newton's method), so that what the filter has
    linearised too early is put right. What was known before the window enters as its arrival cost.

    Args:
        model: a tree that hangs on one free joint.
        feet: names of frames that stand on the ground, or ``Foot`` objects.
        dt: time between readings [s].
        window: intervals between readings.
        iterations: of each step, at most.
        tolerance: of the last iteration, in standard deviations of the noise.
        imu: name of the frame of the IMU; that of the base by default.
        noise: standard deviations of sensors and contacts.
        gate: error of the place of a foot, in standard deviations, beyond which it has slipped.
        batch: number of robots, each with its own readings; None for one without a batch axis.
    """

    def __init__(
        self,
        model: Model,
        feet: Sequence[str | Foot],
        dt: float,
        *,
        window: int = 20,
        iterations: int = 3,
        tolerance: float = 1e-3,
        gate: float = 5.0,
        **options: Any,
    ):
        super().__init__(model, feet, dt, **options)
        size = whole_number(window, "window", least=1)
        count = whole_number(iterations, "iterations", least=1)
        if not gate > 0 or not tolerance > 0:
            raise ShapeError(f"gate and tolerance must be positive, got {gate!r}, {tolerance!r}")
        base, robots, n = self._setup.base, self._readings.gyro.size // 3, len(self.feet)
        errors, noises, width, log = base.errors, base.noises, self._width, 6 + 15 * n
        arrays: Any = {name: np.zeros(robots * width) for name in ("first", "prior", "later")}
        for name in ("spread", "later_spread", "last"):
            arrays[name] = np.zeros(robots * errors**2)
        sizes = {"readings_of": robots * size * log, "w": robots * size * noises}
        sizes |= {"states": robots * (size + 1) * width, "steps": robots, "nis": robots * n}
        sizes |= {"q": robots * model.nq, "qd": robots * model.nv}
        sizes |= {"F": size * errors**2, "G": size * noises * errors, "P": errors**2}
        sizes |= {"K": size * n * 3 * errors, "s": size * n * 3, "H": 3 * errors}
        sizes |= dict.fromkeys(("mean", "shift", "slope", "back"), errors)
        arrays |= {name: np.zeros(length) for name, length in sizes.items()}
        whole = {"count": robots, "taken": robots, "does": robots * size * n, "used": size * n}
        whole |= {"slipped": robots * n, "was": robots * n}
        arrays |= {name: np.zeros(length, dtype=np.int64) for name, length in whole.items()}
        self._horizon = HorizonWindows(
            base=base,
            legs=self._setup.legs,
            readings=self._readings,
            robots=robots,
            width=width,
            log=log,
            size=size,
            iterations=count,
            tolerance=float(tolerance) ** 2,
            gate=float(gate) ** 2,
            **arrays,
        )
        self.window = size
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
        """Reset the estimator to an initial state with an empty window."""
        x, P = self._start(q, qd, uncertainty, (gyro_bias, accelerometer_bias))
        f = self._horizon
        f.first[:] = f.prior[:] = x.reshape(-1)
        f.spread[:], f.count[:], f.was[:] = P.reshape(-1), 0, 0

    def step(
        self,
        gyro: ArrayLike,
        accelerometer: ArrayLike,
        joints: ArrayLike,
        rates: ArrayLike,
        contacts: ArrayLike | Sequence[str] | Mapping[str, Any],
    ) -> Estimate:
        """Estimate of the base after the next sensor readings."""
        f = self._horizon
        self._read(gyro, accelerometer, joints, rates, contacts)
        self._setup.tie(f.robots)
        code = estimate_all(f)
        if code:
            self._raise(code)
        k, n = f.count, len(self.feet)
        robots = np.arange(f.robots)
        x = f.states.reshape(f.robots, f.size + 1, -1)[robots, k]
        does = f.does.reshape(f.robots, f.size, n)[robots, k - 1]
        return self._estimate(x, f.last, does, f)

    @property
    def iterations_taken(self) -> np.ndarray:
        """Gauss-Newton iterations of the last step, (...)."""
        return self._horizon.taken.reshape(self._lead)[()]

    def smoothed(self) -> dict[str, np.ndarray]:
        """States in the window smoothed by all of its readings, time first.

        Returns:
            ``orientation`` (T, ..., 3, 3), ``velocity``, ``position``, ``gyro_bias`` and
            ``accelerometer_bias`` (T, ..., 3) of the IMU, the last ones those of the last estimate.
        """
        f = self._horizon
        times = int(f.count[0]) + 1
        x = np.moveaxis(f.states.reshape(f.robots, f.size + 1, -1)[:, :times], 1, 0)
        x = x.reshape(times, *self._lead, -1).copy()
        names = "velocity", "position", "gyro_bias", "accelerometer_bias"
        found = {name: x[..., 9 + 3 * k : 12 + 3 * k] for k, name in enumerate(names)}
        return {"orientation": x[..., :9].reshape(*x.shape[:-1], 3, 3), **found}
