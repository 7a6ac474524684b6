"""The estimate of a floating base."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kinetree.estimation.base import ERRORS, OPEN, POINTS


@dataclass(frozen=True, eq=False)
class Estimate:
    """State of a robot with a floating base, as estimated; arrays may have one batch axis.

    Attributes:
        q: positions, (..., nq): of the base as estimated, of the joints as the encoders read them.
        qd: velocities, (..., nv).
        state: orientation of the IMU (9 numbers), velocity, position, biases of gyroscope and
            accelerometer, points of the feet, (..., n).
        feet: names of the frames that stand on the ground.
        does: 0 for feet in the air, 1 for those that stay, 2 for those that have just closed
            contact, (..., feet).
        slips: 1 for feet that were not where they had stood, and will stand anew, (..., feet).
        squares: errors of the places of feet in standard deviations, squared, (..., feet).
        invariant_covariance: covariance of invariant errors of the whole state, (..., n, n).
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray
    feet: tuple[str, ...]
    does: np.ndarray
    slips: np.ndarray
    squares: np.ndarray
    invariant_covariance: np.ndarray

    @property
    def orientation(self) -> np.ndarray:
        """Orientation of the IMU in the world as rotation matrices, (..., 3, 3)."""
        return self.state[..., :9].reshape(*self.state.shape[:-1], 3, 3)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the IMU along the axes of the world [m/s], (..., 3)."""
        return self.state[..., 9:12]

    @property
    def position(self) -> np.ndarray:
        """Position of the IMU [m], (..., 3)."""
        return self.state[..., 12:15]

    @property
    def gyro_bias(self) -> np.ndarray:
        """Bias of the gyroscope [rad/s], (..., 3)."""
        return self.state[..., 15:18]

    @property
    def accelerometer_bias(self) -> np.ndarray:
        """Bias of the accelerometer [m/s²], (..., 3)."""
        return self.state[..., 18:21]

    @property
    def points(self) -> dict[str, np.ndarray]:
        """Positions of standing feet [m] by name, (..., 3) each; zeros for feet in the air."""
        places = range(POINTS, POINTS + 3 * len(self.feet), 3)
        return {f: self.state[..., k : k + 3] for f, k in zip(self.feet, places, strict=True)}

    @property
    def closed(self) -> dict[str, np.ndarray]:
        """Whether each foot stands, by name."""
        return self._by_foot(self.does != OPEN)

    @property
    def slipped(self) -> dict[str, np.ndarray]:
        """Whether each foot slipped from where it stood, by name."""
        return self._by_foot(self.slips != 0)

    @property
    def nis(self) -> dict[str, np.ndarray]:
        """Normalised innovation squared of each foot's position, by name.

        About 3 on average where the noise is as large as assumed; 0 where nothing was compared.
        """
        return self._by_foot(self.squares)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the estimation errors, (..., 15, 15).

        Of orientation (a rotation vector along the axes of the world), velocity, position, and the
        biases of gyroscope and accelerometer.
        """
        M = to_plain(self.state, ERRORS, 1.0)
        P = self.invariant_covariance[..., :ERRORS, :ERRORS]
        return M @ P @ np.swapaxes(M, -1, -2)

    def _by_foot(self, values):
        """Dict of values by the name of the foot."""
        return dict(zip(self.feet, np.moveaxis(values, -1, 0), strict=True))


def to_plain(x, n: int, sign: float) -> np.ndarray:
    """Matrix from ``n`` invariant errors to additive ones, or back for ``sign`` -1.

    Errors of vectors lose what the error of the orientation turns them by.
    """
    M = np.zeros((*x.shape[:-1], n, n))
    M[..., range(n), range(n)] = 1.0
    rows = [(3, 9), (6, 12), *((ERRORS + 3 * k, POINTS + 3 * k) for k in range((n - ERRORS) // 3))]
    for row, at in rows:
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            M[..., row + i, j] = sign * x[..., at + k]
            M[..., row + i, k] = -sign * x[..., at + j]
    return M
