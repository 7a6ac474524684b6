"""Random mechanisms by general code: the numbers of the plain text, and rates of specialised code.

Seeds are few here and many in ``make fuzz``.
"""

import numpy as np
import pytest
from hypothesis import settings

import kinetree as kt
from kinetree import joints
from kinetree.model.define import DEFINITIONS
from kinetree.samples.random_mechanisms import random_placement

THOROUGH = settings.default.max_examples > 1000
SEEDS = range(1000 if THOROUGH else 4)
QUANTITIES = [name for name, d in DEFINITIONS.items() if d.general]
AXES = ["x", "-y", "-z", (1.0, 2.0, -2.0)]


def random_joint(rng):
    """A joint of any class, some about other axes than representatives have."""
    axis = AXES[rng.integers(len(AXES))]
    classes = joints.Revolute, joints.Prismatic, joints.Cylindrical, joints.Planar
    if rng.random() < 0.5:
        return classes[rng.integers(len(classes))](axis)
    joint = joints.REPRESENTATIVES[rng.integers(len(joints.REPRESENTATIVES))]
    if rng.random() < 0.2 and joint.nv:
        given = rng.normal(size=(2, joint.nv)).tolist()
        return joints.PrescribedInstant(joint, tuple(joint.neutral()), *map(tuple, given))
    return joint


def mechanism(rng):
    """A tree of two classes of joints, some with armature, springs and dampers; three frames."""
    builder = kt.ModelBuilder("random", gravity=tuple(rng.normal(size=3) * 5))
    count, pool = int(rng.integers(3, 6)), [random_joint(rng), random_joint(rng)]
    for k in range(count):
        joint, on = pool[rng.integers(2)], int(rng.integers(-1, k)) if rng.random() < 0.6 else k - 1
        laws = {n: tuple(rng.random(joint.nv)) for n in ("armature", "damping", "stiffness")
                if joint.nv and rng.random() < 0.5}  # fmt: skip
        builder.body(
            f"b{k}", on=None if on < 0 else f"b{on}", joint=joint, at=random_placement(rng),
            inertia=kt.shapes.box(*rng.uniform(0.1, 1, 3), mass=1.0).transformed(
                random_placement(rng)
            ),
            dynamics=kt.JointDynamics(**laws) if laws else None,
        )  # fmt: skip
    for name, on in (("tip", f"b{count - 1}"), ("mid", f"b{count // 2}"), ("mark", None)):
        builder.frame(name, on=on, at=random_placement(rng))
    return builder.build(strict=False)


def options_of(defined, model, rng):
    choices = {
        "name": ["tip", "mid", "mark", *model.body_names], "frame": ["world", "body", "aligned"],
        "kind": ["spatial", "classical"], "friction": [True, False], "rotors": [True, False],
        "rows": [None, ("x",), ("z", "x")],
        "free": [tuple(i for i in range(1, model.body_count + 1) if rng.random() < 0.5)],
    }  # fmt: skip
    if defined.name == "joint_reactions":
        choices["frame"] = ["joint", "world"]
    return {n: choices[n][rng.integers(len(choices[n]))] for n in defined.options if n in choices}


def arrays_of(model, kernel, defined, rng, count):
    for i in kernel.inputs:
        if defined.known[i.name].shape == ("nq",):
            yield model.random_configuration(rng, count)
        elif i.name == "poses":
            yield kt.poses(model, model.random_configuration(rng, count))
        else:
            yield rng.normal(size=(count, *i.shape))


def assert_close(found, expected, relative, where):
    scale = max(1.0, np.max(np.abs(expected), initial=0))
    assert np.max(np.abs(found - expected), initial=0) <= relative * scale, where


@pytest.mark.parametrize("seed", SEEDS)
def test_general_code_gives_the_numbers_of_the_source(seed):
    rng = np.random.default_rng(seed)
    model = mechanism(rng)
    for name in rng.permutation(QUANTITIES)[:8]:
        defined = DEFINITIONS[name]
        options = options_of(defined, model, rng)
        try:
            kernel = defined.kernel(model, ("qdd",) if name == "joint_reactions" else (), **options)
            arrays = list(arrays_of(model, kernel, defined, rng, 5))
            expected = np.array([kernel.reference([a[k] for a in arrays]) for k in range(5)], float)
        except kt.KinetreeError:  # singular, or not defined for the mechanism
            continue
        with kt.tier("general"):
            found = kernel.call(*arrays)
            single = kernel.call(*(a[3] for a in arrays))
        where = f"{name}, {options}: {model.bodies}"
        np.testing.assert_array_equal(single, found[3], where)
        assert_close(found, expected, 1e-9, where)


BRANCHED = ["null_space_projector", "dynamically_consistent_inverse", "jacobian", "mass_matrix"]


@pytest.mark.parametrize("name", QUANTITIES if THOROUGH else BRANCHED)
def test_rates_of_general_code_on_a_tree_with_branches(name, rng):
    builder = kt.ModelBuilder("branches")
    for k, (on, axis) in enumerate([(None, "z"), ("b0", "x"), ("b0", "y")]):
        body = kt.shapes.box(0.2, 0.3, 0.4, mass=1.0).transformed(random_placement(rng))
        at = random_placement(rng)
        builder.body(f"b{k}", on=on, joint=kt.Revolute(axis), at=at, inertia=body)
    model, defined = builder.build(), DEFINITIONS[name]
    options = {n: x for n, x in {"name": "b1", "rows": ("x",), "free": (1, 3)}.items()
               if n in defined.options}  # fmt: skip
    kernel = defined.kernel(model, ("qdd",) if name == "joint_reactions" else (), **options)
    arrays = [a[0] for a in arrays_of(model, kernel, defined, rng, 1)]
    derived = kernel.rates(tuple(range(len(arrays))))
    directions = [rng.normal(size=a.shape) for a in arrays]
    with kt.tier("general"):
        found = derived.call(*arrays, *directions)
        assert derived.tier == "general"
    with kt.tier("specialised"):
        expected = derived.call(*arrays, *directions)
    assert_close(found, expected, 1e-11, name)
