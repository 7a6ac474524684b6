"""A scene in viser: its parts once, then where they are."""

import numpy as np

from kinetree.viewer.scene.camera import framing
from kinetree.viewer.scene.description import SHOWN

__all__ = ["Drawing"]

_SEE_THROUGH = 0.3
_ASIDE = 0.09  # of the distance: the panel with the sliders is on the right
_MANY = 400  # parts, beyond which shadows take too long


class Drawing:
    """What a viser server shows of a scene.

    Args:
        server: a ``viser.ViserServer``.
        scene: what to draw.
        show: names of the layers that are shown at first.
        shadows: shadows and reflected light, which take a graphics card.
    """

    def __init__(self, server, scene, show=SHOWN, *, shadows=True):
        self.server, self.scene, self.shown = server, scene, set(show)
        api = server.scene
        api.set_up_direction(tuple(scene.up))
        self.shadows = shadows and len(scene.parts) < _MANY
        api.configure_default_lights(cast_shadow=self.shadows)
        if shadows:
            api.configure_environment_map("warehouse", environment_intensity=0.25)
        else:
            api.configure_environment_map(None)
        self.nodes = [
            api.add_frame(f"/nodes/{i}", show_axes=False) for i in range(len(scene.nodes))
        ]
        self.parts = [(part, self._added(k, part)) for k, part in enumerate(scene.parts)]
        self.arrows = {}
        self._ground()
        self._look()
        self.refresh()

    def _added(self, k, part):
        is_solid = part.layer == "bodies" and part.opacity >= 1
        return self.server.scene.add_mesh_simple(
            f"/nodes/{part.node}/{k}", part.surface.vertices, part.surface.faces,
            color=part.color, opacity=None if part.opacity >= 1 else part.opacity, side="double",
            cast_shadow=self.shadows and is_solid, receive_shadow=False,
        )  # fmt: skip

    def _ground(self):
        scene, up = self.scene, np.asarray(self.scene.up)
        step, reach = scene.grid_step, 40 * scene.size
        self.ground = self.server.scene.add_grid(
            "/ground", reach, reach, plane="xy", cell_size=step, section_size=10 * step,
            cell_color=(205, 208, 213), section_color=(170, 175, 182), cell_thickness=0.8,
            section_thickness=1.0, fade_distance=12 * scene.size, fade_from="origin",
            shadow_opacity=0.25, wxyz=_onto(up), position=tuple(scene.floor * up - 1e-4 * up),
        )  # fmt: skip

    def _look(self):
        camera = framing(self.scene, zoom=0.8)
        away = np.linalg.norm(camera.position - camera.target)
        camera = camera.moved(_ASIDE * away * camera.axes()[0])
        start = self.server.initial_camera
        start.position, start.look_at = tuple(camera.position), tuple(camera.target)
        start.fov, start.near, start.far = (
            camera.angle,
            0.01 * self.scene.size,
            1e3 * self.scene.size,
        )

    # --- over time ----------------------------------------------------------------------------

    def place(self, positions, quaternions):
        """Move the nodes to positions (N, 3) and quaternions (N, 4)."""
        with self.server.atomic():
            for node, p, turn in zip(self.nodes, positions, quaternions, strict=True):
                node.visible = bool(np.isfinite(p[0]))
                if node.visible:
                    node.position, node.wxyz = p, turn

    def point(self, arrows, k):
        """Draw these arrows as they are at the state ``k``; those not among them go."""
        with self.server.atomic():
            for name in set(self.arrows) - {a.name for a in arrows}:
                self.arrows.pop(name).remove()
            for a in arrows:
                self._pointing(a, k)

    def _pointing(self, a, k):
        long = np.linalg.norm(a.vectors[k], axis=-1) > 0.01 * self.scene.size
        ends = np.stack([a.origins[k], a.origins[k] + a.vectors[k]], axis=1)[long]
        if a.layer not in self.shown or not len(ends):
            if a.name in self.arrows:
                self.arrows.pop(a.name).remove()
            return
        thick = 0.007 * self.scene.size
        if a.name in self.arrows:
            self.arrows[a.name].points = ends.astype(np.float32)
            return
        self.arrows[a.name] = self.server.scene.add_arrows(
            f"/arrows/{a.name}", ends, tuple(int(255 * c) for c in a.color), shaft_radius=thick,
            head_radius=2.4 * thick, head_length=5 * thick,
        )  # fmt: skip

    # --- layers -------------------------------------------------------------------------------

    def show(self, layer, on):
        """Show or hide a layer."""
        (self.shown.add if on else self.shown.discard)(layer)
        self.refresh()

    def refresh(self):
        """Make what is seen agree with what is shown; what is inside makes bodies translucent."""
        inside = bool(self.shown & {"inertias", "center"})
        with self.server.atomic():
            for part, handle in self.parts:
                handle.visible = part.layer in self.shown
                if part.layer == "bodies":
                    opacity = part.opacity * (_SEE_THROUGH if inside else 1.0)
                    handle.opacity = None if opacity >= 1 else opacity


def _onto(up):
    """The quaternion that turns z to ``up``."""
    w = 1 + up[2]
    if w < 1e-9:
        return (0.0, 1.0, 0.0, 0.0)
    turn = np.array([w, -up[1], up[0], 0.0])
    return tuple(turn / np.linalg.norm(turn))
