"""SRDF files of real robots: the states and collision pairs that Pinocchio reads."""

import numpy as np
import pytest
from support.example_robots import ROOT

import kinetree as kt
from kinetree.joints import Free
from kinetree.loaders import read

pin = pytest.importorskip("pinocchio")

ROBOTS = {
    "talos": ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf", True),
    "panda": ("panda_description/urdf/panda.urdf", "panda_description/srdf/panda.srdf", None),
    "go1": ("go1_description/urdf/go1.urdf", "go1_description/srdf/go1.srdf", True),
    "anymal": (
        "anymal_b_simple_description/robots/anymal.urdf",
        "anymal_b_simple_description/srdf/anymal.srdf",
        None,  # its file has a virtual joint
    ),
    "humanoid": (  # its state names a group that is not there
        "simple_humanoid_description/urdf/simple_humanoid.urdf",
        "simple_humanoid_description/srdf/simple_humanoid.srdf",
        True,
    ),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", "hyq_description/srdf/hyq.srdf", True),
    "centauro": (
        "centauro_description/urdf/centauro.urdf",
        "centauro_description/srdf/centauro.srdf",
        True,
    ),
}


def opened(name):
    """The model here and the model there, with the paths of both files."""
    urdf, srdf, floating = ROBOTS[name]
    urdf, srdf = ROOT / urdf, ROOT / srdf
    model = read(urdf, srdf=srdf, floating_base=floating, folders=[ROOT]).model
    root = (pin.JointModelFreeFlyer(),) if isinstance(model.joint[1], Free) else ()
    return model, pin.buildModelFromUrdf(str(urdf), *root), urdf, srdf


@pytest.mark.parametrize("name", ROBOTS)
def test_states_are_reference_configurations(name):
    model, peer, _, srdf = opened(name)
    pin.loadReferenceConfigurations(peer, str(srdf), False)
    states = {entry.key(): entry.data() for entry in peer.referenceConfigurations}
    assert {p.name for p in model.postures} == {*states}
    for posture in model.postures:
        q = states[posture.name]
        for i, joint in enumerate(peer.names[1:], start=1):
            there = q[peer.idx_qs[i] : peer.idx_qs[i] + peer.nqs[i]]
            here = posture.q[model.q_indices(joint)]
            if not here.size:
                continue  # it follows another, which Pinocchio does not have
            here = here[[0, 1, 2, 4, 5, 6, 3]] if len(here) == 7 else here
            if len(there) == 2:
                here = np.array([np.cos(here[0]), np.sin(here[0])])
            assert np.allclose(here, there, rtol=0, atol=1e-12), (posture.name, joint)


@pytest.mark.parametrize("name", ["talos", "panda", "go1", "anymal", "hyq"])
def test_pairs_that_are_left(name):
    """Pairs of links that Pinocchio leaves, less those of neighbours, which are out here anyway."""
    model, peer, urdf, srdf = opened(name)
    shapes = pin.GeometryModel()
    folders = [str(ROOT), str(ROOT.parent), str(ROOT.parent.parent)]
    pin.buildGeomFromUrdf(peer, str(urdf), pin.GeometryType.COLLISION, shapes, folders)
    shapes.addAllCollisionPairs()
    pin.removeCollisionPairs(peer, shapes, str(srdf), False)

    def link(k):
        return peer.frames[shapes.geometryObjects[k].parentFrame].name

    def body(name):
        return model.frame(name).body

    left = {frozenset((link(p.first), link(p.second))) for p in shapes.collisionPairs}
    left = {p for p in left if not _neighbours(model, *map(body, p))}
    scene = kt.contact.Scene(model)

    def link_of(shape):
        return shape.link or model.body_names[shape.body]

    assert {frozenset(map(link_of, pair[:2])) for pair in scene.pairs} == left
    assert len(left) > 0


def _neighbours(model, i, j):
    return i == j or (i and model.parent[i] == j) or (j and model.parent[j] == i)
