// Runs the plugin as the controller manager does; prints time, positions and velocities.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include "hardware_interface/system_interface.hpp"
extern "C" hardware_interface::SystemInterface * make_plugin();
using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;
int main(int count, char ** words)
{
  if (count < 4) {return 2;}  // interface, gravity_compensation, joint...
  std::unique_ptr<hardware_interface::SystemInterface> system(make_plugin());
  hardware_interface::HardwareInfo info;
  info.hardware_parameters["gravity_compensation"] = words[2];
  for (int k = count - 1; k >= 3; --k) {info.joints.push_back({words[k]});}
  if (system->on_init(info) != CallbackReturn::SUCCESS) {return 3;}
  auto states = system->export_state_interfaces();
  auto commands = system->export_command_interfaces();
  system->on_activate(rclcpp_lifecycle::State());
  const auto period = rclcpp::Duration::from_seconds(0.004);
  for (int step = 0; step < 100; ++step) {
    double value = 0.3;
    for (auto & command : commands) {
      const auto & name = command.get_name();
      if (name.find(words[1]) != std::string::npos) {command.set_value(value *= -0.9);}
    }
    system->write(rclcpp::Time(), period);
    if (system->read(rclcpp::Time(), period) != hardware_interface::return_type::OK) {return 4;}
  }
  for (auto & state : states) {std::printf("%s %.17g\n", state.get_name().c_str(), state.get_value());}
  return 0;
}
