"""The common part of estimators of floating bases: readings, states to start from, results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, require_known
from kinetree.estimation.base import ERRORS, POINTS
from kinetree.estimation.estimate import Estimate, to_plain
from kinetree.estimation.filtering import IntervalReadings
from kinetree.estimation.legs import EstimatorSetup, Foot, Noise
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.quantities.kinematics import pose, velocity


@dataclass(frozen=True)
class Uncertainty:
    """How well the state is known at the start: standard deviations.

    Position and heading in the world cannot be observed by feet and an IMU: what they begin with,
    they keep.

    Attributes:
        tilt: of the orientation about horizontal axes [rad].
        heading: about the vertical [rad].
        velocity: [m/s].
        position: [m].
        gyro_bias: [rad/s].
        accelerometer_bias: [m/s²].
    """

    tilt: float = 0.05
    heading: float = 0.0
    velocity: float = 0.1
    position: float = 0.0
    gyro_bias: float = 0.01
    accelerometer_bias: float = 0.1

    def __post_init__(self):
        for name, value in vars(self).items():
            if not 0 <= value < np.inf:
                raise ShapeError(f"{name} of Uncertainty must not be negative, got {value}")

    def covariance(self, up: np.ndarray) -> np.ndarray:
        """Covariance of orientation, velocity, position and biases, (15, 15)."""
        vertical = np.outer(up, up)
        P = np.zeros((ERRORS, ERRORS))
        P[:3, :3] = self.tilt**2 * (np.eye(3) - vertical) + self.heading**2 * vertical
        rest = self.velocity, self.position, self.gyro_bias, self.accelerometer_bias
        P[3:, 3:] = np.diag(np.repeat(rest, 3) ** 2)
        return P


class Estimator:
    """A robot with a floating base, of which an estimator knows IMU, encoders and contacts.

    Args:
        model: a tree that hangs on one free joint.
        feet: names of frames that stand on the ground, or ``Foot`` objects.
        dt: time between readings [s].
        imu: name of the frame of the IMU; that of the base by default.
        noise: ``Noise``.
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
        batch: int | None = None,
    ):
        self._setup = setup = EstimatorSetup(model, feet, dt, imu, noise)
        if batch is not None and not (type(batch) is int and batch > 0):
            raise ShapeError(f"batch must be a positive number of robots, or None, got {batch!r}")
        self.model, self.feet = model, setup.feet
        self.dt, self.imu, self.noise = setup.dt, setup.imu, setup.noise
        self._names = tuple(foot.frame for foot in self.feet)
        self._lead = () if batch is None else (batch,)
        robots, n = batch or 1, len(self.feet)
        self._sizes = {"gyro": 3, "accelerometer": 3, "q": model.nq - 7, "qd": model.nv - 6}
        arrays: Any = {name: np.zeros(robots * size) for name, size in self._sizes.items()}
        self._readings = IntervalReadings(closed=np.zeros(robots * n, dtype=np.int64), **arrays)
        self._width = POINTS + 3 * n

    def __repr__(self):
        return (
            f"<{type(self).__name__} of {self.model.name!r}; feet: {len(self.feet)}, "
            f"batch: {self._lead}>"
        )

    # --- what goes in ------------------------------------------------------------------------

    def _read(self, gyro, accelerometer, joints, rates, contacts):
        """Store the sensor readings of an interval, checked."""
        r = self._readings
        r.gyro[:] = self._flat(gyro, 3, "gyro")
        r.accelerometer[:] = self._flat(accelerometer, 3, "accelerometer")
        r.q[:] = self._flat(joints, self._sizes["q"], "joints")
        r.qd[:] = self._flat(rates, self._sizes["qd"], "rates")
        r.closed[:] = self._stance(contacts).reshape(-1)

    def _flat(self, x, size, name):
        """Array of all robots flattened, after a check of its shape."""
        x = np.asarray(x, dtype=float)
        if x.shape != (*self._lead, size):
            x = self._broadcast(x, size, name)
        return x.reshape(-1)

    def _broadcast(self, x, size, name):
        """Array broadcast to all robots of the batch; ShapeError if it does not fit."""
        try:
            if x.ndim and x.shape[-1] == size:
                return np.broadcast_to(x, (*self._lead, size))
        except ValueError:
            pass
        expected = ", ".join(map(str, (*self._lead, size)))
        raise ShapeError(f"{name} must have shape ({expected}), got {x.shape}")

    def _stance(self, contacts) -> np.ndarray:
        """Mask (..., feet) of the feet reported as standing."""
        names = self._names
        if isinstance(contacts, Mapping):
            self._require_feet(contacts)
            given = [np.broadcast_to(contacts.get(name, False), self._lead) for name in names]
            contacts = np.stack(given, axis=-1) if names else np.zeros(0)
        elif isinstance(contacts, (list, tuple)) and all(isinstance(x, str) for x in contacts):
            self._require_feet(contacts)
            contacts = [name in contacts for name in names]
        found = np.asarray(contacts) != 0
        if found.shape != (*self._lead, len(names)):
            found = self._broadcast(found, len(names), "contacts")
        return found

    def _require_feet(self, names):
        """Raise UnknownNameError unless all names are those of feet."""
        for name in names:
            require_known(name, self._names, f"contacts name {name!r}, which is no foot")

    # --- the start ---------------------------------------------------------------------------

    def _start(self, q, qd, uncertainty, biases) -> tuple[np.ndarray, np.ndarray]:
        """Initial states (robots, width) and covariances (robots, errors, errors)."""
        model, lead = self.model, self._lead
        q = np.broadcast_to(as_configuration(model, q), (*lead, model.nq)).astype(float)
        qd = np.zeros(model.nv) if qd is None else as_joint_vector(model, qd, "qd")
        qd = np.broadcast_to(qd, (*lead, model.nv)).astype(float)
        T, n = pose(model, q, self.imu), self._setup.base.errors
        x = np.zeros((*lead, self._width))
        x[..., :9] = T[..., :3, :3].reshape(*lead, 9)
        x[..., 9:12] = velocity(model, q, qd, self.imu, frame="aligned")[..., 3:]
        x[..., 12:15] = T[..., :3, 3]
        for at, bias, name in zip((15, 18), biases, ("gyro", "accelerometer"), strict=True):
            x[..., at : at + 3] = self._broadcast(np.asarray(bias, float), 3, f"{name}_bias")
        P = np.zeros((*lead, n, n))
        P[..., :ERRORS, :ERRORS] = self._plain_covariance(uncertainty)
        M = to_plain(x, n, -1.0)
        return x.reshape(-1, self._width), (M @ P @ np.swapaxes(M, -1, -2)).reshape(-1, n, n)

    def _plain_covariance(self, uncertainty) -> np.ndarray:
        """Covariance of additive errors, from an ``Uncertainty`` or a matrix."""
        if isinstance(uncertainty, Uncertainty):
            return uncertainty.covariance(self._setup.base.up)
        P = np.asarray(uncertainty, dtype=float)
        if P.shape[-2:] != (ERRORS, ERRORS) or not np.allclose(P, np.swapaxes(P, -1, -2)):
            raise ShapeError(
                f"uncertainty must be a kinetree.estimation.Uncertainty or symmetric covariances "
                f"(..., {ERRORS}, {ERRORS}), got {type(uncertainty).__name__} of shape {P.shape}"
            )
        return P

    # --- what comes out ----------------------------------------------------------------------

    def _estimate(self, x, P, does, f) -> Estimate:
        """Estimate with copies of states and covariances.

        Args:
            x: states.
            P: covariances.
            does: of contacts.
            f: has ``q``, ``qd``, ``slipped`` and ``nis`` of all robots.
        """
        lead, n = self._lead, self._setup.base.errors
        arrays = f.q, f.qd, x, does, f.slipped, f.nis
        q, qd, x, does, slips, nis = (a.reshape(*lead, -1).copy() for a in arrays)
        return Estimate(q, qd, x, self._names, does, slips, nis, P.reshape(*lead, n, n).copy())

    def _raise(self, code: int):
        """Raise the error for the robot whose readings are not finite."""
        which = f" of robot {code - 1}" if self._lead else ""
        raise ShapeError(f"readings{which} must be finite numbers")
