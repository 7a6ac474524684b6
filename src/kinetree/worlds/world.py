"""``World``: robots, objects and terrain put together, stepped, saved and looked at."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.model import Model
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.spelling import explains_methods, joins_bases
from kinetree.worlds.files import fill, from_file, load, save
from kinetree.worlds.inputs import by_part
from kinetree.worlds.motion import WorldMotion
from kinetree.worlds.options import check_options, options_of
from kinetree.worlds.touching import TouchingParts
from kinetree.worlds.whole import Simulated


@explains_methods
@joins_bases
class World(TouchingParts, WorldMotion):
    """Robots, objects and terrain in rigid contact, as one mechanism that is stepped.

        world = kt.World()
        world.add_ground()
        arm = world.add("panda", name="arm")
        box = world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=(0.5, 0, 0.05))
        world.step(1000)
        box.pose, world.contacts()

    Parts are assembled when they are first needed: ``model`` is the whole world as one ``Model``, a
    forest, and ``scene`` defines what can touch. All functions of kinetree work with them.

    Steps of large worlds use several threads (``kinetree.set_threads``): groups of bodies that do
    not touch each other are solved at the same time, with the same bits as on one thread.

    Args:
        name: of the world.
        gravity: [m/s²], (3,), for all parts; that of their models is ignored.
        timestep: length of a step [s].
        friction: coefficient of friction of all contacts; by default that of the surfaces, 0.8
            where these have none.
        restitution: coefficient of restitution, in the same way; 0 where surfaces have none.
        tolerance: error of the impulses of a step, relative to the largest among bodies that
            touch; a thousandth of it is the tolerance of velocities of ``TimeStepping``.
        limits: of joints: ``"rigid"``, ``"stiff"`` or None, as in ``kinetree.simulate``; by default
            rigid, but for joints that close loops.
        joint_friction: dry friction of joints: ``"exact"``, ``"smooth"`` or None; by default exact
            where it can be, see docs/defaults.md.
        sleeping: whether groups of touching bodies that are all slower than 1e-4 rad/s, or lengths
            of the largest shape per second, for 50 steps are no longer moved, until something
            touches them, a force on them changes, or a state is set.
        strict: whether a step that cannot be trusted, see ``report().unsolved``, raises an error;
            then the world stays where it was before the call. Otherwise the first one is a warning.
        **options: ``motors``, ``kinetree.TorqueSpeed`` by name of the actuator, which limits it
            under controls; and settings of ``kinetree.contact.TimeStepping``, such as
            ``rest_velocity``.
    """

    def __init__(
        self,
        name: str = "world",
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        timestep: float = 2e-3,
        friction: float | None = None,
        restitution: float | None = None,
        tolerance: float = 1e-6,
        limits: Any = "auto",
        joint_friction: Any = "auto",
        sleeping: bool = False,
        strict: bool = False,
        **options: Any,
    ):
        base = Model((), name=name, gravity=np.array(gravity, dtype=float), base_name="world")
        coefficients: dict[str, Any] = {"friction": friction, "restitution": restitution}
        laws = {"limits": limits, "joint_friction": joint_friction}
        solving = {"tolerance": tolerance, "sleeping": sleeping, "strict": strict}
        check_options(World.__init__, base, coefficients | laws | solving | options)
        motors = dict(options.pop("motors", None) or {})
        joints = {"limits": limits, "friction": joint_friction, "motors": motors}
        super().__init__(base, coefficients, options, joints, solving)
        self.timestep = timestep

    # --- copies, and other functions of kinetree ---------------------------------------------

    def simulation_start(self) -> Simulated:
        """Model, state and joint laws with which ``kinetree.simulate`` starts."""
        whole = self._whole
        return Simulated(
            whole.model,
            self.state,
            self.timestep,
            whole.contact,
            self.joints,
            read=(
                lambda tau: by_part(tau, self),
                lambda u: whole.steps.drives.rows(u, self._actuators)[0],
            ),
            check=lambda q=None: (
                whole.steps.check(whole) if q is None else whole.steps.check_starts(q)
            ),
        )

    def with_model(self, model: Model) -> "World":
        """Copy of the world with other parameters of its model: masses, sizes, gravity.

        Args:
            model: the model of the world, changed by ``model.replace(...)``; bodies, joints and
                actuators must be the same.
        """
        names = ("body_names", "joint_names", "nq")
        if any(getattr(model, x) != getattr(self.model, x) for x in names):
            raise ModelError(
                f"with_model takes the model of world {self.name!r} with other numbers; "
                f"{model.name!r} has other bodies or joints"
            )
        options = options_of(self.joints) | self.coefficients | self.settings
        options |= {"tolerance": self.tolerance, "sleeping": self.sleeping, "strict": self.strict}
        new = World(self.name, gravity=model.gravity, timestep=self.timestep, **options)
        parts = {name: self[name].numbers for name in self}
        fill(new, model, self.start, parts)
        new.set_state(self.state)
        return new

    def copy(self) -> "World":
        """Copy of the world in the same state."""
        return self.with_model(self.model)

    def batch(
        self,
        n: int,
        *,
        friction: Any = None,
        restitution: Any = None,
        mass: Any = None,
        gains: Any = None,
        size: Any = None,
        device: Any = "cpu",
        arrays: str = "cupy",
    ) -> Any:
        """Copies of the world with individual parameters, stepped together; nothing is recompiled.

        Args:
            n: how many.
            friction: coefficient of all shapes, (n,), or by part, ``{"box": (n,)}``. Of two shapes
                that touch the larger one counts, or that of the higher ``priority``.
            restitution: in the same way.
            mass: of parts [kg], ``{"box": (n,)}``; inertias grow with it.
            gains: factors of the gains of all actuators, (n,), or by part.
            size: factors of the lengths of parts, ``{"box": (n,)}``; masses stay.
            device: ``"cpu"``, or a GPU such as ``"cuda"``.
            arrays: ``"cupy"``, ``"torch"`` or ``"numpy"``: what worlds on a GPU return.

        Returns:
            ``kinetree.Worlds``; on a GPU ``kinetree.DeviceWorlds``.
        """
        from kinetree.worlds.batch import batch

        given = {"friction": friction, "restitution": restitution, "mass": mass, "gains": gains}
        return batch(self, n, given | {"size": size}, device, arrays)

    def __getstate__(self):
        state = self.state  # puts together what is not yet
        return {**self.__dict__, "_whole": None, "_state": state, "_is_stepping": False}

    def __setstate__(self, given):
        state = given.pop("_state")
        del given["_whole"]
        self.__dict__.update(given)
        self.set_state(state)

    # --- files, batches, pictures ------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the world with its state to an ``.npz`` file for ``World.load``."""
        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "World":
        """World read from a file of ``save``; it continues with bit-identical results."""
        return load(cls, path)

    @classmethod
    def from_file(cls, path: str | os.PathLike, **options: Any) -> "World":
        """World with the robots and objects of an MJCF, SDF or other file as parts.

        Every body on the base, with everything it carries, becomes a part under its own name; all
        names are those of the file. Gravity and, of MJCF and SDF, the time step are those of the
        file. The world starts where the file puts its bodies.

        Args:
            path: of the file.
            **options: of ``World`` and of ``kinetree.load``; ``posture``, the name of a
                keyframe to start from; and ``keep_overlaps``, as in ``add``.
        """
        return from_file(cls, path, options)

    def view(self, **options: Any) -> Any:
        """Show the world in the browser: ``kinetree.view(world, **options)``."""
        import kinetree  # the viewer is a higher layer, reached through the public interface

        return kinetree.view(self, **options)
