// Stand-in for tests: the names that examples/ros2 uses.
#pragma once
namespace rclcpp
{
class Time {};
}
