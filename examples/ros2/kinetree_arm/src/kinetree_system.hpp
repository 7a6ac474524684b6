// A simulated robot as hardware of ros2_control: its motion is computed by kinetree's C code.
#pragma once

#include <string>
#include <vector>

#include "hardware_interface/handle.hpp"
#include "hardware_interface/hardware_info.hpp"
#include "hardware_interface/system_interface.hpp"
#include "hardware_interface/types/hardware_interface_return_values.hpp"
#include "rclcpp/duration.hpp"
#include "rclcpp/time.hpp"
#include "rclcpp_lifecycle/state.hpp"

namespace kinetree_arm
{

using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;

/// Takes efforts, or positions that a damped spring follows; gives positions, velocities, efforts.
///
/// Parameters of the <hardware>, all optional: `step` [s], the longest step of the simulation;
/// `gravity_compensation`, "true" to add the forces that balance gravity; `stiffness` and
/// `damping` of the spring that follows position commands.
class KinetreeSystem : public hardware_interface::SystemInterface
{
public:
  CallbackReturn on_init(const hardware_interface::HardwareInfo & info) override;
  std::vector<hardware_interface::StateInterface> export_state_interfaces() override;
  std::vector<hardware_interface::CommandInterface> export_command_interfaces() override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  hardware_interface::return_type read(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  hardware_interface::return_type write(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  bool advance(double dt);

  std::vector<double> q_, qd_, tau_;             // state, and forces of the last step
  std::vector<double> effort_, position_;        // commands; NaN: none
  double step_ = 1e-3, stiffness_ = 0.0, damping_ = 0.0;
  bool compensates_gravity_ = false;
};

}  // namespace kinetree_arm
