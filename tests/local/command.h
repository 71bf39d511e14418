// Command: the trestle command in a child process, for tests. One thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

class Command {
 public:
  // Runs in the child just before the command, with its output connected. May be empty.
  using Preparation = std::function<void()>;
  // This object reads its standard output and error. The command is killed with the test.
  explicit Command(std::vector<std::string> arguments, const Preparation& prepare = {});
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Waits until the output contains `text` so many times. False: the command has ended before.
  bool wait_for(const std::string& text, int times = 1);
  // Reads to the end and waits for the command. Returns the exit code, or minus the signal.
  int finish();
  // Waits without reading.
  int wait();
  void stop_reading();  // its output is not read any more
  void signal(int number) const;
  pid_t pid() const { return pid_; }
  int output_fd() const { return out_; }
  const std::string& output() const { return output_; }
  std::vector<std::string> lines() const;
  int count(const std::string& text) const;  // how many times the output contains it

 private:
  bool read_some();
  pid_t pid_ = -1;
  int out_ = -1;
  std::string output_;
};
