"""A node between ROS 2 and kinetree: forces that hold an arm and move its tool.

    source /opt/ros/jazzy/setup.bash
    python bridge.py --ros-args -p tool:=tool

It reads the robot from the topic ``/robot_description``, as robot_state_publisher sends it, and
``/robot_description_semantic`` if there is one; states from ``/joint_states``; where the tool
should be from ``/target`` (geometry_msgs/PointStamped). It sends efforts to
``/effort_controller/commands``, in the order of the parameter ``joints``, and the pose of the tool
to ``/tool_pose``. States that are older than 0.1 s stop it: efforts are zero then.
"""

import numpy as np
import rclpy
from geometry_msgs.msg import PointStamped, PoseStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

import kinetree as kt
from kinetree.spatial.rotation import quaternion_from_rotation

STIFFNESS, DAMPING, REST = 400.0, 40.0, 0.5  # of the tool [N/m, N s/m]; of joints [N m s]
OLDEST = 0.1  # [s]


class Bridge(Node):
    """Holds the weight of the robot, and pulls its tool to a target."""

    def __init__(self):
        super().__init__("kinetree_bridge")
        self.tool = self.declare_parameter("tool", "tool").value
        self.joints = list(self.declare_parameter("joints", [""]).value)
        self.model = self.target = self.semantics = None
        self.q = self.qd = self.seen = None
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(String, "robot_description", self.on_robot, kept)
        self.create_subscription(String, "robot_description_semantic", self.on_semantics, kept)
        self.create_subscription(JointState, "joint_states", self.on_state, 10)
        self.create_subscription(PointStamped, "target", self.on_target, 10)
        self.efforts = self.create_publisher(Float64MultiArray, "effort_controller/commands", 10)
        self.poses = self.create_publisher(PoseStamped, "tool_pose", 10)
        self.create_timer(0.002, self.control)

    def on_robot(self, message):
        """A new robot: its text is a URDF file. What is wrong with it is logged, not raised."""
        try:
            model = kt.loads(message.data, "urdf", srdf=self.semantics, name="robot_description")
        except kt.KinetreeError as error:
            self.get_logger().error(str(error))
            return
        if self.tool not in (*model.body_names, *model.frame_names):
            self.get_logger().error(f"the robot has no frame {self.tool!r}: {model.frame_names}")
            return
        self.model, self.q, self.seen = model, model.neutral(), None
        self.qd = np.zeros(model.nv)
        self.urdf = message
        self.get_logger().info(f"{model.name}: {model.nv} joints\n{model.report}")

    def on_semantics(self, message):
        """Groups and postures; the robot is read again with them."""
        self.semantics = message.data
        if self.model is not None:
            self.on_robot(self.urdf)

    def on_state(self, message):
        """Positions and velocities by name; joints that the robot does not have are passed over."""
        if self.model is None:
            return
        names = self.model.joint_names
        for k, name in enumerate(message.name):
            if name in names:
                i = names.index(name) + 1
                self.q[self.model.q_slice[i]] = message.position[k]
                if len(message.velocity):
                    self.qd[self.model.v_slice[i]] = message.velocity[k]
        self.seen = self.get_clock().now()

    def on_target(self, message):
        """Where the tool should be, in the coordinates of the base [m]."""
        self.target = np.array([message.point.x, message.point.y, message.point.z])

    def control(self):
        """Send efforts, and the pose of the tool."""
        if self.model is None or self.seen is None:
            return
        now = self.get_clock().now()
        fresh = (now - self.seen).nanoseconds * 1e-9 < OLDEST
        T = kt.pose(self.model, self.q, self.tool)
        tau = self.forces(T) if fresh else np.zeros(self.model.nv)
        names = self.joints if self.joints != [""] else self.model.joint_names
        order = [self.model.joint_names.index(name) for name in names]
        self.efforts.publish(Float64MultiArray(data=[float(tau[i]) for i in order]))
        self.poses.publish(self.message_of(T, now))

    def forces(self, T):
        """Weight, a damped spring at the tool, and a little damping of all joints."""
        tau = kt.gravity_force(self.model, self.q) - REST * self.qd
        if self.target is not None:
            J = kt.jacobian(self.model, self.q, self.tool, frame="aligned")[3:]
            tau = tau + J.T @ (STIFFNESS * (self.target - T[:3, 3]) - DAMPING * (J @ self.qd))
        most = np.asarray(self.model.effort_limits)
        return np.clip(tau, -most, most)

    def message_of(self, T, now):
        """The pose of the tool as a message."""
        message = PoseStamped()
        message.header.stamp = now.to_msg()
        message.header.frame_id = self.model.base_name
        p, o = message.pose.position, message.pose.orientation
        p.x, p.y, p.z = map(float, T[:3, 3])
        o.w, o.x, o.y, o.z = map(float, quaternion_from_rotation(T[:3, :3].T))
        return message


def main():
    """Run until the program is interrupted."""
    rclpy.init()
    node = Bridge()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()


if __name__ == "__main__":
    main()
