"""One algorithm per module; functions are the quantities it computes.

Modules are loaded on first use: ``kt.algorithms.rnea``. Features of a model that a text does not
support (loops, couplings, armature, joints that depend on time) raise an error, see ``honours``.
"""

from kinetree.spelling import module_of

_DEPRECATED = {
    name: f"kinetree.textbook.{name}"
    for name in (
        "aba_variants",
        "closed_form",
        "crba_variants",
        "newton_kinematics",
        "projection",
        "rnea_3d",
        "rnea_absolute",
        "state_space",
        "stacked",
        "constrained_body",
    )
} | {
    "assembly": "kinetree.textbook.aba_variants",
    "assembly_plan": "kinetree.algorithms.closed.divide_and_conquer",
    "closed_chain": "kinetree.algorithms.closed.forward_dynamics",
    "closed_chain_derivatives": "kinetree.algorithms.closed.links",
    "closed_chain_links": "kinetree.algorithms.closed.links",
    "closed_chain_plan": "kinetree.algorithms.closed.plan",
    "closed_chain_solvers": "kinetree.algorithms.closed.elimination",
    "closure": "kinetree.algorithms.closed.joint_space",
    "constrained_system": "kinetree.algorithms.closed.systems",
    "constraint_kinds": "kinetree.textbook.constrained_body",
    "constraints": "kinetree.algorithms.closed.systems",
    "derivation": "kinetree.textbook.aba_variants",
    "divide_and_conquer": "kinetree.algorithms.closed.divide_and_conquer",
    "fixed_pivots": "kinetree.algorithms.closed.elimination",
    "handles": "kinetree.algorithms.closed.divide_and_conquer",
    "implicit": "kinetree.algorithms.closed.joint_space",
    "loop_constraints": "kinetree.algorithms.closed.constraints",
    "loop_forces": "kinetree.algorithms.closed.forces",
    "loop_joints": "kinetree.algorithms.closed.constraints",
    "loop_rank": "kinetree.algorithms.closed.rank",
    "loop_scaling": "kinetree.algorithms.closed.scaling",
    "maximal": "kinetree.algorithms.closed.maximal",
    "maximal_joints": "kinetree.algorithms.closed.joint_space",
    "point_closures": "kinetree.algorithms.closed.plan",
    "rehearsal": "kinetree.algorithms.closed.samples",
    "subspace": "kinetree.algorithms.closed.subspace",
    "lagrange": "kinetree.algorithms.energy",
    "ltl_products": "kinetree.algorithms.ltl",
    "momentum": "kinetree.algorithms.centroidal",
}


def __getattr__(name):
    return module_of(__name__, name, _DEPRECATED)
