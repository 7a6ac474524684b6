"""Camera: position, direction and angle of view."""

from dataclasses import dataclass, replace

import numpy as np

_ANGLE = np.radians(35.0)
_FILLED, _WIDTH = 0.82, 1.3  # of the picture; its width over its height


@dataclass(frozen=True, eq=False)
class Camera:
    """A point of view.

    Attributes:
        position: of the eye [m], (3,).
        target: what is in the middle [m], (3,).
        up: upwards in the picture, (3,).
        angle: of view, from bottom to top [rad].
        aspect: width over height of the narrowest picture that has everything in view; one that is
            narrower is seen under a larger angle.
    """

    position: np.ndarray
    target: np.ndarray
    up: np.ndarray
    angle: float = _ANGLE
    aspect: float = 1.0

    def axes(self):
        """Rows: to the right, upwards, towards the eye."""
        back = self.position - self.target
        back = back / np.linalg.norm(back)
        right = np.cross(self.up, back)
        right = right / np.linalg.norm(right)
        return np.array([right, np.cross(back, right), back])

    def moved(self, shift) -> "Camera":
        """The same, carried along."""
        return replace(self, position=self.position + shift, target=self.target + shift)

    def half_height(self, aspect) -> float:
        """Half the height of a picture of this width over height, at unit distance."""
        return np.tan(self.angle / 2) * max(1.0, self.aspect / aspect)


def framing(scene, direction=None, zoom=1.0) -> Camera:
    """A camera that has the whole mechanism in view, at the beginning of the scene.

    Args:
        scene: what to look at.
        direction: from the mechanism to the eye, (3,); by default from the front, right and above,
            and for a mechanism in a plane more from the front.
        zoom: larger than one to come closer.
    """
    low, high = scene.box
    up = np.asarray(scene.up, dtype=float)
    if direction is None:
        direction = _from(up, high - low)
    direction = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    if abs(direction @ up) > 0.999:
        up = np.array([0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    middle = (low + high) / 2
    corners = np.array([[scene.box[k, i] for i, k in enumerate(c)] for c in np.ndindex(2, 2, 2)])
    across = Camera(middle + direction, middle, up).axes() @ (corners - middle).T
    part = _FILLED * np.tan(_ANGLE / 2)
    distance = np.max(across[2] + np.maximum(np.abs(across[0]) / _WIDTH, np.abs(across[1])) / part)
    distance = max(distance, 1e-3)
    aspect = float(np.max(np.abs(across[0]) / (distance - across[2])) / part)
    return Camera(middle + distance / zoom * direction, middle, up, aspect=aspect)


def _from(up, extent):
    """A direction in which the mechanism shows most of itself."""
    front = np.array([0.0, -1.0, 0.0]) if abs(up[1]) < 0.7 else np.array([0.0, 0.0, 1.0])
    front = front - (front @ up) * up
    front = front / np.linalg.norm(front)
    side = np.cross(up, front)
    deep, wide = abs(extent @ np.abs(front)), abs(extent @ np.abs(side))
    if deep < 0.4 * wide:
        return front + 0.35 * side + 0.25 * up
    if wide < 0.4 * deep:
        return side + 0.35 * front + 0.25 * up
    return front + 0.75 * side + 0.5 * up
