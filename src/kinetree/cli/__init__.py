"""The command ``kinetree``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command, or say what is missing to run it."""
    try:
        from kinetree.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("typer", "rich"):
            raise
        sys.exit(
            f"the command kinetree needs the package {package}, which is not installed: "
            f"pip install typer rich. The library itself does without: import kinetree"
        )
    app(prog_name="kinetree")
