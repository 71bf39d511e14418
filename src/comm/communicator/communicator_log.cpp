// What a communicator logs at INFO. Called only where the subsystem is on; nothing here is hot.
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/log.h"
#include "comm/calls/call_check.h"
#include "comm/communicator/communicator.h"
#include "sched/select/select.h"

namespace trestle {

namespace {

const char* function_of(const Call& call) {
  const CollectiveRow& row = row_of(call.request.collective);
  const bool receives = row.point_to_point && !call.sending;
  return call.request.half || receives ? row.other_function : row.function;
}

std::string pointer_text(const void* pointer) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%p", pointer);
  return text.data();
}

// " count 1024 type float op sum root 0 send 0x7f.. recv 0x7f..", with the arguments that the call has.
std::string arguments_of(const Call& call) {
  const PrepareRequest& request = call.request;
  if (!moves_data(request.collective)) return "";
  std::string text = " count " + std::to_string(request.count) + " type " + to_string(request.type);
  if (reduces(request.collective)) text += std::string(" op ") + to_string(request.op);
  if (has_root(request.collective)) text += " root " + std::to_string(request.root);
  if (request.peer >= 0) text += " peer " + std::to_string(request.peer);
  if (request.peer < 0 || call.sending) text += " send " + pointer_text(call.send);
  if (request.peer < 0 || !call.sending) text += " recv " + pointer_text(call.recv);
  if (request.options) text += " with " + request.options.text();
  return text;
}

// One message per line of the text.
void log_lines(const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    log_message(LogLevel::kInfo, "%s", text.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
}

// "0 1 2 3", or "0 1 .. 255" for many ranks.
std::string ranks_text(const std::vector<int32_t>& ranks) {
  constexpr size_t kMostShown = 16;
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == kMostShown && ranks.size() > kMostShown + 1) return text + " .. " + std::to_string(ranks.back());
    text += (i == 0 ? "" : " ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

// Rank 0 logs the dimensions and the reason for them. At GRAPH every rank logs its place in them, and the costs that
// selection uses.
void Communicator::say_topology() {
  const bool graph = log_enabled(LogLevel::kInfo, Subsystem::kGraph);
  if (rank_ == 0 && (graph || log_enabled(LogLevel::kInfo, Subsystem::kInit))) log_lines(to_text(topology_));
  if (!graph) return;
  for (uint8_t d = 0; ranks_ > 1 && d < topology_.dimensions.size(); ++d) {
    const RailCost cost = rail_cost(topology_, d);
    log_message(LogLevel::kInfo,
                "%s: dimension %d: place %d among ranks %s; selection reckons with %llu ns per step and %llu Mb/s",
                names_[rank_].c_str(), d + 1, topology_.coordinate(rank_, d),
                ranks_text(topology_.group(rank_, d)).c_str(), static_cast<unsigned long long>(cost.latency_ns),
                static_cast<unsigned long long>(cost.bandwidth_mbps));
  }
  const bool board = engine_->express() != nullptr;
  log_message(LogLevel::kInfo, "%s: %s", names_[rank_].c_str(),
              board ? "small collectives go over a board of memory that all ranks share"
                    : "small collectives go as all others: there is no board of memory that all ranks share");
}

void Communicator::say_schedule(const PrepareRequest& request, const Schedule& schedule) const {
  const CallSummary what = summary_of(request);
  const bool own_policy = request.options && request.options->schedule;
  log_message(LogLevel::kInfo, "%s: policy %s, predicted %.1f us", what.text.c_str(),
              (own_policy ? *request.options->schedule : settings_.config.schedule).c_str(),
              static_cast<double>(predict_ns(schedule, topology_, known_block_bytes(request))) / 1000.0);
  log_lines(to_string(schedule, topology_));
}

// The user's first send to a peer, and first receive from it.
void Communicator::say_first_message(const Call& call) {
  const int32_t peer = call.request.peer;
  if (call.measuring || !told_pairs_.insert({peer, call.sending}).second) return;
  log_message(LogLevel::kInfo, "%s: first message %s %s goes over %s, long blocks in segments of %llu bytes",
              names_[rank_].c_str(), call.sending ? "to" : "from", names_[peer].c_str(),
              routing_.rail(rank_, peer).text().c_str(),
              static_cast<unsigned long long>(routing_.segment_bytes(rank_, peer)));
}

void Communicator::say_call(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead) {
  if (call.measuring) return;
  const int32_t peer = call.request.peer;
  const uint64_t next = peer < 0 ? next_number_ : (call.sending ? sent_ : received_)[static_cast<size_t>(peer)];
  const uint64_t number = ahead.value_or(next);
  const std::string place =
      numbered ? (peer < 0 ? "operation " : "message ") + std::to_string(number) : "nothing to move";
  log_message(LogLevel::kInfo, "%s: communicator %s rank %d of %d %s%s stream %s", function_of(call), name_.c_str(),
              rank_, ranks_, place.c_str(), arguments_of(call).c_str(),
              &stream == own_stream_.get() ? "own" : pointer_text(&stream).c_str());
}

}  // namespace trestle
