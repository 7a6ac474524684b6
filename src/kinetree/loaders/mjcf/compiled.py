"""A model from a compiled MuJoCo model, in which every default, class and unit is settled."""

import numpy as np

from kinetree.loaders.mjcf.actuators import actuators_of
from kinetree.loaders.mjcf.constraints import constraints_of
from kinetree.loaders.mjcf.joints import disabled
from kinetree.loaders.mjcf.names import model_name
from kinetree.loaders.mjcf.postures import postures_of
from kinetree.loaders.mjcf.shapes import geometry_of, sites_of
from kinetree.loaders.mjcf.tree import tree_of
from kinetree.model import Model

__all__ = ["from_compiled"]


def from_compiled(mj_model, tell, *, lump=True, floating_base=False, paths=None) -> Model:
    """Our model of the mechanism in an ``MjModel``.

    Args:
        mj_model: the compiled model.
        tell: called with tag, name and reason for everything that is not carried.
        lump: merge bodies without joints into those that carry them.
        floating_base: put bodies without joints that the world carries on free joints.
        paths: paths of mesh files by the names under which MuJoCo knows them.
    """
    tree = tree_of(mj_model, tell, lump=lump, floating_base=floating_base)
    frames = (*tree.frames, *sites_of(mj_model, tree))
    loops, couplings = constraints_of(mj_model, tree, tell)
    _tell_of_other_forces(mj_model, tree, tell)
    gravity = np.zeros(3) if disabled(mj_model, "GRAVITY") else np.array(mj_model.opt.gravity)
    return Model(
        tuple(tree.bodies),
        frames=frames,
        loops=loops,
        couplings=couplings,
        geometry=geometry_of(mj_model, tree, tell, paths),
        actuators=actuators_of(mj_model, tree, tell),
        postures=postures_of(mj_model, tree),
        gravity=gravity,
        name=model_name(mj_model) or "mechanism",
        base_name=tree.body_names[0],
        strict=False,
    )


def _tell_of_other_forces(mj_model, tree, tell):
    for b in np.flatnonzero(mj_model.body_gravcomp):
        tell("body", tree.body_names[b], "gravity compensation is a force that is not carried")
    if mj_model.opt.density or mj_model.opt.viscosity:
        tell("option", "", "forces of a fluid (density, viscosity, wind) are not carried")
    for t in np.flatnonzero(getattr(mj_model, "tendon_armature", ())):
        tell("tendon", "", f"armature of tendon {t} is inertia that is not carried")
    if mj_model.nflex:
        tell("flex", "", "the elasticity of flexible bodies is not carried")
