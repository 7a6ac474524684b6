"""Sites of MJCF for what refers to places on bodies."""

import numpy as np

from kinetree.writers.mjcf.elements import element, pose_attributes
from kinetree.writers.mjcf.geoms import links_of


class Sites:
    """Sites for what refers to places: frames that are there already, or new ones."""

    def __init__(self, model, elements):
        self.elements, links = elements, links_of(model)
        self.frames = [f for f in model.frames if f.name not in links]
        self.taken = set(model.frame_names) | set(model.body_names)

    def at(self, name, body, X) -> str:
        """Name of a site at a placement: ``name``, unless one exists there."""
        for frame in self.frames:
            same = frame.body == body and np.array_equal(frame.placement.E, X.E)
            if same and np.array_equal(frame.placement.r, X.r):
                return frame.name
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        element(self.elements[body], "site", name=name, **pose_attributes(X))
        return name
