// Stand-in for tests: makes the class known under one name.
#pragma once
#include <memory>
#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  extern "C" Base * make_plugin() {return new Class();}
