"""Motions as MCAP files that ROS 2 and its tools read: bags of joint states and transforms.

Messages are written in CDR, the encoding of ROS 2, beside the definitions of their types, so that a
reader needs neither ROS nor kinetree. Joints of one freedom are in ``/joint_states``; where every
body is, relative to its parent, in ``/tf``; named frames, fixed to bodies, in ``/tf_static``.
"""

import struct

import numpy as np

from kinetree.errors import ShapeError, need
from kinetree.functional import layout
from kinetree.quantities.kinematics import poses
from kinetree.spatial.rotation import quaternions

_LINE = "=" * 80
_HEADER = f"""{_LINE}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_LINE}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
_JOINT_STATE = f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{_HEADER}"""
_TF = f"""geometry_msgs/TransformStamped[] transforms
{_LINE}
MSG: geometry_msgs/TransformStamped
std_msgs/Header header
string child_frame_id
geometry_msgs/Transform transform
{_HEADER}{_LINE}
MSG: geometry_msgs/Transform
geometry_msgs/Vector3 translation
geometry_msgs/Quaternion rotation
{_LINE}
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
{_LINE}
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""
_LATCHED = """- history: 1
  depth: 1
  reliability: 1
  durability: 1
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""  # what comes later gets the last message, too, as /tf_static wants it


def write_mcap(trajectory, path, about):
    """Write one motion as a ROS 2 bag (MCAP) of joint states and transforms."""
    writing = need("mcap.writer", "a .mcap file", "mcap")
    model, t = trajectory.model, np.asarray(trajectory.t, dtype=float)
    if trajectory.q.ndim > 2:
        raise ShapeError(
            f"a bag (.mcap) holds one motion, and the trajectory holds a batch of shape "
            f"{trajectory.q.shape[1:-1]}; choose one, such as trajectory.motion(0)"
        )
    if len(t) and t[0] < 0:
        raise ShapeError(f"times in a bag (.mcap) cannot be negative, and the first is {t[0]}")
    instants = np.rint(t * 1e9).astype(np.int64).tolist()
    with open(path, "wb") as file:
        writer = writing.Writer(file)
        writer.start(profile="ros2", library="kinetree")
        writer.add_metadata("kinetree", {"model": model.name, "about": about})

        def channel(topic, name, text, **more):
            schema = writer.register_schema(name, "ros2msg", text.encode())
            return writer.register_channel(topic, "cdr", schema, more)

        states = channel("/joint_states", "sensor_msgs/msg/JointState", _JOINT_STATE)
        moving = channel("/tf", "tf2_msgs/msg/TFMessage", _TF)
        if model.frames:
            fixed = channel(
                "/tf_static", "tf2_msgs/msg/TFMessage", _TF, offered_qos_profiles=_LATCHED
            )
            at = np.array([f.placement.to_pose().astype(float) for f in model.frames])
            names = [(model.body_names[f.body], f.name) for f in model.frames]
            time = instants[0] if instants else 0
            writer.add_message(fixed, time, _transforms(time, names, *_numbers(at)), time)
        names, parts = _of_one_freedom(model)
        arrays = [getattr(trajectory, name)[:, part] for name, part in parts.items()]
        bodies = [(model.body_names[b.parent], b.name) for b in model.bodies]
        places = _numbers(_from_parents(model, trajectory.q))
        for k, time in enumerate(instants):
            state = _Cdr().header(time, model.base_name).strings(names)
            for array in arrays:
                state.numbers(array[k])
            writer.add_message(states, time, state.data, time, k)
            writer.add_message(
                moving, time, _transforms(time, bodies, *(x[k] for x in places)), time, k
            )
        writer.finish()


def _of_one_freedom(model):
    """Names of the joints with a single variable, and their columns in q and qd."""
    q, qd = (
        {v.joint: k for k, v in enumerate(variables) if v.name == v.joint}
        for variables in (layout.positions(model), layout.velocities(model))
    )
    names = [name for name in q if name in qd]
    at = [qd[name] for name in names]
    return names, {"q": [q[name] for name in names], "qd": at, "tau": at}


def _from_parents(model, q):
    """Poses of all bodies relative to their parents, (T, bodies, 4, 4)."""
    of_base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
    found = np.concatenate([of_base, np.asarray(poses(model, q))], axis=1) if len(q) else of_base
    parents = found[:, [b.parent for b in model.bodies]] if model.bodies else found[:, :0]
    return (
        np.linalg.inv(parents) @ found[:, 1:] if len(q) else np.zeros((0, model.body_count, 4, 4))
    )


def _numbers(places):
    """Translations and quaternions (x, y, z, w) of poses (..., 4, 4)."""
    return places[..., :3, 3], np.roll(quaternions(places[..., :3, :3]), -1, axis=-1)


def _transforms(time, names, translations, rotations):
    """CDR bytes of a TF message from frame names, translations and quaternions."""
    message = _Cdr().count(len(names))
    for (parent, child), x, p in zip(names, translations, rotations, strict=True):
        message.header(time, parent).string(child).floats([*x, *p])
    return message.data


class _Cdr:
    """A message in CDR, little-endian: every number at a multiple of its size."""

    def __init__(self):
        self.data = bytearray(b"\x00\x01\x00\x00")

    def _put(self, size, code, *values):
        """Append packed values aligned to their size; returns the writer."""
        self.data += bytes(-(len(self.data) - 4) % size)
        self.data += struct.pack(f"<{code}", *values)
        return self

    def count(self, n):
        """Append the length of a sequence to the CDR message."""
        return self._put(4, "I", n)

    def header(self, time, frame):
        """Append a ROS message header with time [ns] and frame."""
        seconds, rest = divmod(time, 10**9)
        return self._put(4, "iI", seconds, rest).string(frame)

    def string(self, text):
        """Append a length-prefixed string to the CDR message."""
        data = text.encode() + b"\0"
        self.count(len(data))
        self.data += data
        return self

    def strings(self, texts):
        """Append a sequence of strings with its length."""
        self.count(len(texts))
        for text in texts:
            self.string(text)
        return self

    def floats(self, values):
        """Append doubles without their number to the CDR message."""
        return self._put(8, f"{len(values)}d", *values)

    def numbers(self, values):
        """Append a sequence of doubles with its length."""
        self.count(len(values))
        return self.floats(values) if len(values) else self
