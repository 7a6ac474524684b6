"""Parts of a model by their names."""

from kinetree.arrays.kinds import Array
from kinetree.model import names
from kinetree.model.names import Group, indices
from kinetree.model.parts import Actuator, Frame, Posture
from kinetree.model.structure import ModelStructure
from kinetree.model.tendon import Tendon


class NamedParts(ModelStructure):
    """Bodies, joints, frames, postures and others, found by name."""

    def body_index(self, name: str) -> int:
        """Number of a body; the base is 0."""
        return names.body_index(self, name)

    def joint_index(self, name: str) -> int:
        """Number of a tree joint, which is the number of the body it moves."""
        return names.joint_index(self, name)

    def frame(self, name: str) -> Frame:
        """Frame by its name; every body name also names the body's coordinate frame."""
        return names.frame(self, name)

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Names of the joints that close loops."""
        return tuple(loop.name for loop in self.loops)

    def driven_joint(self, actuator: Actuator) -> str:
        """Name of the tree or loop joint that an actuator drives.

        It is empty for an actuator of a tendon or a frame.
        """
        if actuator.loop:
            return self.loops[actuator.loop - 1].name
        return self.joint_names[actuator.joint - 1] if actuator.joint else ""

    def posture(self, name: str) -> Posture:
        """Posture by its name."""
        return names.posture(self, name)

    def group(self, name: str) -> Group:
        """Group of joints by its name."""
        return names.group(self, name)

    def q_indices(self, *names: str) -> Array:
        """Indices of the position variables of joints and groups in ``q``, in the order given."""
        return indices(self, names, self.q_slice)

    def v_indices(self, *names: str) -> Array:
        """Indices of the velocity variables of joints and groups in ``qd``, in the order given."""
        return indices(self, names, self.v_slice)

    def tendon(self, name: str) -> Tendon:
        """Tendon by its name."""
        return names.tendon(self, name)
