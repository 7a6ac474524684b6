// Stand-in for tests: the names that examples/ros2 uses.
#pragma once
namespace hardware_interface
{
enum class return_type { OK = 0, ERROR = 1 };
}
