// LinePrefix: passes on what a child writes, line by line, each with the child's rank in front.
//
// One per child and stream (standard output, standard error), one thread. A line is one write(2), so lines of several
// ranks never mix; a line without an end is completed when the stream ends. Lines beyond 1 MiB are cut there.
#pragma once

#include <string>
#include <string_view>

namespace trestle {

class LinePrefix {
 public:
  LinePrefix(int to_fd, std::string prefix) : to_fd_(to_fd), prefix_(std::move(prefix)) {}
  void add(std::string_view bytes);
  void end();

 private:
  void put(std::string_view line);
  const int to_fd_;
  const std::string prefix_;
  std::string partial_;
};

}  // namespace trestle
