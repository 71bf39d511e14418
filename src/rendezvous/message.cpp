#include "rendezvous/message.h"

#include <algorithm>
#include <span>

#include "base/text/byte_text.h"
#include "rendezvous/host_rails.h"

namespace trestle {
namespace {

constexpr size_t kMaxName = 512;
constexpr size_t kMaxNetwork = 128;
constexpr size_t kMaxReasons = 2048;
constexpr size_t kMaxToldSentence = 16 * 1024;

Error unreadable(const char* who) {
  return Error{Code::kRemoteError, std::string(who) + " sent a message that cannot be read"};
}

// Cut to the length that a reader accepts: a longer sentence would make the whole message unreadable.
std::string sentence(const Error& error) {
  return error.message.substr(0, kMaxToldSentence);
}

}  // namespace

std::string encode(const JoinRequest& request) {
  ByteWriter out;
  out.integer(request.version).integer(request.nranks).integer(request.rank).integer(request.time_left_ns);
  out.text(request.address).text(request.name).integer(static_cast<uint32_t>(request.lineage.size()));
  for (const uint64_t process : request.lineage) out.integer(process);
  return out.text(request.network).text(request.only_here.substr(0, kMaxReasons)).take();
}

Result<JoinRequest> decode_join_request(std::string_view bytes) {
  ByteReader in(bytes);
  JoinRequest request;
  request.version = in.integer<uint32_t>();
  request.nranks = in.integer<int32_t>();
  request.rank = in.integer<int32_t>();
  request.time_left_ns = in.integer<int64_t>();
  request.address = in.text(kMostMeetingText);
  request.name = in.text(kMaxName);
  for (uint32_t left = in.count(8); left > 0 && in.ok(); --left) request.lineage.push_back(in.integer<uint64_t>());
  request.network = in.text(kMaxNetwork);
  request.only_here = in.text(kMaxReasons);
  if (!in.at_end() || request.time_left_ns < 0) return unreadable("a rank");
  return request;
}

std::string encode(const JoinAnswer& answer) {
  ByteWriter out;
  out.integer(static_cast<int32_t>(answer.error.code)).text(sentence(answer.error));
  out.integer(static_cast<uint32_t>(answer.addresses.size()));
  for (const std::string& address : answer.addresses) out.text(address);
  out.integer(static_cast<uint32_t>(answer.names.size()));
  for (const std::string& name : answer.names) out.text(name);
  out.integer(answer.time_left_ns).text(answer.holder).text(answer.progress.substr(0, kMaxName));
  return out.raw({reinterpret_cast<const char*>(answer.job.data()), answer.job.size()}).take();
}

Result<JoinAnswer> decode_join_answer(std::string_view bytes) {
  ByteReader in(bytes);
  JoinAnswer answer;
  const auto code = in.integer<int32_t>();
  answer.error.message = in.text(kMaxToldSentence);
  for (uint32_t left = in.count(4); left > 0 && in.ok(); --left)
    answer.addresses.emplace_back(in.text(kMostMeetingText));
  for (uint32_t left = in.count(4); left > 0 && in.ok(); --left) answer.names.emplace_back(in.text(kMaxName));
  answer.time_left_ns = in.integer<int64_t>();
  answer.holder = in.text(kMaxName);
  answer.progress = in.text(kMaxName);
  std::ranges::copy(std::as_bytes(std::span(in.raw(answer.job.size()))), answer.job.begin());
  if (!in.at_end() || answer.time_left_ns < 0 || code < 0 || code > static_cast<int>(kLastCode))
    return unreadable("the rendezvous");
  answer.error.code = static_cast<Code>(code);
  return answer;
}

std::string encode(const JoinReport& report) {
  return ByteWriter().integer(static_cast<int32_t>(report.error.code)).text(sentence(report.error)).take();
}

Result<JoinReport> decode_join_report(std::string_view bytes) {
  ByteReader in(bytes);
  JoinReport report;
  const auto code = in.integer<int32_t>();
  report.error.message = in.text(kMaxToldSentence);
  if (!in.at_end() || code < 0 || code > static_cast<int>(kLastCode)) return unreadable("a rank");
  report.error.code = static_cast<Code>(code);
  return report;
}

std::string framed(const std::string& message) {
  return ByteWriter().text(message).take();
}

std::string rank_list(const std::vector<int32_t>& ranks) {
  constexpr size_t kMost = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = ranks.size() <= kMost ? ranks.size() : kMost;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (shown < ranks.size()) text += " and " + std::to_string(ranks.size() - shown) + " more";
  return text;
}

}  // namespace trestle
