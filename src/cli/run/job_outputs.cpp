#include "cli/run/job_outputs.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace trestle {
namespace {

constexpr std::array<const char*, 2> kEndings = {".out", ".err"};

Error not_writable(const std::string& path, const std::string& why) {
  return Error{Code::kInvalidArgument, "--output-dir: " + path + " cannot be written: " + why};
}

struct Pipe {
  UniqueFd from;  // nonblocking
  UniqueFd to;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kSystemError, std::string("pipe2: ") + std::strerror(errno)};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// "rank.07" for up to 100 ranks: sorting by name gives rank order.
std::string file_name(int rank, int ranks) {
  const std::string number = std::to_string(rank);
  const size_t width = std::to_string(ranks - 1).size();
  return "rank." + std::string(width - number.size(), '0') + number;
}

}  // namespace

Outlet& JobOutputs::add_outlet(Outlet outlet) {
  outlets_.push_back(std::make_unique<Outlet>(std::move(outlet)));
  return *outlets_.back();
}

Result<JobOutputs> JobOutputs::open(const RunOptions& options) {
  JobOutputs outputs;
  outputs.prefixed_ =
      options.prefix == Prefix::kAlways || (options.prefix == Prefix::kAuto && options.output_folder.empty());
  Outlet& out = outputs.add_outlet(Outlet(STDOUT_FILENO));
  Outlet error(STDERR_FILENO);
  outputs.standard_ = {&out, error.same_place(out) ? &out : &outputs.add_outlet(std::move(error))};
  if (!options.output_folder.empty()) TRY(outputs.open_files(options));
  return outputs;
}

Status JobOutputs::open_files(const RunOptions& options) {
  const std::filesystem::path folder = options.output_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return not_writable(folder, error.message());
  const int ranks = options.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    Files files;
    for (size_t stream = 0; stream < files.size(); ++stream) {
      const std::string path = folder / (file_name(rank, ranks) + kEndings[stream]);
      files[stream].reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
      if (!files[stream]) return not_writable(path, std::strerror(errno));
    }
    files_.push_back(std::move(files));
  }
  return {};
}

Result<RankOutput> JobOutputs::take_rank(int rank) {
  RankOutput output;
  const bool files = !files_.empty();
  const auto at = static_cast<size_t>(rank);
  if (files && !prefixed_) {
    output.for_rank = std::move(files_[at]);
    return output;
  }
  const std::string prefix = prefixed_ ? "[" + std::to_string(rank) + "] " : "";
  for (size_t stream = 0; stream < output.for_rank.size(); ++stream) {
    Outlet& to = files ? add_outlet(Outlet(std::move(files_[at][stream]))) : *standard_[stream];
    Pipe pipe = TRY(make_pipe());
    output.for_rank[stream] = std::move(pipe.to);
    output.streams.emplace_back(std::move(pipe.from), LinePrefix(to, prefix));
  }
  return output;
}

void JobOutputs::say(const std::string& sentence) {
  standard_[1]->add("trestle: " + sentence + "\n");
}

void JobOutputs::add_to(std::vector<pollfd>& fds) const {
  for (const auto& outlet : outlets_) {
    if (outlet->pending()) fds.push_back({outlet->fd(), POLLOUT, 0});
  }
}

bool JobOutputs::write_some() {
  bool taken = false;
  for (const auto& outlet : outlets_) taken = outlet->write_some() || taken;
  return taken;
}

void JobOutputs::give_up() {
  const bool heard = !standard_[1]->pending();
  for (const auto& outlet : outlets_) outlet->drop();
  if (!heard) return;
  say("standard output is not read: the last output of the ranks is lost");
}

bool JobOutputs::pending() const {
  for (const auto& outlet : outlets_) {
    if (outlet->pending()) return true;
  }
  return false;
}

std::string JobOutputs::failure() const {
  for (const auto& outlet : outlets_) {
    if (outlet->failure() == 0) continue;
    const bool own = outlet->fd() == STDOUT_FILENO || outlet->fd() == STDERR_FILENO;
    return std::string(own ? "standard output or error" : "a file of --output-dir") + " cannot be written (" +
           std::strerror(outlet->failure()) + "): output of the ranks is lost";
  }
  return "";
}

}  // namespace trestle
