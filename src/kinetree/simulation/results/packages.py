"""Packages that only some results need, imported on demand."""

import importlib

from kinetree.errors import MissingPackageError


def need(module, purpose, extra):
    """The module of that name, or an error with what to install for ``purpose``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {package}, which cannot be imported ({error}): "
            f'pip install "kinetree[{extra}]"'
        ) from error
