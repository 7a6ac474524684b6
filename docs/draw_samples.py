"""Draw the sample models, for docs/samples.png.

    python docs/draw_samples.py [file.png]

``draw`` puts any model into Matplotlib axes by the shapes of its geometry; meshes are left out.
"""

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.model import geometry

# Where "home" hangs straight down: q that shows more.
SWINGING = {"pendulum": [-0.6], "double_pendulum": [-0.7, 0.4], "cart_pole": [-0.3, 2.9]}
SUN = np.array([0.45, -0.6, 0.66])


def draw(axes, model, q):
    """Draw the shapes of ``model`` at the configuration ``q`` into 3-D axes."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    to_body = base_transforms(model, joint_transforms(model, q)[0])
    patches, colors = [], []
    for piece in model.geometry:
        surface = patches_of(piece.shape)
        if not piece.visual or surface is None:
            continue
        pose = (piece.placement @ to_body[piece.body]).to_pose().astype(float)
        corners = surface @ pose[:3, :3].T + pose[:3, 3]
        normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
        length = np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        light = 0.62 + 0.38 * (normals / length) @ SUN
        color = np.array(piece.color or (0.7, 0.7, 0.7, 1.0))
        patches.extend(corners)
        colors.extend(np.column_stack([np.outer(light, color[:3]), np.full(len(light), color[3])]))
    colors = np.clip(colors, 0, 1)
    looks = {"facecolors": colors, "edgecolors": colors, "linewidths": 0.2}
    axes.add_collection3d(Poly3DCollection(patches, **looks))
    points = np.concatenate(patches)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    half = 0.52 * np.ptp(points, axis=0).max()
    for axis, center in zip("xyz", middle, strict=True):
        getattr(axes, f"set_{axis}lim")(center - half, center + half)
    axes.set_box_aspect((1, 1, 1), zoom=1.22)


def patches_of(shape, count=16):
    """Four-cornered patches (n, 4, 3) that make up the surface of a shape, facing outwards."""
    if isinstance(shape, geometry.Box):
        return _cuboid() * np.array(shape.size) / 2
    if isinstance(shape, geometry.Sphere):
        return _turned(*_arc(shape.radius, 0.0, count), count)
    if isinstance(shape, geometry.Ellipsoid):
        return _turned(*_arc(1.0, 0.0, count), count) * np.array(shape.radii)
    if isinstance(shape, geometry.Capsule):
        return _turned(*_arc(shape.radius, shape.length, count), count)
    if isinstance(shape, geometry.Cylinder):
        r, h = shape.radius, shape.length / 2
        return _turned([0, r, r, 0], [-h, -h, h, h], count)
    if isinstance(shape, geometry.Plane):
        x, y = np.array(shape.size) / 2
        return np.array([[[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]]])
    return None


def _cuboid():
    top = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]])
    faces = [np.roll(top, k, axis=1) for k in range(3)]
    return np.array([*faces, *(-face[::-1] for face in faces)])


def _arc(radius, length, count):
    """Profile of a ball whose halves are ``length`` apart: distance from the axis, and height."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, count)
    return radius * np.cos(angle), radius * np.sin(angle) + np.sign(angle) * length / 2


def _turned(radii, heights, count):
    """The surface that a profile sweeps when it turns about z."""
    angle = np.linspace(0, 2 * np.pi, count + 1)
    rings = np.array([[r * np.cos(angle), r * np.sin(angle), z + 0 * angle]
                      for r, z in zip(radii, heights, strict=True)])  # fmt: skip
    rings = rings.transpose(0, 2, 1)
    low, high = rings[:-1], rings[1:]
    corners = np.stack([low[:, :-1], low[:, 1:], high[:, 1:], high[:, :-1]], axis=2)
    return corners.reshape(-1, 4, 3)


def contact_sheet(path, columns=5):
    """All samples on one sheet, each in its posture ``home``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = kt.samples.names()
    rows = -(-len(names) // columns)
    figure = plt.figure(figsize=(2.2 * columns, 2.35 * rows))
    for k, name in enumerate(names):
        model = kt.samples.load(name)
        home = next(p.q for p in model.postures if p.name == "home")
        axes = figure.add_subplot(rows, columns, k + 1, projection="3d")
        draw(axes, model, np.array(SWINGING.get(name, home)))
        axes.view_init(elev=18, azim=-60)
        axes.set_axis_off()
        axes.set_title(name, fontsize=11, y=0.99)
    figure.subplots_adjust(0, 0.005, 1, 0.97, wspace=0, hspace=0.1)
    figure.savefig(path, dpi=84, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    contact_sheet(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "samples.png")
