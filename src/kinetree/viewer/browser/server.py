"""A viser server on a port of this machine, which talks to its own pages alone.

A browser lets every website open a WebSocket to every address, this machine's included, and says
whose page it is in the header Origin. viser takes all of them, so we look at that header before it
does.
"""

import contextlib
import io
import ipaddress
import socket
import threading
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from kinetree.errors import ViewError, need

FIRST_PORT = 8080
_starting = threading.Lock()


def start(title, port=None, host="127.0.0.1", origins=()):
    """A ``viser.ViserServer``.

    Args:
        title: what the page says at its top.
        port: to listen at; by default the first one that is free, from 8080 on.
        host: address to listen at; this machine only by default.
        origins: further addresses whose pages may connect, such as ``https://proxy.example.org``.
    """
    viser = need("viser", "the viewer", "view")
    if port is not None and not _is_free(host, port):
        raise ViewError(
            f"port {port} is in use, perhaps by another viewer; choose another one, or give none "
            f"to get one that is free"
        )
    origins = (origins,) if isinstance(origins, str) else tuple(origins)
    with quiet(), _guarded(host, origins) as guarded:
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
    """Whether a page may connect.

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
def _guarded(host, origins):
    """Make the server that viser starts in here refuse pages of other websites.

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
    """Set the theme of the page."""
    server.gui.configure_theme(
        show_logo=False, show_share_button=False, control_width="medium", dark_mode=dark
    )


def quiet():
    """Suppress what viser prints about its server."""
    return contextlib.redirect_stdout(io.StringIO())


def _is_free(host, port):
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
