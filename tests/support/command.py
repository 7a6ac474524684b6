"""The command line, called in this process."""

from typer.testing import CliRunner

from kinetree.cli.app import app


def invoke(*arguments):
    """Result of ``kinetree`` with these arguments: exit code and output."""
    return CliRunner().invoke(app, list(arguments))
