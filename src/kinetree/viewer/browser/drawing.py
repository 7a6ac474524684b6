"""A scene in viser: its parts once, then where they are; and a server for its own pages alone.

A browser lets every website open a WebSocket to every address, this machine's included, and says
whose page it is in the header Origin. viser takes all of them, so we look at that header before it
does.
"""

import contextlib
import io
import ipaddress
import socket
import threading
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kinetree.errors import ViewError, need
from kinetree.viewer.scenes.description import SHOWN
from kinetree.viewer.scenes.places import framing, rotations

FIRST_PORT, LOCAL = 8080, "127.0.0.1"
_starting = threading.Lock()


def start(title, port=None, host: str | None = None, origins=()):
    """New ``viser.ViserServer`` for the viewer, protected against other websites.

    Args:
        title: what the page says at its top.
        port: to listen at; by default the first one that is free, from 8080 on.
        host: an address of this machine to listen at; None and by default ``127.0.0.1``, which
            this machine alone can reach.
        origins: further addresses whose pages may connect, such as ``https://proxy.example.org``.
    """
    viser = need("viser", "the viewer", "view")
    host, family = _address(host)
    if port is not None and (type(port) is not int or not 0 < port < 65536):
        raise ViewError(f"port must be an integer from 1 to 65535, or None, got {port!r}")
    if port is not None and not _is_free(host, port, family):
        raise ViewError(
            f"port {port} is in use, perhaps by another viewer; choose another one, or give none "
            f"to get one that is free"
        )
    origins = (origins,) if isinstance(origins, str) else tuple(origins)
    with quiet(), _guard(host, origins) as guarded:
        server = viser.ViserServer(
            host=host, port=FIRST_PORT if port is None else port, label=title, verbose=False
        )
        if not guarded:
            server.stop()
            raise ViewError(
                f"viser {viser.__version__} starts its server in a way that kinetree cannot guard "
                f"against other websites; 1.1.1 is known to work: pip install viser==1.1.1"
            )
    dress(server)
    return server


def is_own_page(origin, host, listening="127.0.0.1", origins=()) -> bool:
    """Whether a page may connect to the viewer, by its Origin and Host headers.

    It must come from where it connects to, and from an address that is surely this machine: the
    name of another website may lead here, too.

    Args:
        origin: the header Origin; None for programs other than browsers, which could send anything.
        host: the header Host.
        listening: address that the server listens at.
        origins: further pages that may connect.
    """
    if origin is None or origin in origins:
        return True
    try:
        page, here = urlsplit(origin), urlsplit(f"//{host}")
        if page.scheme not in ("http", "https") or page.netloc.lower() != here.netloc.lower():
            return False
        name = (here.hostname or "").rstrip(".")
    except ValueError:  # an address with a bracket too few
        return False
    if name in ("localhost", listening.lower(), socket.gethostname().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _guard(host, origins):
    """Context in which new viser servers reject pages of other websites.

    viser has no setting for it; what it hands to ``websockets`` gets a check in front.
    """
    websockets: Any = need("websockets.asyncio.server", "the viewer", "view")
    with _starting:
        serve, guarded = websockets.serve, []

        def guarding(handler, *args, process_request=None, **options):
            if not handler.__module__.startswith("viser."):
                return serve(handler, *args, process_request=process_request, **options)
            guarded.append(handler)

            def check(connection, request):
                try:
                    named = [request.headers.get(name) for name in ("Origin", "Host")]
                except LookupError:  # a header that is there twice
                    named = ["", ""]
                if not is_own_page(named[0], named[1] or "", host, origins):
                    text = "kinetree: only its own page may connect to the viewer\n"
                    return connection.respond(HTTPStatus.FORBIDDEN, text)
                return process_request(connection, request) if process_request else None

            return serve(handler, *args, process_request=check, **options)

        websockets.serve = guarding
        try:
            yield guarded
        finally:
            websockets.serve = serve


def dress(server, *, dark=False):
    """Set the dark or light theme of the page."""
    server.gui.configure_theme(
        show_logo=False, show_share_button=False, control_width="medium", dark_mode=dark
    )


def quiet():
    """Context that suppresses viser's printed output."""
    return contextlib.redirect_stdout(io.StringIO())


def _address(host):
    """Listening address and its family; ViewError unless it is of this machine.

    viser would wait for ever for a server that cannot listen.
    """
    host = LOCAL if host is None else host
    if not isinstance(host, str) or not host:
        raise ViewError(
            f"host must be an address of this machine, such as {LOCAL!r}, or '0.0.0.0' for all of "
            f"its addresses; got {host!r}"
        )
    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError) as error:
        raise ViewError(f"host {host!r} is not the name of a machine: {error}") from None
    if not _is_free(host, 0, family):
        raise ViewError(
            f"host {host!r} is not an address of this machine, where the viewer could listen; "
            f"{LOCAL!r} is for this machine alone, '0.0.0.0' for everybody who can reach it"
        )
    return host, family


def _is_free(host, port, family=socket.AF_INET):
    """Whether a port can be bound at an address."""
    with contextlib.closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


_SEE_THROUGH = 0.3
ASIDE = 0.09  # of the distance: the panel with the sliders is on the right
_NARROW = 1.0  # width over height, below which the panel is at the bottom instead
_FARTHER, _BELOW = 1.7, 0.16  # what is then left for the picture, and where it is
_GROUND = {False: ((205, 208, 213), (170, 175, 182)), True: ((70, 74, 80), (105, 110, 118))}
_MANY = 400  # parts, beyond which shadows take too long


class Drawing:
    """A scene on a viser server.

    Args:
        server: a ``viser.ViserServer``.
        scene: what to draw.
        show: names of the layers that are shown at first.
        shadows: shadows and reflected light, which take a graphics card.

    Attributes:
        follow: whether the mechanism stays in the middle while the ground passes by.
        see_through: whether bodies are translucent.
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
            api.add_light_hemisphere("/light", ground_color=(150, 150, 150), intensity=1.6)
        self.follow, self.see_through = scene.goes_away, False
        self.world = api.add_frame("/world", show_axes=False)
        self.nodes = [
            api.add_frame(f"/world/{i}", show_axes=False) for i in range(len(scene.nodes))
        ]
        self.parts = [(part, self._add_mesh(k, part)) for k, part in enumerate(scene.parts)]
        self.arrows = {}
        self._ground()
        self._set_camera()
        self.refresh()

    def _add_mesh(self, k, part):
        """Add part ``k`` as a mesh to the browser's scene; returns its handle."""
        is_solid = part.layer == "bodies" and part.opacity >= 1
        return self.server.scene.add_mesh_simple(
            f"/world/{part.node}/{k}",
            part.surface.vertices,
            part.surface.faces,
            color=part.color,
            opacity=None if part.opacity >= 1 else part.opacity,
            side="double",
            cast_shadow=self.shadows and is_solid,
            receive_shadow=False,
        )

    def _ground(self):
        """Draw the ground below the mechanism as a grid."""
        scene, up = self.scene, np.asarray(self.scene.up)
        step, reach = scene.grid_step, 40 * scene.size
        cells, sections = _GROUND[False]
        self.ground = self.server.scene.add_grid(
            "/ground",
            reach,
            reach,
            plane="xy",
            cell_size=step,
            section_size=10 * step,
            cell_color=cells,
            section_color=sections,
            cell_thickness=0.8,
            section_thickness=1.0,
            fade_distance=12 * scene.size,
            fade_from="origin",
            shadow_opacity=0.25,
            wxyz=_rotation_to(up),
            position=tuple(self._ground_height * up),
        )

    @property
    def _ground_height(self):
        """Height of the drawn ground, slightly below the scene's floor [m]."""
        return self.scene.floor - 1e-4 * self.scene.size

    def color_ground(self, *, dark):
        """Set the colours of the ground's lines for a light or dark page."""
        self.ground.cell_color, self.ground.section_color = _GROUND[dark]

    def _camera(self, aspect=1.5):
        """Initial camera for a window of this aspect ratio (width over height)."""
        camera = framing(self.scene, zoom=0.8)
        back = camera.position - camera.target
        if aspect < _NARROW:
            back = back * max(_FARTHER, camera.aspect / aspect)
            camera = replace(camera, position=camera.target + back)
            return camera.shift(-_BELOW * np.linalg.norm(back) * camera.axes()[1])
        return camera.shift(ASIDE * np.linalg.norm(back) * camera.axes()[0])

    def _fit_camera(self, client):
        """Move a newly connected client's camera back if its window is narrow."""
        if client.camera.aspect < _NARROW:
            camera = self._camera(client.camera.aspect)
            with client.atomic():
                client.camera.position = camera.position
                client.camera.look_at = camera.target

    def _set_camera(self):
        """Set the initial camera of clients that connect."""
        self.server.on_client_connect(self._fit_camera)
        camera = self._camera()
        start = self.server.initial_camera
        start.position, start.look_at = tuple(camera.position), tuple(camera.target)
        start.fov, start.near, start.far = (
            camera.angle,
            0.01 * self.scene.size,
            1e3 * self.scene.size,
        )

    # --- over time ----------------------------------------------------------------------------

    def place(self, positions, quaternions):
        """Move all nodes to positions (N, 3) and quaternions (N, 4)."""
        with self.server.atomic():
            self._keep_in_view(positions[self.scene.center])
            for node, p, turn in zip(self.nodes, positions, quaternions, strict=True):
                node.visible = bool(np.isfinite(p[0]))
                if node.visible:
                    node.position, node.wxyz = p, turn

    def _keep_in_view(self, center):
        """Shift the world opposite to the mechanism's motion, so that cameras follow it."""
        up, section = np.asarray(self.scene.up), 10 * self.scene.grid_step
        gone = center - self.scene.positions[0, self.scene.center]
        gone = gone if self.follow and np.all(np.isfinite(gone)) else np.zeros(3)
        height = gone @ up
        axes = rotations(np.array(self.ground.wxyz))[:, :2]
        level = axes @ np.fmod(axes.T @ gone, section)
        self.world.position = -gone
        self.ground.position = (self._ground_height - height) * up - level

    def point(self, arrows, k):
        """Draw the given arrows at state ``k``, and remove all others."""
        with self.server.atomic():
            for name in set(self.arrows) - {a.name for a in arrows}:
                self.arrows.pop(name).remove()
            for a in arrows:
                self._draw_arrows(a, k)

    def _draw_arrows(self, a, k):
        """Draw all arrows of one kind, such as forces, at stored state ``k``."""
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
            f"/world/arrows/{a.name}",
            ends,
            tuple(int(255 * c) for c in a.color),
            shaft_radius=thick,
            head_radius=2.4 * thick,
            head_length=5 * thick,
        )

    # --- layers -------------------------------------------------------------------------------

    def show(self, layer, on):
        """Show or hide a layer of the scene, by the layer's name."""
        (self.shown.add if on else self.shown.discard)(layer)
        self.refresh()

    def refresh(self):
        """Update the visibility and transparency of all parts to the shown layers."""
        inside = self.see_through or bool(self.shown & {"inertias", "center"})
        with self.server.atomic():
            for part, handle in self.parts:
                handle.visible = part.layer in self.shown
                if part.layer == "bodies":
                    opacity = part.opacity * (_SEE_THROUGH if inside else 1.0)
                    handle.opacity = None if opacity >= 1 else opacity


def _rotation_to(up):
    """Quaternion (w, x, y, z) that rotates the z axis to ``up``."""
    w = 1 + up[2]
    if w < 1e-9:
        return (0.0, 1.0, 0.0, 0.0)
    turn = np.array([w, -up[1], up[0], 0.0])
    return tuple(turn / np.linalg.norm(turn))
