"""Places of contacts in the frame of an IMU, from encoders, by one kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.tied import tied_code
from kinetree.errors import ModelError, ShapeError
from kinetree.estimation.base import ERRORS, NOISES, Base
from kinetree.estimation.filtering import Legs
from kinetree.functional.kernel import kernel
from kinetree.joints import Free
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.define import require_tree
from kinetree.model.memo import remember
from kinetree.quantities.kinematics import jacobian, pose


@dataclass(frozen=True)
class Foot:
    """A frame that stands on the ground where it closes contact.

    Attributes:
        frame: name of a frame of the model.
        radius: of a round foot, whose centre is the frame [m]; it rolls on level ground.
    """

    frame: str
    radius: float = 0.0

    def __post_init__(self):
        if not isinstance(self.frame, str) or not 0 <= self.radius < np.inf:
            raise ShapeError(
                f"a Foot has the name of a frame and a radius that is not negative, got "
                f"{self.frame!r} and {self.radius!r}"
            )


@dataclass(frozen=True)
class Noise:
    """Noise of sensors, and of contacts: standard deviations.

    Attributes:
        gyro: density of white noise of the gyroscope [rad/s/√Hz].
        accelerometer: likewise [m/s²/√Hz].
        gyro_bias: density of the noise that moves its bias [rad/s²/√Hz].
        accelerometer_bias: likewise [m/s³/√Hz].
        contact: density of the noise by which points of contacts creep [m/s/√Hz].
        encoder: of each reading of a position [rad or m]; one number, or one for each velocity
            variable of the joints.
    """

    gyro: float = 1e-3
    accelerometer: float = 1e-2
    gyro_bias: float = 1e-4
    accelerometer_bias: float = 1e-3
    contact: float = 1e-2
    encoder: ArrayLike = 1e-3

    def __post_init__(self):
        for name in ("gyro", "accelerometer", "gyro_bias", "accelerometer_bias", "contact"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ShapeError(f"{name} of Noise must not be negative, got {getattr(self, name)}")
        encoder = np.asarray(self.encoder, dtype=float)
        if not (np.all(encoder >= 0) and np.all(np.isfinite(encoder))):
            raise ShapeError(f"encoder of Noise must not be negative, got {self.encoder}")

    def variances(self, contacts: int, h: float) -> np.ndarray:
        """Variances of all noise components for an interval of ``h`` seconds."""
        sizes = self.gyro**2 / h, self.accelerometer**2 / h
        walks = self.gyro_bias**2 * h, self.accelerometer_bias**2 * h, self.contact**2 * h
        return np.repeat([*sizes, *walks], [3, 3, 3, 3, 3 * contacts])


class EstimatorSetup:
    """A robot with a floating base, its IMU and feet, as estimators take them.

    Args:
        model: a tree that hangs on one free joint.
        feet: names of frames, or ``Foot`` objects.
        dt: time between readings [s].
        imu: name of the frame of the IMU; that of the base by default.
        noise: ``Noise``.

    Attributes:
        base, legs: tables of compiled code.
    """

    def __init__(self, model: Model, feet: Sequence[str | Foot], dt: float, imu, noise):
        require_tree(as_model(model), "kinetree.estimation")
        self.model, self.dt = model, float(dt)
        if not 0 < self.dt < np.inf:
            raise ShapeError(f"dt must be a positive time between readings [s], got {dt!r}")
        _require_one_base(model)
        self.imu = model.body_names[1] if imu is None else imu
        model.frame(self.imu)
        self.feet = _as_feet(model, feet)
        self.noise = Noise() if noise is None else noise
        if not isinstance(self.noise, Noise):
            raise ShapeError(f"noise must be a kinetree.estimation.Noise, got {noise!r}")
        n, rates = len(self.feet), model.nv - 6
        encoder = np.asarray(self.noise.encoder, dtype=float)
        if encoder.shape not in ((), (rates,)):
            raise ShapeError(
                f"encoder of Noise must be a number, or {rates} numbers for model {model.name!r}, "
                f"got shape {encoder.shape}"
            )
        gravity = np.array(model.gravity, dtype=float)
        strength = np.linalg.norm(gravity)
        errors = ERRORS + 3 * n
        self.base = Base(
            contacts=n,
            errors=errors,
            noises=NOISES + 3 * n,
            h=self.dt,
            gravity=gravity,
            up=-gravity / strength if strength else np.zeros(3),
            radius=np.array([foot.radius for foot in self.feet], dtype=float),
            variance=self.noise.variances(n, self.dt),
            product=np.zeros(errors * errors),
        )
        self.legs = Legs(
            joints=model.nq - 7,
            rates=rates,
            q=model.neutral().astype(float),
            qd=np.zeros(model.nv),
            places=np.zeros(3 * n),
            spins=np.zeros(3 * n),
            slopes=np.zeros(3 * n * rates),
            mount=np.zeros(12),
            sway=np.zeros(6),
            variance=np.broadcast_to(encoder**2, (rates,)).copy(),
            code=tied_code(None),
        )
        self._calls, self._next = 0, 1

    @property
    def user(self) -> Any:
        """Kernel of the leg kinematics."""
        frames = tuple(foot.frame for foot in self.feet)
        key = ("estimation", self.imu, frames)
        return remember(self.model, key, lambda: _kinematics(self.imu, frames))

    def tie(self, samples: int) -> None:
        """Renew the tied machine code for a number of further calls."""
        self._calls += samples
        if self._calls < self._next:
            return
        self._next = 2 * self._calls
        legs = self.legs
        kernel = self.user.compiled(self.model, legs.q, legs.qd)
        if not isinstance(kernel, Kernel):
            raise ModelError(f"model {self.model.name!r} has no compiled kinematics")
        kernel.variant("float64", wide=False, samples=self._calls)
        found = legs.places, legs.spins, legs.slopes, legs.mount, legs.sway
        legs.code = tied_code(kernel, legs.q, legs.qd, *found[0 if self.feet else 3 :])


def _require_one_base(model):
    """Raise ModelError unless the first joint is the only free base."""
    if not model.body_count or not isinstance(model.joint[1], Free):
        raise ModelError(
            f"the first joint of model {model.name!r} must be free, such as that of a robot that "
            f"was loaded with floating_base=True"
        )
    placed = pose(model, model.neutral(), model.body_names[1])
    if model.joint[1].translation != "parent" or not np.array_equal(placed, np.eye(4)):
        raise ModelError(
            f"the free joint of model {model.name!r} must be at the origin of the world, its "
            f"position along the axes of the world"
        )
    for i in range(2, model.body_count + 1):
        if model.parent[i] == 0:
            raise ModelError(
                f"body {model.body_names[i]!r} of model {model.name!r} does not belong to the "
                f"floating base; give the model of one robot"
            )


def _as_feet(model, feet) -> tuple[Foot, ...]:
    """Feet as a tuple of ``Foot`` objects."""
    if isinstance(feet, (str, Foot)):
        raise ShapeError(f"feet must be a list, got {feet!r}")
    found = tuple(Foot(x) if isinstance(x, str) else x for x in feet)
    for foot in found:
        if not isinstance(foot, Foot):
            raise ShapeError(
                f"feet must be names of frames or kinetree.estimation.Foot objects, got {foot!r}"
            )
        model.frame(foot.frame)
    names = [foot.frame for foot in found]
    for name in names:
        if names.count(name) > 1:
            raise ShapeError(f"there are two feet {name!r}")
    return found


def _kinematics(imu, frames):
    """Kernel of all leg kinematics that depends on the encoders."""

    def kinematics(m, q, qd):
        T, J = pose(m, q, imu), jacobian(m, q, imu, frame="aligned")[:, 6:]
        R, p, rates = T[:3, :3], T[:3, 3], qd[6:]
        places, spins, slopes = [], [], []
        for frame in frames:
            arm = pose(m, q, frame)[:3, 3] - p
            K = jacobian(m, q, frame, frame="aligned")[:, 6:]
            turned = np.array([np.cross(column, arm) for column in J[:3].T]).T.reshape(3, -1)
            places.append(R.T @ arm)
            spins.append(R.T @ ((K[:3] - J[:3]) @ rates))
            slopes.append(R.T @ (K[3:] - J[3:] - turned))
        mount = np.concatenate([R.T.reshape(-1), -(R.T @ p)])
        sway = np.concatenate([R.T @ (J[:3] @ rates), R.T @ (J[3:] @ rates)])
        feet = [np.array(x) for x in (places, spins, slopes)] if frames else []
        return (*feet, mount, sway)

    return kernel(kinematics)
