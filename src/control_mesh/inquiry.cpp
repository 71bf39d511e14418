#include "control_mesh/inquiry.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/rank_names.h"
#include "base/text/byte_text.h"
#include "control_mesh/letter_kind.h"
#include "transport/transport.h"

namespace trestle {

namespace {

constexpr int64_t kLeastAnswerNs = 200 * kMs;
constexpr int64_t kMostAnswerNs = 2 * kSecond;
constexpr size_t kNamedLinks = 3;  // of a long chain: the first links are named, then the last

void put(ByteWriter& out, const OperationKey& key) {
  out.integer(key.number).integer(key.peer).integer(static_cast<uint8_t>(key.sending));
  out.integer(static_cast<uint8_t>(key.kind));
}

OperationKey take_key(ByteReader& in) {
  OperationKey key;
  key.number = in.integer<uint64_t>();
  key.peer = in.integer<int32_t>();
  key.sending = in.integer<uint8_t>() != 0;
  key.kind = static_cast<CallKind>(in.integer<uint8_t>());
  return key;
}

void put(ByteWriter& out, const std::optional<OtherCommRank>& other_comm) {
  out.integer(static_cast<uint8_t>(other_comm.has_value()));
  const OtherCommRank place = other_comm.value_or(OtherCommRank{});
  out.raw(std::string_view(reinterpret_cast<const char*>(place.communicator.data()), place.communicator.size()));
  out.integer(place.rank);
}

std::optional<OtherCommRank> take_other_comm(ByteReader& in) {
  const bool is_there = in.integer<uint8_t>() != 0;
  OtherCommRank place;
  const std::string_view job = in.raw(place.communicator.size());
  if (job.size() == place.communicator.size()) std::memcpy(place.communicator.data(), job.data(), job.size());
  place.rank = in.integer<int32_t>();
  return is_there ? std::optional(place) : std::nullopt;
}

bool is_sane(const OperationKey& key, int32_t ranks) {
  return key.peer >= -1 && key.peer < ranks && key.kind <= CallKind::kCreation;
}

std::string rank_text(int32_t rank) {
  return "rank " + std::to_string(rank);
}

std::string held_by_device(int32_t device) {
  return ", but its CUDA stream on device " + std::to_string(device) +
         " has not come to it: kernels, copies or waits before it there have not ended";
}

// "operation 5", "message 2 to rank 1", "CommSplit"
std::string text_of(const OperationKey& key) {
  if (key.kind == CallKind::kSplit) return "CommSplit";
  if (key.kind == CallKind::kFinalize) return "CommFinalize";
  if (key.kind == CallKind::kCreation) return "the creation of the communicator";
  if (key.peer < 0) return numbered("operation", key.number);
  return numbered("message", key.number) + (key.sending ? " to rank " : " from rank ") + std::to_string(key.peer);
}

}  // namespace

std::string encode(const Question& question) {
  ByteWriter out;
  out.integer(static_cast<uint8_t>(LetterKind::kQuestion)).integer(question.id).integer(question.whose);
  put(out, question.operation);
  put(out, question.other_comm);
  return out.take();
}

std::string encode(const Answer& answer) {
  ByteWriter out;
  out.integer(static_cast<uint8_t>(LetterKind::kAnswer)).integer(answer.id).integer(static_cast<uint8_t>(answer.state));
  out.integer(answer.calls).integer(static_cast<uint8_t>(answer.in.has_value()));
  put(out, answer.in.value_or(OperationKey{}));
  out.integer(answer.awaited).text(std::string_view(answer.description).substr(0, kMostDescription));
  out.text(std::string_view(answer.awaited_name).substr(0, kMostDescription));
  put(out, answer.other_comm);
  out.integer(answer.device).text(std::string_view(answer.failure).substr(0, kMostDescription));
  return out.take();
}

bool is_of_inquiry(const std::string& letter) {
  if (letter.empty()) return false;
  const auto kind = static_cast<LetterKind>(letter[0]);
  return kind == LetterKind::kQuestion || kind == LetterKind::kAnswer;
}

std::optional<Question> decode_question(const std::string& letter, int32_t ranks) {
  ByteReader in(letter);
  if (in.integer<LetterKind>() != LetterKind::kQuestion) return {};
  Question question;
  question.id = in.integer<uint32_t>();
  question.whose = in.integer<int32_t>();
  question.operation = take_key(in);
  question.other_comm = take_other_comm(in);
  if (question.other_comm) ranks = kMostRanks;
  const bool sane = in.at_end() && question.whose >= 0 && question.whose < ranks && is_sane(question.operation, ranks);
  return sane ? std::optional(question) : std::nullopt;
}

std::optional<Answer> decode_answer(const std::string& letter, int32_t ranks) {
  ByteReader in(letter);
  if (in.integer<LetterKind>() != LetterKind::kAnswer) return {};
  Answer answer;
  answer.id = in.integer<uint32_t>();
  const auto state = in.integer<uint8_t>();
  answer.calls = in.integer<uint64_t>();
  const bool busy = in.integer<uint8_t>() != 0;
  const OperationKey key = take_key(in);
  answer.awaited = in.integer<int32_t>();
  answer.description = in.text(kMostDescription);
  answer.awaited_name = in.text(kMostDescription);
  answer.other_comm = take_other_comm(in);
  answer.device = in.integer<int32_t>();
  answer.failure = in.text(kMostDescription);
  if (answer.other_comm) ranks = kMostRanks;
  if (!in.at_end() || state > static_cast<uint8_t>(Answer::State::kDone)) return {};
  if (answer.device < -1 || answer.awaited < -1 || answer.awaited >= ranks || !is_sane(key, ranks)) return {};
  answer.state = static_cast<Answer::State>(state);
  if (busy) answer.in = key;
  return answer;
}

Inquiry::Letter Inquiry::ask(const Asked& one, int32_t whose, int64_t now_ns) {
  asked_.push_back(one);
  asked_name_ = names_[static_cast<size_t>(one.rank)];
  asked_for_ = whose;
  asked_ns_ = now_ns;
  answer_due_ns_ = std::min(now_ns + answer_timeout_ns_, end_ns_);
  return {one.rank, {++id_, one.operation, whose, one.other_comm}};
}

// A chain may contain a rank twice, for different calls. That is no circle.
bool Inquiry::is_closed_by(const Answer& answer) const {
  if (answer.awaited == rank_ && *answer.in == overdue_->operation) return true;
  return was_asked({answer.awaited, {}, *answer.in});
}

bool Inquiry::was_asked(const Asked& one) const {
  return std::find(asked_.begin(), asked_.end(), one) != asked_.end();
}

Inquiry::Letter Inquiry::begin(const Overdue& overdue, int64_t now_ns) {
  const MutexLock lock(mutex_);
  return start(overdue, now_ns);
}

std::optional<Inquiry::Letter> Inquiry::begin_if_none(const Overdue& overdue, int64_t now_ns) {
  const MutexLock lock(mutex_);
  if (overdue_ && (overdue_->waited_s == 0 || overdue.waited_s != 0)) return {};
  return start(overdue, now_ns);
}

Inquiry::Letter Inquiry::start(const Overdue& overdue, int64_t now_ns) {
  overdue_ = overdue;
  concluded_ = false;
  asked_.clear();
  circle_.clear();
  culprit_.clear();
  answer_timeout_ns_ = std::clamp(overdue.timeout_ns / 2, kLeastAnswerNs, kMostAnswerNs);
  // A rank that has no mesh yet cannot answer. It knows which rank it waits for, and reports that soon.
  if (overdue.operation.kind == CallKind::kCreation || overdue.waited_s != 0) answer_timeout_ns_ = kMostAnswerNs;
  end_ns_ = now_ns + 2 * answer_timeout_ns_;
  return ask({overdue.awaited, {}, overdue.operation}, rank_, now_ns);
}

std::optional<Inquiry::Letter> Inquiry::answered(int32_t from, const Answer& answer, int64_t now_ns) {
  const MutexLock lock(mutex_);
  if (!overdue_ || concluded_ || answer.id != id_ || from != asked_.back().rank) return {};
  if (answer.other_comm) return ask_in_other_comm(answer, now_ns);
  if (answer.awaited >= 0 && !answer.awaited_name.empty()) {
    const auto rank = static_cast<size_t>(answer.awaited);
    if (names_[rank] == rank_text(answer.awaited)) names_ = names_.with(rank, answer.awaited_name);
  }
  // A rank that is in a call of its own and awaits another rank is not the end of the chain, unless it closes a circle.
  const bool awaits = answer.in && answer.awaited >= 0 && answer.awaited != from;
  if (awaits && !is_closed_by(answer)) return ask({answer.awaited, {}, *answer.in}, from, now_ns);
  if (awaits && circle_.empty()) {
    circle_ = circle(answer.awaited) + ": " + end_of_chain(answer);
    circle_end_ = asked_.size();
  }
  const bool has_called = answer.state == Answer::State::kActive || answer.state == Answer::State::kDone;
  if (!circle_.empty() && (awaits || has_called)) return ask_another(now_ns);
  conclude(end_of_chain(answer));
  return {};
}

// A rank that awaits several others names only one of them. So a circle in a collective may not be the reason. The
// reason may be a rank that has not called, or does not answer.
std::optional<Inquiry::Letter> Inquiry::ask_another(int64_t now_ns) {
  std::vector<bool> was_asked_at_all(names_.size());
  for (const Asked& one : asked_) was_asked_at_all[static_cast<size_t>(one.rank)] = true;
  const bool collective = overdue_->operation.peer < 0 && overdue_->operation.kind == CallKind::kOperation;
  for (int32_t r = 0; collective && r < static_cast<int32_t>(names_.size()); ++r) {
    if (r != rank_ && !was_asked_at_all[static_cast<size_t>(r)])
      return ask({r, {}, overdue_->operation}, rank_, now_ns);
  }
  conclude(circle_);
  return {};
}

// The answer has the rank numbers of the other communicator. So the awaited rank is found here by its process.
std::optional<Inquiry::Letter> Inquiry::ask_in_other_comm(const Answer& answer, int64_t now_ns) {
  const int32_t to = answer.in && answer.awaited >= 0 ? rank_of_process(answer.awaited_name) : -1;
  const Asked next{to, OtherCommRank{answer.other_comm->communicator, answer.awaited},
                   answer.in.value_or(OperationKey{})};
  if (to >= 0 && !was_asked(next)) {
    const Letter letter = ask(next, answer.other_comm->rank, now_ns);
    const auto lives_there = [&](const auto& name) { return process_of(name) == process_of(answer.awaited_name); };
    // If several ranks of this communicator live in that process, it is unknown which one is meant.
    if (std::count_if(names_.begin(), names_.end(), lives_there) > 1)
      asked_name_ = answer.awaited_name + " of another communicator";
    return letter;
  }
  conclude(end_of_chain(answer));
  return {};
}

// A rank of this communicator in the same process as that rank of another communicator; -1: none.
int32_t Inquiry::rank_of_process(const std::string& name) const {
  const std::string_view process = process_of(name);
  for (size_t r = 0; r < names_.size() && !process.empty(); ++r) {
    if (process_of(names_[r]) == process) return static_cast<int32_t>(r);
  }
  return -1;
}

bool Inquiry::open() const {
  const MutexLock lock(mutex_);
  return overdue_.has_value();
}

int64_t Inquiry::due_ns() const {
  const MutexLock lock(mutex_);
  if (!overdue_) return std::numeric_limits<int64_t>::max();
  return concluded_ ? 0 : answer_due_ns_;
}

std::optional<Inquiry::Verdict> Inquiry::take_verdict(int64_t now_ns) {
  const MutexLock lock(mutex_);
  if (!overdue_ || (!concluded_ && now_ns < answer_due_ns_)) return {};
  Verdict verdict;
  verdict.operation = overdue_->operation;
  verdict.waited_s = overdue_->waited_s;
  verdict.culprit = concluded_ ? culprit_ : names_[static_cast<size_t>(asked_.back().rank)];
  if (!concluded_) {
    verdict.silent = asked_.back().rank;
    verdict.silent_ns = now_ns - asked_ns_;
  }
  verdict.rest = "; " + overdue_->sentence + chain();
  overdue_.reset();
  return verdict;
}

std::string Inquiry::Verdict::sentence() const {
  if (silent < 0) return culprit + rest;
  std::string known = " is frozen or very slow: it does not answer on the control mesh";
  if (host_answers) known += *host_answers ? ", but its host does" : ", and neither does its host";
  return culprit + known + rest;
}

void Inquiry::conclude(std::string culprit) {
  culprit_ = std::move(culprit);
  concluded_ = true;
}

// "; rank 3 awaits rank 2, which awaits rank 1"
std::string Inquiry::chain() const {
  const size_t asked = circle_.empty() ? asked_.size() : circle_end_;
  if (asked < 2) return "";
  std::string text = "; " + rank_text(asked_[0].rank) + " awaits " + rank_text(asked_[1].rank);
  const size_t last = asked - 1;
  for (size_t i = 2; i < asked; ++i) {
    if (i >= kNamedLinks && i < last) continue;
    if (i > kNamedLinks) text += ", and so on over " + std::to_string(i - kNamedLinks) + " more, the last of";
    text += (i > kNamedLinks ? " which awaits " : ", which awaits ") + rank_text(asked_[i].rank);
  }
  return text;
}

// "ranks 0, 3 and 2 wait for each other"; the circle begins with the rank that closes it.
std::string Inquiry::circle(int32_t from) const {
  std::vector<int32_t> ring;
  if (from == rank_) ring.push_back(rank_);
  const auto is_first = [from](const Asked& one) { return one.rank == from; };
  auto at = from == rank_ ? asked_.begin() : std::find_if(asked_.begin(), asked_.end(), is_first);
  for (; at != asked_.end(); ++at) ring.push_back(at->rank);
  std::string text = "ranks";
  for (size_t i = 0; i < ring.size(); ++i) {
    const bool last = i + 1 == ring.size();
    text += (i == 0 ? " " : last ? " and " : ", ") + std::to_string(ring[i]);
  }
  return text + " wait for each other";
}

// If another communicator of that rank has failed, that is probably why the rank has not called. Then the sentence
// begins with the cause of that failure, and names this rank second.
std::string Inquiry::not_called(const Answer& answer, const std::string& call, const std::string& busy) const {
  const OperationKey& about = asked_.back().operation;
  std::string fact = " has not called " + call;
  if (about.kind == CallKind::kOperation) {
    const bool message = about.peer >= 0;
    const std::string latest = message ? ": its latest to that rank was " : ": its latest call was ";
    fact += answer.calls == 0 ? ": it has made no such call yet"
                              : latest + numbered(message ? "message" : "operation", answer.calls - 1);
  }
  fact += busy;
  const bool in_operation = answer.in && answer.in->kind == CallKind::kOperation && !answer.other_comm;
  if (about.kind == CallKind::kOperation && in_operation && ((answer.in->number ^ about.number) & kCaptured) != 0)
    fact += "; calls that were captured into a graph meet captured calls only";
  if (answer.failure.empty()) return asked_name_ + fact;
  const std::string cause = answer.failure.substr(0, answer.failure.find(';'));
  const auto known = in_numbers_of(names_, names_[static_cast<size_t>(rank_)], cause);
  if (known) return *known + "; that has ended another communicator of " + asked_name_ + ", which" + fact;
  return asked_name_ + fact + "; another communicator of it has failed: " + cause;
}

std::string Inquiry::end_of_chain(const Answer& answer) const {
  const OperationKey& about = asked_.back().operation;
  const std::string& name = asked_name_;
  const bool message = about.peer >= 0;
  std::string call = message ? std::string("the ") + (about.sending ? "Recv" : "Send") + " that matches " +
                                   text_of(about) + " of rank " + std::to_string(asked_for_)
                             : text_of(about);
  if (asked_.back().other_comm) call += " of another communicator";
  const std::string busy =
      answer.in ? "; it is in " + answer.description + (answer.other_comm ? " of another communicator" : "") : "";
  switch (answer.state) {
    case Answer::State::kNotCalled:
      return not_called(answer, call, busy);
    case Answer::State::kQueued:
      if (answer.device >= 0) return name + " has called " + call + held_by_device(answer.device);
      return name + " has called " + call + ", but its stream has not reached it" + busy;
    case Answer::State::kActive:
      return name + " is in " + answer.description + (answer.awaited < 0 ? " and awaits no other rank" : "");
    case Answer::State::kDone:
      return name + " is done with " + call + ": what it sent last has not arrived" + busy;
  }
  return name;
}

}  // namespace trestle
