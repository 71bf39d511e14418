#include "cli/run/printer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

constexpr size_t kLongestLine = 1 << 20;  // longer ones are cut
constexpr int kMostPieces = 1 << 10;      // a leftover process may write without end

struct Stream {
  UniqueFd from;  // nonblocking; empty: it has ended
  UniqueFd file;  // of the output folder; empty: `to` is standard output or error
  int to = -1;    // -1: what comes is dropped
  std::string prefix;
  std::string line;  // its beginning
};

// The process may be a child of the rank that the launcher knows, which leads its group. One that has ended has none.
int64_t group_of(int64_t blamed) {
  const pid_t group = blamed > 0 ? getpgid(static_cast<pid_t>(blamed)) : -1;
  return group > 0 ? group : blamed;
}

class Printing {
 public:
  Printing(std::vector<Stream> streams, Shared& written, const Blame& blame)
      : streams_(std::move(streams)), written_(written), blame_(blame) {}
  int run();

 private:
  bool pass_on(Stream& stream);
  void drain(Stream& stream);
  void put_line(Stream& stream);
  void put(int to, const std::string& text);
  void give_up(int to, int number);

  std::vector<Stream> streams_;  // the first one has the launcher's sentences
  Shared& written_;
  const Blame& blame_;
  bool lost_ = false;
};

// A line of up to 4 KiB is one write(2): others who write to the same pipe do not tear it.
void Printing::put(int to, const std::string& text) {
  for (size_t at = 0; to >= 0 && at < text.size();) {
    const ssize_t taken = ::write(to, text.data() + at, std::min<size_t>(text.size() - at, PIPE_BUF));
    if (taken >= 0) {
      at += static_cast<size_t>(taken);
      written_ += taken;
    } else if (errno == EAGAIN) {  // whoever started this command reads nonblocking
      pollfd room{to, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return give_up(to, errno);
    }
  }
}

// The ranks continue. A reader that has gone away misses nothing.
void Printing::give_up(int to, int number) {
  for (Stream& stream : streams_) stream.to = stream.to == to ? -1 : stream.to;
  if (number == EPIPE) return;
  lost_ = true;
  const std::string what = to > STDERR_FILENO ? "a file of --output-dir" : "standard output or error";
  put(streams_[0].to,
      "trestle: " + what + " cannot be written (" + std::strerror(number) + "): output of the ranks is lost\n");
}

void Printing::put_line(Stream& stream) {
  const int64_t blamed = &stream == &streams_[0] ? 0 : blamed_in(stream.line);
  if (blamed != 0) blame_.hear(group_of(blamed), monotonic_clock().now_ns());
  put(stream.to, stream.prefix + std::exchange(stream.line, {}) + "\n");
}

// False: nothing has come, or the stream has ended.
bool Printing::pass_on(Stream& stream) {
  std::array<char, 1 << 16> buffer;
  const ssize_t got = ::read(stream.from.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  std::string_view bytes(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    stream.line.append(bytes.substr(0, end));
    if (end < bytes.size() || stream.line.size() >= kLongestLine) put_line(stream);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  if (got > 0) return true;
  stream.from.reset();
  if (!stream.line.empty()) put_line(stream);
  return false;
}

void Printing::drain(Stream& stream) {
  for (int piece = 0; stream.from && piece < kMostPieces && pass_on(stream); ++piece) {
  }
}

int Printing::run() {
  std::vector<pollfd> polled(streams_.size());
  while (streams_[0].from) {
    for (size_t i = 0; i < polled.size(); ++i) polled[i] = {streams_[i].from.get(), POLLIN, 0};  // -1 is ignored
    ::poll(polled.data(), polled.size(), -1);
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) pass_on(streams_[i]);
    }
    if (polled[0].revents == 0) continue;
    for (size_t i = 1; i < polled.size(); ++i) drain(streams_[i]);
    pass_on(streams_[0]);
  }
  for (Stream& stream : streams_) {
    if (!stream.line.empty()) put_line(stream);
  }
  return lost_ ? 1 : 0;
}

// What follows `label` in the text; "": it does not occur.
std::string_view behind(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  return at == std::string_view::npos ? "" : text.substr(at + label.size());
}

int64_t number_of(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Error not_writable(const std::string& path, const std::string& why) {
  return Error{Code::kInvalidArgument, "--output-dir: " + path + " cannot be written: " + why};
}

// "rank.07.out" for up to 100 ranks: sorting by name gives rank order.
Result<UniqueFd> open_file(const std::filesystem::path& folder, int ranks, int rank, const char* ending) {
  const std::string number = std::to_string(rank);
  const std::string zeros(std::to_string(ranks - 1).size() - number.size(), '0');
  const std::string path = folder / ("rank." + zeros + number + ending);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!file) return not_writable(path, std::strerror(errno));
  return file;
}

Result<UniqueFd> add_stream(std::vector<Stream>& streams, UniqueFd file, int to, const std::string& prefix) {
  Pipe pipe = TRY(make_pipe());
  fcntl(pipe.from.get(), F_SETFL, O_NONBLOCK);
  streams.push_back({std::move(pipe.from), std::move(file), to, prefix, ""});
  return std::move(pipe.to);
}

}  // namespace

int64_t blamed_in(std::string_view line) {
  const std::string_view warning = behind(line, " TRESTLE WARN ");
  std::string_view why = behind(warning, " ranks was made: ");
  if (warning.starts_with("communicator failed on rank ")) why = behind(warning, "): ");
  if (!why.starts_with("rank ")) return 0;
  const int64_t rank = number_of(why.substr(5));
  if (rank == number_of(behind(warning, "rank "))) return 0;  // of one communicator, so it is the writer
  const std::string_view name = why.substr(0, std::min(why.find(')'), why.find(';')));
  const int64_t process = number_of(behind(name, ", pid "));
  return process > 0 ? process : rank >= 0 ? -1 - rank : 0;
}

void Blame::hear(int64_t whom, int64_t now_ns) const {
  if (*whom_ != 0 && now_ns - *heard_ns_ <= kBlameNs) return;
  *heard_ns_ = now_ns;
  *whom_ = whom;
}

int64_t Blame::of_failure(int64_t failed_ns) const {
  return failed_ns - *heard_ns_ <= kBlameNs ? whom_->load() : 0;
}

Result<Printer> start_printer(int ranks, bool prefixed, const std::string& folder, Shared& written, const Blame& blame,
                              const UniqueFd& foreign) {
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return not_writable(folder, error.message());
  std::vector<Stream> streams;
  Printer printer;
  printer.sentences = TRY(add_stream(streams, {}, STDERR_FILENO, "trestle: "));
  fcntl(printer.sentences.get(), F_SETPIPE_SZ, 1 << 20);  // the launcher waits if it is full
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string prefix = prefixed ? "[" + std::to_string(rank) + "] " : "";
    auto& [out, err] = printer.ranks.emplace_back();
    for (auto& [end, standard, ending] : {std::tuple(&out, STDOUT_FILENO, ".out"), {&err, STDERR_FILENO, ".err"}}) {
      UniqueFd file = folder.empty() ? UniqueFd() : TRY(open_file(folder, ranks, rank, ending));
      const int to = file ? file.get() : standard;
      *end = file && !prefixed ? std::move(file) : TRY(add_stream(streams, std::move(file), to, prefix));
    }
  }
  printer.pid = TRY(start_process(
      [&] {
        printer.sentences.reset();
        printer.ranks.clear();
        close(foreign.get());
        return Printing(std::move(streams), written, blame).run();
      },
      SIGKILL));
  return printer;
}

}  // namespace trestle
