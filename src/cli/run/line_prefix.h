// LinePrefix: passes on the lines that a rank writes, each with the rank's prefix in front.
//
// One per rank and stream (standard output, standard error), one thread. An unfinished line is completed when the
// stream ends. Lines are cut at 1 MiB.
#pragma once

#include <string>
#include <string_view>

#include "cli/run/outlet.h"

namespace trestle {

class LinePrefix {
 public:
  // `to` outlives this.
  LinePrefix(Outlet& to, std::string prefix) : to_(&to), prefix_(std::move(prefix)) {}
  void add(std::string_view bytes);
  void end();
  const Outlet& outlet() const { return *to_; }

 private:
  void put(std::string_view line);
  Outlet* to_;
  std::string prefix_;
  std::string partial_;
};

}  // namespace trestle
