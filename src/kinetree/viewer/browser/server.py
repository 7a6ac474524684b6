"""A viser server on a port of this machine."""

import contextlib
import io
import socket

from kinetree.errors import ViewError
from kinetree.simulation.results.packages import need

__all__ = ["dress", "quiet", "start"]

FIRST_PORT = 8080


def start(title, port=None, host="127.0.0.1"):
    """A ``viser.ViserServer``.

    Args:
        title: what the page says at its top.
        port: to listen at; by default the first one that is free, from 8080 on.
        host: address to listen at; this machine only, unless told otherwise.
    """
    viser = need("viser", "the viewer", "view")
    if port is not None and not _is_free(host, port):
        raise ViewError(
            f"port {port} is in use, perhaps by another viewer; choose another one, or give none "
            f"to get one that is free"
        )
    with quiet():
        server = viser.ViserServer(
            host=host, port=FIRST_PORT if port is None else port, label=title, verbose=False
        )
    dress(server)
    return server


def dress(server, *, dark=False):
    """What the page looks like."""
    server.gui.configure_theme(
        show_logo=False, show_share_button=False, control_width="medium", dark_mode=dark
    )


def quiet():
    """Nothing of what viser has to say about its server gets printed in here."""
    return contextlib.redirect_stdout(io.StringIO())


def _is_free(host, port):
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
