// Stand-in for tests: the names that examples/ros2 uses.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>
namespace hardware_interface
{
struct ComponentInfo
{
  std::string name;
};
struct HardwareInfo
{
  std::string name;
  std::unordered_map<std::string, std::string> hardware_parameters;
  std::vector<ComponentInfo> joints;
};
}  // namespace hardware_interface
