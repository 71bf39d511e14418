#include "local/command.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

Command::Command(std::vector<std::string> arguments, const Preparation& prepare) {
  arguments.insert(arguments.begin(), TRESTLE_COMMAND);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (prepare) prepare();
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(98);
  }
  close(ends[1]);
  out_ = ends[0];
}

Command::~Command() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  stop_reading();
}

bool Command::wait_for(const std::string& text, int times) {
  while (count(text) < times) {
    if (!read_some()) return false;
  }
  return true;
}

int Command::finish() {
  while (read_some()) {
  }
  return wait();
}

int Command::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void Command::stop_reading() {
  if (out_ >= 0) close(out_);
  out_ = -1;
}

void Command::signal(int number) const {
  kill(pid_, number);
}

std::vector<std::string> Command::lines() const {
  std::vector<std::string> lines;
  for (size_t at = 0; at < output_.size();) {
    const size_t end = std::min(output_.find('\n', at), output_.size());
    lines.push_back(output_.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool Command::read_some() {
  char buffer[4096];
  const ssize_t got = read(out_, buffer, sizeof buffer);
  if (got > 0) output_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

int Command::count(const std::string& text) const {
  int found = 0;
  for (size_t at = output_.find(text); at != std::string::npos; at = output_.find(text, at + 1)) ++found;
  return found;
}
