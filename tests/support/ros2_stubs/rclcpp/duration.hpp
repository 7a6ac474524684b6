// Stand-in for tests: the names that examples/ros2 uses.
#pragma once
namespace rclcpp
{
class Duration
{
public:
  static Duration from_seconds(double seconds)
  {
    Duration made;
    made.seconds_ = seconds;
    return made;
  }
  double seconds() const {return seconds_;}

private:
  double seconds_ = 0.0;
};
}  // namespace rclcpp
