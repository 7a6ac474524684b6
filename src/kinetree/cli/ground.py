"""``--ground``: a plane that a robot falls to, or stands on."""

from kinetree.cli.errors import fail, misuse

__all__ = ["put_on_ground"]

_NAME = "the ground"
_DEEP = 1e-6  # how far a robot may start in the ground, which then pushes it out [m]


def put_on_ground(model, height, start):
    """The model with a ground at a height [m], and rigid contact between the two.

    ``start`` is the configuration in which nothing may be in the ground yet.
    """
    import numpy as np

    import kinetree as kt

    solid = {g.body: model.body_names[g.body] for g in model.geometry if g.collision and g.body}
    if not solid:
        fail(
            f"{model.name} has nothing solid to touch the ground with: in URDF, <collision> "
            f"elements of links that move"
        )
    model = kt.contact.with_ground(model, point=(0.0, 0.0, height), name=_NAME)
    scene = kt.contact.Scene(model, pairs=[(_NAME, name) for name in solid.values()])
    gaps = scene.contacts(start, margin=np.inf).gap
    lowest = float(np.min(gaps, initial=np.inf))
    if lowest < -_DEEP:
        misuse(
            f"the robot starts {-lowest:.4g} m deep in the ground; "
            f"--ground {np.floor((height + lowest) * 1000) / 1000:g} is below it"
        )
    return model, kt.contact.TimeStepping(scene)
