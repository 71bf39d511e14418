#include "comm/calls/call_log.h"

#include <array>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "comm/calls/call_check.h"
#include "comm/membership/log_lines.h"
#include "sched/model/predict.h"

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

void log_call(const Membership& membership, const Call& call, const Stream* stream, std::optional<uint64_t> number) {
  if (call.measuring) return;
  const char* const kind = call.request.peer < 0 ? "operation" : "message";
  const std::string place = number ? numbered(kind, *number) : "nothing to move";
  log_message(LogLevel::kInfo, "%s: communicator %s rank %d of %d %s%s stream %s", function_of(call),
              membership.name().c_str(), membership.rank(), membership.ranks(), place.c_str(),
              arguments_of(call).c_str(), stream == nullptr ? "own" : pointer_text(stream).c_str());
}

void log_first_message(const Membership& membership, const Call& call) {
  const int32_t peer = call.request.peer;
  const Routing& routing = membership.routing();
  log_message(LogLevel::kInfo, "%s: first message %s %s goes over %s, long blocks in segments of %llu bytes",
              membership.own_name().c_str(), call.sending ? "to" : "from", membership.name_of(peer).c_str(),
              routing.carrier(membership.rank(), peer).text().c_str(),
              static_cast<unsigned long long>(routing.segment_bytes(membership.rank(), peer)));
}

void log_schedule(const Membership& membership, const Topology& topology, const PrepareRequest& request,
                  const Schedule& schedule) {
  const bool own_policy = request.options && request.options->schedule;
  const std::string& policy = own_policy ? *request.options->schedule : membership.settings().config.schedule;
  log_message(LogLevel::kInfo, "%s: policy %s, predicted %.1f us", summary_of(request).text.c_str(), policy.c_str(),
              static_cast<double>(predict_ns(schedule, topology, known_block_bytes(request))) / 1000.0);
  log_lines(to_string(schedule, topology));
}

}  // namespace trestle
