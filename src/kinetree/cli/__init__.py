"""The command ``kinetree``."""

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or print which packages are missing for it."""
    try:
        import rich  # noqa: F401  # commands import it when they print

        from kinetree.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("typer", "rich"):
            raise
        sys.exit(
            f"the command kinetree needs the package {package}, which is not installed: "
            'pip install "kinetree[cli]". The library itself does without: import kinetree'
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what cannot be encoded must not stop us
            stream.reconfigure(errors="replace")
    app(prog_name="kinetree")
