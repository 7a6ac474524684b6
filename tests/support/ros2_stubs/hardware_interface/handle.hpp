// Stand-in for tests: the names that examples/ros2 uses.
#pragma once
#include <string>
namespace hardware_interface
{
class Handle
{
public:
  Handle(const std::string & prefix, const std::string & name, double * value)
  : name_(prefix + "/" + name), value_(value) {}
  const std::string & get_name() const {return name_;}
  double get_value() const {return *value_;}
  void set_value(double value) {*value_ = value;}

private:
  std::string name_;
  double * value_;
};
class StateInterface : public Handle
{
public:
  using Handle::Handle;
};
class CommandInterface : public Handle
{
public:
  using Handle::Handle;
};
}  // namespace hardware_interface
