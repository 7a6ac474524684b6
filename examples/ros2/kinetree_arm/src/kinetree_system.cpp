#include "kinetree_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "joints.h"
#include "robot.h"

namespace kinetree_arm
{
namespace
{

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string parameter(
  const hardware_interface::HardwareInfo & info, const std::string & name,
  const std::string & usual)
{
  const auto found = info.hardware_parameters.find(name);
  return found == info.hardware_parameters.end() ? usual : found->second;
}

}  // namespace

CallbackReturn KinetreeSystem::on_init(const hardware_interface::HardwareInfo & info)
{
  if (SystemInterface::on_init(info) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  std::set<std::string> known(joints::names, joints::names + joints::count);
  for (const auto & joint : info.joints) {
    if (known.erase(joint.name) == 0) {
      return CallbackReturn::ERROR;  // a joint that the exported robot does not have
    }
  }
  if (!known.empty()) {
    return CallbackReturn::ERROR;  // a joint that <ros2_control> does not list
  }
  try {
    step_ = std::stod(parameter(info, "step", "0.001"));
    stiffness_ = std::stod(parameter(info, "stiffness", "200"));
    damping_ = std::stod(parameter(info, "damping", "20"));
  } catch (const std::exception &) {
    return CallbackReturn::ERROR;
  }
  compensates_gravity_ = parameter(info, "gravity_compensation", "false") == "true";
  q_.assign(joints::count, 0.0);
  qd_.assign(joints::count, 0.0);
  tau_.assign(joints::count, 0.0);
  effort_.assign(joints::count, kNone);
  position_.assign(joints::count, kNone);
  return step_ > 0.0 ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
}

std::vector<hardware_interface::StateInterface> KinetreeSystem::export_state_interfaces()
{
  std::vector<hardware_interface::StateInterface> found;
  for (int k = 0; k < joints::count; ++k) {
    const std::string name = joints::names[k];
    found.emplace_back(name, hardware_interface::HW_IF_POSITION, &q_[k]);
    found.emplace_back(name, hardware_interface::HW_IF_VELOCITY, &qd_[k]);
    found.emplace_back(name, hardware_interface::HW_IF_EFFORT, &tau_[k]);
  }
  return found;
}

std::vector<hardware_interface::CommandInterface> KinetreeSystem::export_command_interfaces()
{
  std::vector<hardware_interface::CommandInterface> found;
  for (int k = 0; k < joints::count; ++k) {
    const std::string name = joints::names[k];
    found.emplace_back(name, hardware_interface::HW_IF_EFFORT, &effort_[k]);
    found.emplace_back(name, hardware_interface::HW_IF_POSITION, &position_[k]);
  }
  return found;
}

CallbackReturn KinetreeSystem::on_activate(const rclcpp_lifecycle::State &)
{
  std::fill(qd_.begin(), qd_.end(), 0.0);
  std::fill(effort_.begin(), effort_.end(), kNone);
  std::fill(position_.begin(), position_.end(), kNone);
  return CallbackReturn::SUCCESS;
}

hardware_interface::return_type KinetreeSystem::read(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  const double whole = period.seconds();
  const int steps = std::max(1, static_cast<int>(std::ceil(whole / step_ - 1e-9)));
  for (int k = 0; k < steps; ++k) {
    if (!advance(whole / steps)) {
      return hardware_interface::return_type::ERROR;
    }
  }
  return hardware_interface::return_type::OK;
}

hardware_interface::return_type KinetreeSystem::write(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  return hardware_interface::return_type::OK;  // commands are taken in the next step
}

// Semi-implicit Euler; false where the numbers are no longer finite.
bool KinetreeSystem::advance(double dt)
{
  double gravity[joints::count] = {}, passive[joints::count], tau[joints::count];
  double qdd[joints::count];
  int wrong = robot_passive_force(q_.data(), qd_.data(), passive);
  if (compensates_gravity_) {
    wrong |= robot_gravity_force(q_.data(), gravity);
  }
  for (int k = 0; k < joints::count; ++k) {
    double motor = gravity[k];
    if (std::isfinite(effort_[k])) {
      motor += effort_[k];
    } else if (std::isfinite(position_[k])) {
      motor += stiffness_ * (position_[k] - q_[k]) - damping_ * qd_[k];
    }
    tau_[k] = std::clamp(motor, -joints::efforts[k], joints::efforts[k]);
    tau[k] = tau_[k] + passive[k];
  }
  wrong |= robot_forward_dynamics(q_.data(), qd_.data(), tau, qdd);
  for (int k = 0; k < joints::count; ++k) {
    qd_[k] += dt * qdd[k];
    q_[k] += dt * qd_[k];
  }
  return wrong == 0;
}

}  // namespace kinetree_arm

#include "pluginlib/class_list_macros.hpp"

PLUGINLIB_EXPORT_CLASS(kinetree_arm::KinetreeSystem, hardware_interface::SystemInterface)
