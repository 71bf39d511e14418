// LinePrefix: passes on what a rank writes, line by line, each with the rank's prefix in front.
//
// One per rank and stream (standard output, standard error), one thread. A line without an end is completed when the
// stream ends. Lines beyond 1 MiB are cut there.
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
