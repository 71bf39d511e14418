// Inquiry: when a deadline has passed, which rank is to blame? The awaited rank may itself await another one (in a ring
// every rank awaits its neighbour), so it is asked what it waits for, then that one, until a rank has no such excuse.
// Where a call is held up behind one of another communicator, on the same stream, the question goes on about that one,
// over this communicator's mesh: to a rank of the process that is awaited there, as its name tells.
//
// A state machine without I/O or clock: it says whom to ask next, is told the answers, and ends with a sentence. Owned
// by the communicator's MeshPoller; any thread (its own mutex, under which nothing is called). One inquiry at a time.
//
// Time: a rank has patience_ns to answer; the whole inquiry ends after twice that, however long the chain is. Patience
// is half of the operation's timeout, between 0.2 and 2 s: who is late for an operation is mostly quick to say so.
//
// The sentence begins with the rank to blame and what is known of it; then come the overdue call, the chain of ranks
// that led to the culprit, and what each rank adds of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/job_id.h"
#include "base/mutex.h"
#include "base/overdue.h"

namespace trestle {

// A rank of a communicator that is not the one whose ranks ask: calls of several may share a stream.
struct Elsewhere {
  JobId communicator{};
  int32_t rank = 0;
  bool operator==(const Elsewhere&) const = default;
};

// "Where does this call stand at your place?", to the rank that `whose` awaits.
struct Question {
  uint32_t id = 0;         // comes back in the answer
  OperationKey operation;  // as `whose` calls it
  int32_t whose = 0;
  std::optional<Elsewhere> elsewhere;  // the rank that is asked, where the call is of that communicator
};

struct Answer {
  enum class State : uint8_t { kNotCalled, kQueued, kActive, kDone };
  uint32_t id = 0;
  State state = State::kNotCalled;
  uint64_t calls = 0;  // made so far, of the operation's kind (collectives, or messages of that pair and direction)
  std::optional<OperationKey> in;      // what the rank is in: that call, or the oldest of others
  int32_t awaited = -1;                // by `in`
  std::string description;             // of `in`; cut at kMostDescription
  std::string awaited_name;            // of `awaited`: who asks may not know it yet; cut at kMostDescription
  std::optional<Elsewhere> elsewhere;  // the rank that answers, where `in` and `awaited` are of that communicator
};
inline constexpr size_t kMostDescription = 512;

// Letters of the control mesh.
std::string encode(const Question& question);
std::string encode(const Answer& answer);
std::optional<Question> decode_question(const std::string& letter, int32_t ranks);
std::optional<Answer> decode_answer(const std::string& letter, int32_t ranks);
// Whether a letter is one of these.
bool is_of_inquiry(const std::string& letter);

class Inquiry {
 public:
  // first_id: of its questions. Inquiries of one rank that are open at the same time begin far from each other.
  Inquiry(int32_t rank, std::vector<std::string> names, uint32_t first_id = 0)
      : rank_(rank), names_(std::move(names)), id_(first_id) {}
  bool open() const;

  struct Letter {
    int32_t to = 0;
    Question question;
  };
  // The first question about an overdue operation that awaits some rank. Forgets an older inquiry.
  Letter begin(const Overdue& overdue, int64_t now_ns);
  // The same, unless one is open.
  std::optional<Letter> begin_if_none(const Overdue& overdue, int64_t now_ns);
  // The next question, if there is one; otherwise look at take_verdict(). It may be this rank's to answer: it waits for
  // others in other calls than the overdue one. Unexpected answers are ignored.
  std::optional<Letter> answered(int32_t from, const Answer& answer, int64_t now_ns);
  // When take_verdict() has something to say though nobody answers; INT64_MAX: never.
  int64_t due_ns() const;

  struct Verdict {
    OperationKey operation;
    std::string culprit;    // "rank 3 (host a, pid 12) has not called operation 5: ...", without a silent rank's facts
    int32_t silent = -1;    // the culprit, where it did not answer
    int64_t silent_ns = 0;  // for so long
    std::string rest;       // the overdue call and the chain
    std::optional<bool> host_answers;  // of the silent rank; the caller's to fill in, if it knows
    std::string sentence() const;
  };
  // Once, when the inquiry has ended.
  std::optional<Verdict> take_verdict(int64_t now_ns);

 private:
  Letter start(const Overdue& overdue, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  std::string chain() const TRESTLE_REQUIRES(mutex_);
  std::string end_of_chain(const Answer& answer) const TRESTLE_REQUIRES(mutex_);
  std::string circle(int32_t from) const TRESTLE_REQUIRES(mutex_);
  void conclude(std::string culprit) TRESTLE_REQUIRES(mutex_);
  // Whose answer is awaited, or was.
  struct Asked {
    int32_t rank = 0;
    std::optional<Elsewhere> elsewhere;
    OperationKey operation;  // as the rank calls it that waits for this one
    bool operator==(const Asked&) const = default;
  };
  std::optional<Letter> ask_another(int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  bool is_closed_by(const Answer& answer) const TRESTLE_REQUIRES(mutex_);
  bool was_asked(const Asked& one) const TRESTLE_REQUIRES(mutex_);
  Letter ask(const Asked& one, int32_t whose, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  std::optional<Letter> go_on_elsewhere(const Answer& answer, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  int32_t rank_of_process(const std::string& name) const TRESTLE_REQUIRES(mutex_);

  const int32_t rank_;
  mutable Mutex mutex_;
  std::vector<std::string> names_ TRESTLE_GUARDED_BY(mutex_);
  std::optional<Overdue> overdue_ TRESTLE_GUARDED_BY(mutex_);  // while the inquiry is open
  bool concluded_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::string culprit_ TRESTLE_GUARDED_BY(mutex_);       // the conclusion
  std::string circle_ TRESTLE_GUARDED_BY(mutex_);        // the conclusion, if no other rank has a worse one; "": none
  size_t circle_end_ TRESTLE_GUARDED_BY(mutex_) = 0;     // of those in asked_ that led to it
  uint32_t id_ TRESTLE_GUARDED_BY(mutex_) = 0;           // of the latest question
  std::vector<Asked> asked_ TRESTLE_GUARDED_BY(mutex_);  // in order; the last one's answer is awaited
  std::string asked_name_ TRESTLE_GUARDED_BY(mutex_);    // of the last one
  int32_t asked_for_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t asked_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t patience_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t answer_due_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t end_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
};

}  // namespace trestle
