"""Every feature that a model can have, in mechanisms of two to four bodies, each in a state.

A new feature enters the matrix by a line in ``FEATURES``.
"""

import zlib
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps

import numpy as np
import sympy
from feature_matrix.reference import Reference, compose, pose_of, seen_from
from support.special_joints import Slot

import kinetree as kt
from kinetree.functional.parameters import with_parameters
from kinetree.model import JointDynamics, Loop
from kinetree.samples import random_inertia
from kinetree.spatial import Inertia, Plucker, ops

NOTHING = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))


def made_once(make):
    """A function of a case alone, whose result all checks share: models have code of their own."""

    @wraps(make)
    def found(case):
        known = case.__dict__.setdefault("made", {})
        key = make, case.name, case.q.tobytes(), case.qd.tobytes(), id(case.model)
        if key not in known:  # copies of a case share what it has made, and may be elsewhere
            known[key] = make(case)
        return known[key]

    return found


@dataclass
class Case:
    """A model with a feature, in a state of motion.

    Attributes:
        feature: as the table calls it.
        model: the mechanism.
        words: what an error that refuses it may call the feature; one of them is enough.
        singular: whether its accelerations are not determined.
    """

    feature: str
    model: kt.Model
    words: tuple
    singular: bool = False
    q: np.ndarray = field(init=False)
    tolerance: float = 1e-9
    closed: np.ndarray | None = None
    symbols: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(zlib.crc32(self.feature.encode()))
        m = self.plain
        self.q = m.random_configuration(rng) if self.closed is None else self.closed
        draw = lambda *shape: rng.uniform(0.2, 1.0, shape) * rng.choice([-1, 1], shape)  # noqa: E731
        self.qd, self.qdd, self.tau, self.y = (draw(m.nv) for _ in range(4))
        self.f_ext = draw(m.body_count, 6) * self.force
        self.tau = self.tau * self.force
        self.point, self.vector = draw(3) * self.length, draw(3)
        if m.is_constrained:
            N = Reference(m, self.q, self.qd).null
            self.qd = N @ (N.T @ self.qd)
            self.qd = 2 * self.qd / np.max(np.abs(self.qd))
            self.qd = self.qd + Reference(m, self.q, 0 * self.qd).moving
        self.name = "tip" if "tip" in m.frame_names else m.body_names[-1]

    @property
    def length(self):
        return {"tiny": 1e-4, "huge": 1e4}.get(self.feature, 1.0)

    @property
    def force(self):
        return {"tiny": 1e-10, "huge": 1e10}.get(self.feature, 1.0)

    @cached_property
    def plain(self):
        """The model with numbers in the place of symbols, and at an instant."""
        prescribed = {b.joint_name: b.joint.at(0.0) for b in self.model.bodies
                if isinstance(b.joint, kt.Prescribed)}  # fmt: skip
        if not self.symbols:
            return self.model.replace(joint=prescribed) if prescribed else self.model
        values = {f"mass:{body}": x for body, (_, x) in self.symbols.items()}
        return with_parameters(self.model, values)

    def value(self, expression):
        """A result as a number."""
        if not hasattr(expression, "free_symbols"):
            return float(expression)
        return float(expression.subs(dict(self.symbols.values())))

    @cached_property
    def ref(self) -> Reference:
        return Reference(self.plain, self.q, self.qd)

    def moving(self, **state):
        """The same model in another state."""
        if "q" not in state:
            return self.ref.at_velocity(state["qd"])
        other = Reference(self.plain, state["q"], state.get("qd", self.qd))
        if self.ref.model is self.plain:
            other._transforms = self.ref._transforms  # few of its joints have moved
        return other

    @property
    def free_joint(self):
        """Name of a joint with variables of its own, or None."""
        lead = [i for i in self.ref.leaders if self.model.joint[i].nv]
        return self.model.joint_names[lead[0] - 1] if lead else None


def chain(rng, *joints, scale=1.0, density=1.0, turned=True, name="chain", **dynamics):
    """Bodies ``a``, ``b``, ... one on the other, with parallel frames unless ``turned``."""
    b = kt.ModelBuilder(name, gravity=(1.0, 2.0, -9.0))
    for k, joint in enumerate(joints):
        I = random_inertia(rng)
        I = Inertia(
            I.mass * density, I.first_moment * density * scale, I.rotational * density * scale**2
        )
        at = kt.samples.random_placement(rng)
        b.body(
            "abcdef"[k], on="abcdef"[k - 1] if k else None, joint=joint, inertia=I,
            at=Plucker(at.E if turned else np.eye(3), at.r * scale),
            joint_name=f"j{k + 1}",
        )  # fmt: skip
    b.frame("tip", on="abcdef"[len(joints) - 1], at=np.array([0.3, -0.2, 0.1]) * scale)
    model = b.build()
    if dynamics:
        model = model.replace(
            dynamics={f"j{k + 1}": JointDynamics(**{n: v[k] for n, v in dynamics.items()})
                      for k in range(len(joints))}
        )  # fmt: skip
    return model


def hinges(rng, count=3, **options):
    """Hinges about several axes."""
    axes = ("z", "y", "x", "y")
    return chain(rng, *(kt.Revolute(axes[k]) for k in range(count)), **options)


def linkage(joint, *, tilt=0.0, dynamics=None, coupled=False, **options):
    """Four bars: crank, coupler and rocker in a plane, closed by ``joint`` where they are; with q.

    The loop joint is placed by the poses of the bodies, so that the loop is closed.
    """
    z = kt.Revolute("z")
    b = kt.ModelBuilder("linkage", gravity=(0.5, -9.0, 0.2))
    for name, on, at, length, mass in (
        ("crank", None, (0, 0, 0), 0.3, 1.0),
        ("coupler", "crank", (0.3, 0, 0), 0.7, 1.5),
        ("rocker", None, (0.6, 0.1, 0), 0.5, 0.8),
    ):
        bar = Inertia.from_mass_center(
            mass, (length / 2, 0.02, 0.0), mass * length**2 / 12 * np.diag([0.3, 1.0, 1.1])
        )
        b.body(name, on=on, joint=z, at=at, inertia=bar, joint_name=name[:4])
    if coupled:
        b.body("wheel", on="rocker", joint=z, inertia=random_inertia(np.random.default_rng(2)),
               joint_name="whee")  # fmt: skip
        b.coupling("gear", joint="whee", source="crank"[:4], coefficients=(0.1, -2.0, 0.3))
    b.frame("tip", on="coupler", at=(0.4, 0.1, 0.0))
    tree = b.build().replace(**options)
    q = np.array([0.9, -0.5, 1.3])
    T = Reference(tree, q, 0 * q).poses(q)
    pin = compose(T[2], pose_of(Plucker(np.eye(3), np.array([0.7, 0, 0]))))
    R, d = seen_from(T[3], pin)
    turn = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    loop = Loop("pin", 2, 3, joint, Plucker(np.eye(3), np.array([0.7, 0.0, 0.0])),
                Plucker((R @ turn).T, d), dynamics=dynamics)  # fmt: skip
    return tree.replace(loops=(loop,)), q


def floated(model, q):
    """A model on a free base, and a configuration of it."""
    base = kt.edit.floating(model, inertia=random_inertia(np.random.default_rng(1)))
    p = np.array([0.5, -0.5, 0.1, 0.7])
    return base, np.concatenate([[0.1, 0.2, 0.3], p / np.linalg.norm(p), q])


def bent(q):
    """A slide along a parabola, that turns."""
    return kt.rotz(q[0] / 2) @ kt.xlt(q[0] * q[0] / 4, 0 * q[0], q[0])


def _mimic(rng):
    return hinges(rng).replace(
        couplings=(kt.Coupling("gear", 3, 1, (0.2, -1.5, 0.3)),), name="geared"
    )


def _differential(rng):
    cam = kt.Coupling("cam", 4, sources=(1, 2), function=lambda a, b: ops.sin(a) * b)
    mean = kt.Coupling("mean", 3, sources=(1, 2), weights=(0.5, -0.4), coefficients=(0.1, 1.0))
    # Parallel frames: formulas of a cam with rotations at random take seconds.
    return hinges(rng, 4, turned=False).replace(couplings=(mean, cam), name="differential")


def _rotor(rng):
    I = Inertia.from_mass_center(0.2, np.zeros(3), np.diag([2e-3, 1e-3, 1e-3]))
    return kt.gears.add_rotor(hinges(rng), "j3", ratio=20.0, inertia=I, on="a")


def _with_tendon(rng):
    tendons = (
        kt.Tendon("cable", (1, 3), (0.8, -0.5), 0.1, -9.0, 9.0, 3.0, 0.4, 0.2, (-0.1, 0.05)),
        kt.Tendon("free", (2,), (2.0,)),
    )
    carried = (kt.GravityCompensation(2, 0.7, (0.1, -0.2, 0.3)),)
    carried += (kt.GravityCompensation(3, -0.2, (0.0, 0.1, 0.0)),)
    return hinges(rng).replace(tendons=tendons, gravity_compensation=carried)


def _massless(rng, which):
    return hinges(rng).replace(inertia={which: NOTHING}, name=f"massless {which}")


def _prescribed(rng):
    def motion(t):
        return np.array([0.3 + 0.7 * t - 0.2 * t * t]), np.array([0.7 - 0.4 * t]), np.array([-0.4])

    return chain(
        rng, kt.Revolute("z"), kt.Prescribed(kt.Revolute("y"), motion), kt.Prismatic("x")
    )  # fmt: skip


def _at_an_instant(rng):
    model = _prescribed(rng)
    return model.replace(joint={"j2": model.joint[2].at(0.0)}, name="driven")


def _guided(**functions):
    """Hinges under a constraint that is no joint, in a state that satisfies it."""
    model = hinges(np.random.default_rng(7), turned=False)  # for the sake of formulas
    model = model.with_constraint("guide", unit="rad", **functions)
    return model, np.array([0.4, -0.7, 0.9])


def _curve(q):
    return ops.sin(q[0]) - np.sin(0.4) + (q[1] + 0.7) * (1 + q[2]) + 0.5 * (q[2] - 0.9)


def _moving_curve(q, t):
    return _curve(q) + 0.3 * ops.sin(0.4 * np.pi * t) * (1 + q[1])  # the same after 5 s


def _wheel(q, qd):
    return qd[0] - ops.cos(q[2] / 2) * qd[1] / 2 + 0.2 * q[1] * qd[2]


MASS = sympy.Symbol("m_b")


def _symbolic(rng):
    return with_parameters(hinges(rng, 2), {"mass:b": np.array(MASS)})


SPRINGS = JointDynamics(stiffness=3.0, damping=0.5, rest=0.2)


def _plain(model, *words, **options):
    return lambda name: Case(name, model(np.random.default_rng(7)), words, **options)


def _closed(make, *words, **options):
    def build(name):
        model, q = make()
        return Case(name, model, words, closed=q, **options)

    return build


FEATURES = {
    "nothing special": _plain(hinges),
    "loop": _closed(lambda: linkage(kt.joints.SphereInCylinder("z")), "loop", "pin"),
    "redundant loop": _closed(lambda: linkage(kt.Revolute("z")), "loop", "pin"),
    "loop with springs": _closed(
        lambda: linkage(kt.Revolute("z"), dynamics=replace(SPRINGS, friction=0.3)), "loop", "pin"
    ),
    "loop and follower": _closed(
        lambda: linkage(kt.Revolute("z"), coupled=True), "loop", "pin", "coupl", "follow", "gear"
    ),
    "loop that floats": _closed(
        lambda: floated(*linkage(kt.Revolute("z"))), "loop", "pin", "floating", "free joint",
        "vectors",
    ),
    "loop with a massless coupler": _closed(
        lambda: linkage(kt.Revolute("z"), inertia={"coupler": NOTHING}),
        "loop", "pin", "inertia", "mass",
    ),
    "own constraint": _closed(lambda: _guided(position=_curve), "guide", "constraint"),
    "nonholonomic constraint": _closed(lambda: _guided(rate=_wheel), "guide", "constraint"),
    "moving constraint": _closed(lambda: _guided(position=_moving_curve), "guide", "constraint"),
    "follower": _plain(_mimic, "coupl", "follow", "gear"),
    "differential": _plain(_differential, "coupl", "follow", "cam", "mean"),
    "armature": _plain(lambda r: hinges(r, armature=(0.5, 0.0, 2.0)), "armature"),
    "rotor": _plain(_rotor, "rotor", "coupl", "follow", "gear"),
    "prescribed joint": _plain(_prescribed, "prescribed", "Prescribed", "j2"),
    "prescribed, at an instant": _plain(_at_an_instant, "prescribed", "j2", "slides"),
    "springs": _plain(
        lambda r: hinges(r, stiffness=(3.0, 0.0, 1.0), damping=(0.2, 0.3, 0.0),
                         rest=(0.1, 0.0, 0.4)), "spring", "stiffness", "damp"
    ),
    "tendon": _plain(_with_tendon, "tendon", "gravity compensation", "carried"),
    "friction": _plain(lambda r: hinges(r, friction=(0.3, 0.0, 0.2)), "friction"),
    "massless body": _plain(lambda r: _massless(r, "b"), "mass", "inertia"),
    "massless end": _plain(lambda r: _massless(r, "c"), "mass", "inertia", "j3", singular=True),
    "zero freedoms": _plain(
        lambda r: chain(r, kt.Fixed(), kt.Fixed()), "freedom", "variable", "rank 0", "joint",
        "nothing in",
    ),
    "no bodies": _plain(lambda r: kt.ModelBuilder("empty").build(), "freedom", "variable", "bod",
                        "joint", "mass", "rank 0", "nothing in"),
    "floating base": _plain(
        lambda r: chain(r, kt.Free(), kt.Revolute("z"), kt.Revolute("y")), "floating", "free joint",
        "Free", "j1", "vectors",
    ),
    "multi-freedom joints": _plain(
        lambda r: chain(r, kt.Spherical(), kt.Universal("xy"), kt.Cylindrical("y"), kt.Planar("z")),
        "Spherical", "j1", "j3", "variables", "vectors",
    ),
    "tiny": _plain(lambda r: hinges(r, scale=1e-4, density=1e-7), "tiny"),
    "huge": _plain(lambda r: hinges(r, scale=1e4, density=1e3), "huge"),
    "own joint": _plain(
        lambda r: chain(r, Slot(), kt.Revolute("y"), kt.joints.CustomJoint(bent, 1)), "Slot", "j1",
        "Custom",
    ),
    "symbolic parameters": _plain(
        _symbolic, "symbol", "traced", "only models of floats", symbols={"b": (MASS, 1.7)}
    ),
}  # fmt: skip
"""From a name to what makes a case."""


@cache
def case(feature) -> Case:
    """The case of a feature."""
    return FEATURES[feature](feature)
