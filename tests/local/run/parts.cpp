#include "local/run/parts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace parts {
namespace {

constexpr const char* kPart = "--rank-part=";

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "(not set)" : value;
}

int rank() {
  return std::stoi(variable("RANK"));
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(97);
}

void say_pid() {
  say("pid " + std::to_string(getpid()));
}

[[noreturn]] void wait_forever() {
  while (true) pause();
}

// ---- Ends. "ends" MODE...: rank i behaves as the i-th mode says; the last mode also holds for the ranks after it.

void tell_signal(int number) {
  say(std::string("heard SIG") + sigabbrev_np(number));
  if (number != SIGUSR1 && number != SIGUSR2 && number != SIGCONT) _exit(0);
}

// Writes the process id into the folder, which shows that this rank is ready.
void write_pid(const std::string& folder) {
  const std::string path = folder + "/" + variable("RANK");
  std::ofstream(path + ".new") << getpid() << std::endl;
  rename((path + ".new").c_str(), path.c_str());
}

pid_t wait_for_ready(const std::string& folder, int other) {
  while (true) {
    std::ifstream file(folder + "/" + std::to_string(other));
    pid_t pid = 0;
    if (file >> pid) return pid;
    sched_yield();
  }
}

// Exits with code 7 when rank 1 is in state T ("1T:7"), or when all others are ready ("7").
int code_after(const std::string& mode, const std::string& folder) {
  const size_t colon = mode.find(':');
  if (colon == std::string::npos) {
    for (int other = 0; other < std::stoi(variable("WORLD_SIZE")); ++other) wait_for_ready(folder, other);
    return std::stoi(mode);
  }
  const pid_t pid = wait_for_ready(folder, std::stoi(mode));
  while (state_of(pid) != mode[colon - 1]) sched_yield();
  return std::stoi(mode.substr(colon + 1));
}

int end_as(const std::string& mode, const std::string& folder) {
  say_pid();
  const bool listens = mode == "handle" || mode == "deaf";
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT}) {
    if (listens) ::signal(number, mode == "handle" ? tell_signal : SIG_IGN);
  }
  write_pid(folder);
  say("ready");
  if (mode == "well") return 0;
  if (mode == "wait" || listens) wait_forever();
  if (mode == "freeze") raise(SIGSTOP);
  if (mode.starts_with("after ")) return code_after(mode.substr(6), folder);
  return 99;
}

int ends(int argc, char** argv) {
  const std::string folder = argv[2];
  const int mine = std::min(3 + rank(), argc - 1);
  return end_as(argv[mine], folder);
}

// ---- Notice: rank 0 dies when all others listen. They see it by the end of a pipe and report it.

int notice(const std::string& fifo) {
  if (rank() == 0) {
    const int to = open(fifo.c_str(), O_WRONLY);
    std::string heard;
    for (int other = 1; other < std::stoi(variable("WORLD_SIZE")); ++other) {
      const int from = open((fifo + std::to_string(other)).c_str(), O_RDONLY);
      char byte = 0;
      if (read(from, &byte, 1) != 1) return 96;
    }
    return to < 0 ? 96 : raise(SIGKILL);
  }
  const int from = open(fifo.c_str(), O_RDONLY);
  const int to = open((fifo + std::to_string(rank())).c_str(), O_WRONLY);
  if (write(to, "r", 1) != 1) return 96;
  char byte = 0;
  while (read(from, &byte, 1) > 0) {
  }
  say("the sentence of rank " + std::to_string(rank()));
  return 1;
}

// ---- Families: a rank and a child in its process group. With "apart" also a child with a session of its own.

int family(const std::string& mode, bool apart) {
  int ready[2];
  if (pipe(ready) != 0) return 96;
  if (fork() == 0) {
    if (mode == "deaf") ::signal(SIGTERM, SIG_IGN);
    if (apart && (setsid() < 0 || fork() < 0)) _exit(96);
    const pid_t pid = getpid();
    if (write(ready[1], &pid, sizeof pid) != sizeof pid) _exit(96);
    wait_forever();
  }
  say_pid();
  for (int i = 0; i < (apart ? 2 : 1); ++i) {
    pid_t child = 0;
    if (read(ready[0], &child, sizeof child) != sizeof child) return 96;
    say("child " + std::to_string(child));
  }
  if (mode == "killed") raise(SIGKILL);
  if (mode == "failed") return 5;
  if (mode == "well") return 0;
  wait_forever();
}

// ---- Output

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(fd, text.data() + at, text.size() - at);
    if (written < 0) _exit(97);
    at += static_cast<size_t>(written);
  }
}

int streams() {
  write_all(STDOUT_FILENO, "out " + std::to_string(rank()) + "\nno end");
  write_all(STDERR_FILENO, "err " + std::to_string(rank()) + "\n");
  return 0;
}

// Prints lines of so many equal letters, in pieces, alternately on both streams.
int pieces(int lines, size_t length) {
  const auto letter = static_cast<char>('a' + rank());
  for (int line = 0; line < lines; ++line) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      write_all(fd, std::string(length / 2, letter));
      write_all(fd, std::string(length - length / 2, letter));
      write_all(fd, "\n");
    }
  }
  return 0;
}

int flood() {
  while (true) write_all(STDOUT_FILENO, std::string(1000, 'x') + "\n");
}

int copy_input() {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
    say("got " + std::string(buffer, static_cast<size_t>(got) - (buffer[got - 1] == '\n' ? 1 : 0)));
  }
  say(got == 0 ? "end of input" : "no input");
  return 0;
}

int last_words() {
  write_all(STDOUT_FILENO, std::string(60'000, 'w') + "\nlast word\n");
  return raise(SIGKILL);
}

// ---- The environment of a rank

int print_variables(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) say(std::string(argv[i]) + "=" + variable(argv[i]));
  return 0;
}

int print_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 96;
  std::string text = "processors";
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) text += " " + std::to_string(cpu);
  }
  say(text + " .");
  return 0;
}

}  // namespace

std::vector<std::string> program(const std::string& part, const std::vector<std::string>& more) {
  std::vector<std::string> words = {testing::internal::GetArgvs()[0], kPart + part};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> run(int ranks, const std::string& part, const std::vector<std::string>& options,
                             const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  const std::vector<std::string> words = program(part, more);
  arguments.insert(arguments.end(), words.begin(), words.end());
  return arguments;
}

std::vector<std::string> values(const Command& command, const std::string& label) {
  std::vector<std::string> found;
  for (const std::string& line : command.lines()) {
    if (line.starts_with(label))
      found.push_back(line.substr(label.size(), line.find(' ', label.size()) - label.size()));
  }
  return found;
}

pid_t pid_of(const Command& command, int rank) {
  const auto pids = values(command, "[" + std::to_string(rank) + "] pid ");
  EXPECT_EQ(pids.size(), 1u) << command.output();
  return pids.empty() ? -1 : std::stoi(pids.front());
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);  // unlike an iterator, it does not throw if the process ends meanwhile
  const size_t end = text.rfind(") ");
  return end == std::string::npos || end + 2 >= text.size() ? '\0' : text[end + 2];
}

bool is_part(int argc, char** argv) {
  return argc > 1 && std::strncmp(argv[1], kPart, std::strlen(kPart)) == 0;
}

int main_of_part(int argc, char** argv) {
  const std::string part = argv[1] + std::strlen(kPart);
  const auto argument = [&](int at) { return std::string(at < argc ? argv[at] : ""); };
  if (part == "ends") return ends(argc, argv);
  if (part == "notice") return notice(argument(2));
  if (part == "family") return family(argument(2), argument(3) == "apart");
  if (part == "streams") return streams();
  if (part == "pieces") return pieces(std::stoi(argument(2)), std::stoul(argument(3)));
  if (part == "flood") return flood();
  if (part == "input") return copy_input();
  if (part == "words") return last_words();
  if (part == "variables") return print_variables(argc, argv);
  if (part == "processors") return print_processors();
  for (int i = 2; part == "arguments" && i < argc; ++i) say("<" + argument(i) + ">");
  if (part == "arguments") return 0;
  return 99;
}

}  // namespace parts
