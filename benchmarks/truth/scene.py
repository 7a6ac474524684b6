"""Scenes: one description, from which a ``kt.World`` and an MJCF file are made."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import kinetree as kt
from kinetree.model import geometry as g

GROUND = "ground"


@dataclass(frozen=True)
class Thing:
    """A solid.

    Attributes:
        name: of the part.
        shape: of ``kinetree.geometry``.
        mass: [kg]; 0: fixed to the world.
        at: position of the shape's frame at the start [m].
        turn: its rotation, (3, 3).
        velocity, spin: at the start, along the axes of the world [m/s, rad/s].
        slide: axis of a prismatic joint, in the world; None: a free body.
        push: force along the slide [N].
    """

    name: str
    shape: Any
    mass: float = 0.0
    at: tuple = (0.0, 0.0, 0.0)
    turn: Any = field(default_factory=lambda: np.eye(3))
    velocity: tuple = (0.0, 0.0, 0.0)
    spin: tuple = (0.0, 0.0, 0.0)
    slide: tuple | None = None
    push: float = 0.0

    @property
    def pose(self) -> np.ndarray:
        """(4, 4)."""
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = self.turn, self.at
        return T


@dataclass(frozen=True)
class Scene:
    """Things in one world, all of the same surface.

    Attributes:
        things: solids.
        friction, restitution, rolling: of all contacts.
        ground: whether there is a plane at height 0.
        timestep: [s].
        steps: how many are taken.
        gravity: [m/s²].
        options: further arguments of ``kt.World``.
    """

    things: tuple[Thing, ...]
    friction: float = 0.5
    restitution: float = 0.0
    rolling: float = 0.0
    ground: bool = True
    timestep: float = 2e-3
    steps: int = 500
    gravity: float = 9.81
    options: dict = field(default_factory=dict)

    def with_(self, **changes) -> "Scene":
        """Another scene."""
        return replace(self, **changes)

    @property
    def all_things(self) -> tuple[Thing, ...]:
        """With the ground."""
        plane = (Thing(GROUND, g.Plane()),) if self.ground else ()
        return plane + self.things

    def world(self) -> kt.World:
        """The world at its start."""
        world = kt.World(
            gravity=(0, 0, -self.gravity), timestep=self.timestep, friction=self.friction,
            restitution=self.restitution, **self.options,
        )  # fmt: skip
        more = {"rolling": self.rolling} if self.rolling else {}
        if self.ground:
            world.add_ground(name=GROUND, **more)
        for t in self.things:
            given: dict[str, Any] = {"name": t.name, "at": t.pose} | more
            if t.mass:
                given["mass"] = t.mass
            if t.slide is not None:
                axis = np.asarray(t.turn).T @ np.asarray(t.slide, dtype=float)
                given["joint"] = kt.Prismatic(tuple(axis))
            elif t.mass:
                given |= {"velocity": t.velocity, "spin": t.spin}
            world.add(t.shape, **given)
        return world

    def forces(self, world) -> np.ndarray | None:
        """Joint forces of the pushes, (nv,); None without any."""
        pushes = {t.name: t.push for t in self.things if t.push}
        if not pushes:
            return None
        tau = np.zeros(world.model.nv)
        for name, force in pushes.items():
            tau[world[name].v_indices] = force
        return tau

    def mjcf(self) -> str:
        """The scene as an MJCF file, with MuJoCo's defaults."""
        rolls = f"{self.friction} 0.005 {self.rolling or 0.0001}"
        dim = 6 if self.rolling else 3
        assets = []
        bodies = [_body(t, assets) for t in self.things]
        plane = '<geom type="plane" size="50 50 1"/>' if self.ground else ""
        motors = "".join(
            f'<motor joint="{t.name}" gear="1"/>' for t in self.things if t.slide is not None
        )
        return f"""<mujoco><option timestep="{self.timestep}" gravity="0 0 {-self.gravity}"/>
<size memory="800M"/><default><geom friction="{rolls}" condim="{dim}"/></default>
<asset>{"".join(assets)}</asset><worldbody>{plane}{"".join(bodies)}</worldbody>
<actuator>{motors}</actuator></mujoco>"""


def _numbers(x):
    return " ".join(f"{y:.17g}" for y in np.ravel(x))


def _body(t, assets):
    R = np.asarray(t.turn)
    place = f'pos="{_numbers(t.at)}" xyaxes="{_numbers([R[:, 0], R[:, 1]])}"'
    geom = _geom(t, assets)
    if not t.mass:
        return f"<geom {geom} {place}/>"
    joint = f'<freejoint name="{t.name}"/>'
    if t.slide is not None:
        axis = R.T @ np.asarray(t.slide, dtype=float)
        joint = f'<joint name="{t.name}" type="slide" axis="{_numbers(axis)}"/>'
    return f'<body name="{t.name}" {place}>{joint}<geom {geom} mass="{t.mass}"/></body>'


def _geom(t, assets):
    s = t.shape
    if isinstance(s, g.Box):
        return f'type="box" size="{_numbers(np.array(s.size) / 2)}"'
    if isinstance(s, g.Sphere):
        return f'type="sphere" size="{s.radius}"'
    if isinstance(s, (g.Cylinder, g.Capsule)):
        kind = type(s).__name__.lower()
        return f'type="{kind}" size="{s.radius} {s.length / 2}"'
    if isinstance(s, g.Ellipsoid):
        return f'type="ellipsoid" size="{_numbers(s.radii)}"'
    if isinstance(s, g.Mesh):
        assets.append(f'<mesh name="{t.name}" file="{s.path}" scale="{_numbers(s.scale)}"/>')
        return f'type="mesh" mesh="{t.name}"'
    raise TypeError(f"no MJCF of {s!r} is written here")


def start_velocities(scene: Scene, mj, data) -> None:
    """Give MuJoCo's bodies the velocities of the scene."""
    for t in scene.things:
        if t.mass and t.slide is None:
            at = int(mj.joint(t.name).dofadr[0])
            data.qvel[at : at + 3] = t.velocity
            data.qvel[at + 3 : at + 6] = np.asarray(t.turn).T @ np.asarray(t.spin, dtype=float)
