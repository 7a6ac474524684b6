"""Meshes of a model that are not where it says."""

import os

from kinetree.doctor.finding import found, named
from kinetree.model.geometry import Mesh

__all__ = ["missing"]


def missing(model):
    """Every mesh whose file does not exist."""
    for geometry in model.geometry:
        if isinstance(geometry.shape, Mesh) and not os.path.isfile(geometry.shape.path):
            part = named("body", model.body_names[geometry.body])
            yield found("mesh-missing", part, f"there is no file {geometry.shape.path!r}")
