"""Mechanisms with published or twice-computed numbers, and random states of random ones."""

from typing import NamedTuple

import numpy as np

from kinetree import samples
from kinetree.joints import (
    REPRESENTATIVES,
    Euler,
    Exponential,
    Helical,
    Prismatic,
    Revolute,
    Universal,
)
from kinetree.model import Model, ModelBuilder
from kinetree.spatial import Force, Inertia, rotx, xlt

STEP = 1e-30


class State(NamedTuple):
    """A model in motion."""

    model: Model
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    f_ext: list


def random_state(rng, bodies=7, joints=REPRESENTATIVES, **options):
    """A random tree in a random state of motion."""
    model = samples.random_tree(bodies, rng, joints=joints, **options)
    q = model.random_configuration(rng)
    qd, qdd = rng.standard_normal((2, model.nv))
    f_ext = [None, *(Force.from_array(f) for f in rng.standard_normal((model.body_count, 6)))]
    return State(model, q, qd, qdd, f_ext)


def rate(function, model, q, qd):
    """Time derivative of ``function(q)`` while ``q`` moves at ``qd``, by complex step."""
    return function(q + 1j * STEP * model.configuration_rate(q, qd)).imag / STEP


def assert_printed(actual, expected, decimals):
    """Agreement with a printed number to its last digit."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.6 * 10.0**-decimals)


def point_mass(m, c):
    return Inertia.from_mass_center(m, c, np.zeros((3, 3), dtype=int))


class Arm:
    """The planar arm of Lynch & Park 9.1.1: point masses at the ends of two links."""

    L1, L2, m1, m2, g = 1.0, 0.5, 2.0, 1.0, 9.81
    q, qd, qdd = np.array([0.3, -0.7]), np.array([0.5, -1.2]), np.array([0.8, 1.5])
    M = np.array([[4.01484218728449, 0.632421093642244], [0.632421093642244, 0.25]])
    c = np.array([0.0773061224685229, -0.0805272109047114])
    C = np.array([[-0.386530612342615, -0.225476190533192], [-0.161054421809423, 0]])
    gravity = np.array([32.6333570505507, 4.51780417558415])
    tau = np.array([36.8711685633102, 5.31821383959324])


def two_link_arm(L1=Arm.L1, L2=Arm.L2, m1=Arm.m1, m2=Arm.m2, g=Arm.g):
    """The arm in the x-y plane, gravity along -y."""
    return (
        ModelBuilder("2R arm", gravity=(0, -g, 0))
        .body("upper", joint=Revolute("z"), inertia=point_mass(m1, (L1, 0, 0)))
        .body("fore", on="upper", joint=Revolute("z"), at=(L1, 0, 0),
              inertia=point_mass(m2, (L2, 0, 0)))
        .frame("tip", on="fore", at=(L2, 0, 0))
        .build()
    )  # fmt: skip


class Mixed:
    """Numbers of ``mixed_tree``; the kinetic-energy route gives the same twelve digits."""

    i = np.arange(1, 7)
    q, qd, qdd = 0.1 * i, 0.3 - 0.1 * i, 0.05 * i**2 - 0.2
    tau = (2.960596794935, 37.776755000621, 2.039035883179,
           6.736137246800, 2.348790727624, 9.831972426567)  # fmt: skip
    bias = (4.979113697527, 37.497996811901, 2.033129805256,
            7.410187996734, 2.193803258029, 7.496722022139)  # fmt: skip
    free = (-1.611093273738, -9.546353594797, -0.500973440226,
            -7.773504655295, -0.272898504608, -10.401948150142)  # fmt: skip
    kinetic, potential = 0.24652706328875, -6.759027454944
    H_upper = np.array([
        [6.7789792545, -0.5072659356, 0.1735761472, 2.1792362522, 0.4322002027, -1.7540100096],
        [0, 4, 0.1769757477, 0, 0.1508803442, 0],
        [0, 0, 0.12777, 0, 0, 0],
        [0, 0, 0, 1.5896182443, 0, -0.8130851617],
        [0, 0, 0, 0, 0.20935, 0],
        [0, 0, 0, 0, 0, 1.6],
    ])  # fmt: skip


def mixed_tree():
    """Six bodies on a branched tree of revolute, prismatic and helical joints along z."""
    builder = ModelBuilder("mixed tree")
    names = ["base"]
    pitches = (0, np.inf, 0.1, 0, 0, np.inf)
    for i, (parent, pitch) in enumerate(zip((0, 1, 2, 1, 2, 4), pitches, strict=True), start=1):
        joint = Prismatic("z") if pitch == np.inf else Helical("z", pitch=pitch)
        inertia = Inertia.from_mass_center(
            1 + 0.1 * i,
            (0.05 * i, 0.02, -0.03 * i),
            np.diag([0.01 * i + 0.02, 0.02 * i + 0.03, 0.015 * i + 0.04]),
        )
        at = rotx(0.1 * i) @ xlt(0.1 * i, 0.2, -0.05 * i)
        names.append(f"body{i}")
        builder.body(names[i], on=names[parent], joint=joint, at=at, inertia=inertia)
    return builder.build()


class Figure1:
    """State of ``figure_1_tree`` and its numbers, by kind of ball joint."""

    q = np.array([0.2, -0.3, 0.4, 0.5, -0.6, 0.7, -0.8])
    qd = np.array([0.5, -0.4, 0.3, -0.2, 0.1, 0.6, -0.7])
    qdd = np.array([1, 0.5, -0.5, 0.25, -0.25, 0.75, -0.75])
    euler = {
        "joint": Euler("xyz"),
        "Q": (18.40851334, -6.36390144, 11.53837417, -0.09235246,
              2.69440125, 2.63334747, -2.68430684),
        "C": (-0.73023609, 0.43768719, -0.01306466, 0.46810558,
              -0.03748222, 0.11528578, -0.25012253),
        "gravity": (16.27059813, -8.65249289, 10.21538451, -1.33846149, 2.40933008, 2.43142099,
                 -2.64171699),
        "diagonal": (3.98120238, 3.94655152, 1.02323665, 1.08124665, 0.16002692, 0.12, 0.17),
        "T": 1.64836754, "U": -42.67401177,
        "w4": (0.51506707, -1.19095148, -0.28739323), "v4": (0.62343671, 0.49105272, 0.41349333),
        "f1": (19.22102329, 16.72540111, 73.38742341),
        "n1": (18.33440438, -6.36390144, -3.02174880),
    }  # fmt: skip
    exponential = {
        "joint": Exponential(),
        "Q": (20.22840707, -9.05542193, 13.42968855, 2.28321099,
              0.53110481, 2.78878994, -2.36408037),
        "C": (-0.75603597, 0.47197628, -0.08173452, 0.31891624,
              0.05001475, 0.12346243, -0.24902927),
        "gravity": (18.11283598, -11.39785979, 12.52659942, 0.73071772, 0.11640784, 2.61258556,
                 -2.35972672),
        "diagonal": (3.80851111, 3.79760549, 1.02587104, 0.93043408, 0.17594175, 0.12, 0.17),
        "T": 1.53089358, "U": -40.86813580,
        "w4": (0.35128585, -1.14377572, -0.45320322), "v4": (0.61109142, 0.37091022, 0.47146220),
        "f1": (18.77837075, 16.62795633, 73.11733598),
        "n1": (20.33092529, -9.05542193, -2.72581117),
    }  # fmt: skip

    parent = (0, 1, 2, 2)
    d = ((0, 0, 0), (0, 0, -0.5), (0.2, 0, -0.4), (-0.2, 0, -0.4))
    c = ((0, 0, -0.25), (0, 0.05, -0.2), (0, 0, -0.3), (0.1, 0, -0.3))
    mass = (3, 2, 1, 1.5)
    I = ((0.06, 0.05, 0.02), (0.04, 0.05, 0.03), (0.03, 0.02, 0.01), (0.03, 0.02, 0.015))


def figure_1_tree(ball):
    """The character of the tutorial's Figure 1: universal, ball and two hinge joints."""
    joints = (Universal("xy"), ball, Revolute("x"), Revolute("y"))
    builder, names = ModelBuilder("figure 1"), ["base"]
    for k, joint in enumerate(joints):
        inertia = Inertia.from_mass_center(Figure1.mass[k], Figure1.c[k], np.diag(Figure1.I[k]))
        on = names[Figure1.parent[k]]
        names.append(f"link{k + 1}")
        builder.body(names[-1], on=on, joint=joint, at=Figure1.d[k], inertia=inertia)
    return builder.build()
