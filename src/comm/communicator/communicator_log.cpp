// What a communicator logs at INFO. Called only where the subsystem is on; nothing here is hot.
#include <array>
#include <cstdio>

#include "base/log.h"
#include "comm/calls/call_check.h"
#include "comm/communicator/communicator.h"
#include "comm/membership/log_lines.h"
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

}  // namespace

void Communicator::say_schedule(const PrepareRequest& request, const Schedule& schedule) const {
  const CallSummary what = summary_of(request);
  const bool own_policy = request.options && request.options->schedule;
  log_message(LogLevel::kInfo, "%s: policy %s, predicted %.1f us", what.text.c_str(),
              (own_policy ? *request.options->schedule : membership_.settings().config.schedule).c_str(),
              static_cast<double>(predict_ns(schedule, membership_.topology(), known_block_bytes(request))) / 1000.0);
  log_lines(to_string(schedule, membership_.topology()));
}

// The user's first send to a peer, and first receive from it.
void Communicator::say_first_message(const Call& call) {
  const int32_t peer = call.request.peer;
  if (call.measuring || !told_pairs_.insert({peer, call.sending}).second) return;
  log_message(LogLevel::kInfo, "%s: first message %s %s goes over %s, long blocks in segments of %llu bytes",
              membership_.own_name().c_str(), call.sending ? "to" : "from", membership_.name_of(peer).c_str(),
              membership_.routing().rail(membership_.rank(), peer).text().c_str(),
              static_cast<unsigned long long>(membership_.routing().segment_bytes(membership_.rank(), peer)));
}

void Communicator::say_call(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead) {
  if (call.measuring) return;
  const int32_t peer = call.request.peer;
  const uint64_t next = peer < 0 ? next_number_ : (call.sending ? sent_ : received_)[static_cast<size_t>(peer)];
  const uint64_t number = ahead.value_or(next);
  const std::string place =
      numbered ? (peer < 0 ? "operation " : "message ") + std::to_string(number) : "nothing to move";
  log_message(LogLevel::kInfo, "%s: communicator %s rank %d of %d %s%s stream %s", function_of(call),
              membership_.name().c_str(), membership_.rank(), membership_.ranks(), place.c_str(),
              arguments_of(call).c_str(), &stream == own_stream_.get() ? "own" : pointer_text(&stream).c_str());
}

}  // namespace trestle
