// Inquiry: finds the rank to blame when a deadline has passed, or a call waits for long. The awaited rank may itself
// await another one (in a ring every rank awaits its neighbour). So the inquiry asks it what it waits for, then asks
// that rank, until one waits for no other. A call may also be queued behind a call of another communicator on the same
// stream. Then the inquiry asks about that call, over this communicator's mesh: it asks a rank of the process that is
// awaited there. The name shows the process.
//
// A state machine without I/O or clock: it says which rank to ask next, is given the answers, and ends with a sentence.
// Owned by the communicator's MeshPoller. Any thread (it has a mutex of its own, and calls nothing under it). One
// inquiry at a time.
//
// Time: a rank has answer_timeout_ns to answer. The whole inquiry ends after twice that, however long the chain is. The
// limit is half of the operation's timeout, between 0.2 and 2 s: a rank that is late for an operation mostly answers
// quickly.
//
// The sentence begins with the rank to blame and what is known of it. Then come the overdue call, the chain of ranks
// that led to the culprit, and what each rank adds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/job_id.h"
#include "base/mutex.h"
#include "base/overdue.h"
#include "base/rank_names.h"

namespace trestle {

// A rank of another communicator than the one that runs the inquiry. Calls of several communicators may share a stream.
struct OtherCommRank {
  JobId communicator{};
  int32_t rank = 0;
  bool operator==(const OtherCommRank&) const = default;
};

// Asks the rank that `whose` awaits for the state of this call.
struct Question {
  uint32_t id = 0;         // comes back in the answer
  OperationKey operation;  // numbered as `whose` calls it
  int32_t whose = 0;
  std::optional<OtherCommRank> other_comm;  // the asked rank, if the call belongs to another communicator
};

struct Answer {
  enum class State : uint8_t { kNotCalled, kQueued, kActive, kDone };
  uint32_t id = 0;
  State state = State::kNotCalled;
  // Calls made so far, of the operation's kind: collectives, or messages of that pair and direction.
  uint64_t calls = 0;
  std::optional<OperationKey> in;  // what the rank is in: that call, or its oldest other call
  int32_t awaited = -1;            // the rank that `in` waits for
  std::string description;         // of `in`; cut at kMostDescription
  std::string awaited_name;        // of `awaited`, whose name the asker may not know yet; cut at kMostDescription
  // The answering rank, if `in` and `awaited` belong to another communicator.
  std::optional<OtherCommRank> other_comm;
  // The device whose stream has not come to the call at the head of the operation's stream; -1: that is not why it
  // waits.
  int32_t device = -1;
  // If the call was not made: why another communicator of that rank has failed lately, with that communicator's rank
  // numbers; "": none has. Cut at kMostDescription.
  std::string failure;
};
inline constexpr size_t kMostDescription = 512;

// Letters of the control mesh.
std::string encode(const Question& question);
std::string encode(const Answer& answer);
std::optional<Question> decode_question(const std::string& letter, int32_t ranks);
std::optional<Answer> decode_answer(const std::string& letter, int32_t ranks);
// Whether a letter is a question or an answer of an inquiry.
bool is_of_inquiry(const std::string& letter);

class Inquiry {
 public:
  // first_id: of its questions. Inquiries of one rank that are open at the same time start with ids far apart.
  Inquiry(int32_t rank, const RankNames& names, uint32_t first_id = 0) : rank_(rank), names_(names), id_(first_id) {}
  bool open() const;

  struct Letter {
    int32_t to = 0;
    Question question;
  };
  // The first question about an overdue operation that awaits some rank. Drops an older inquiry.
  Letter begin(const Overdue& overdue, int64_t now_ns);
  // As begin(), unless an inquiry is open. One about a deadline takes the place of one about a wait.
  std::optional<Letter> begin_if_none(const Overdue& overdue, int64_t now_ns);
  // The next question, if there is one; otherwise look at take_verdict(). The question may go to this rank itself, when
  // it waits for others in other calls than the overdue one. Unexpected answers are ignored.
  std::optional<Letter> answered(int32_t from, const Answer& answer, int64_t now_ns);
  // When take_verdict() has a result even if no rank answers; INT64_MAX: never.
  int64_t due_ns() const;

  struct Verdict {
    OperationKey operation;
    int64_t waited_s = 0;  // Overdue::waited_s
    // "rank 3 (host a, pid 12) has not called operation 5: ...". Says nothing yet about a silent rank.
    std::string culprit;
    int32_t silent = -1;    // the culprit, if it did not answer
    int64_t silent_ns = 0;  // for how long
    std::string rest;       // the overdue call and the chain
    // Whether the host of the silent rank answers. Filled in by the caller, if it knows.
    std::optional<bool> host_answers;
    std::string sentence() const;
  };
  // Returned once, when the inquiry has ended.
  std::optional<Verdict> take_verdict(int64_t now_ns);

 private:
  Letter start(const Overdue& overdue, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  std::string chain() const TRESTLE_REQUIRES(mutex_);
  std::string end_of_chain(const Answer& answer) const TRESTLE_REQUIRES(mutex_);
  std::string not_called(const Answer& answer, const std::string& call, const std::string& busy) const
      TRESTLE_REQUIRES(mutex_);
  std::string circle(int32_t from) const TRESTLE_REQUIRES(mutex_);
  void conclude(std::string culprit) TRESTLE_REQUIRES(mutex_);
  // A rank whose answer is or was awaited.
  struct Asked {
    int32_t rank = 0;
    std::optional<OtherCommRank> other_comm;
    OperationKey operation;  // numbered as the rank calls it that waits for this one
    bool operator==(const Asked&) const = default;
  };
  std::optional<Letter> ask_another(int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  bool is_closed_by(const Answer& answer) const TRESTLE_REQUIRES(mutex_);
  bool was_asked(const Asked& one) const TRESTLE_REQUIRES(mutex_);
  Letter ask(const Asked& one, int32_t whose, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  std::optional<Letter> ask_in_other_comm(const Answer& answer, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  int32_t rank_of_process(const std::string& name) const TRESTLE_REQUIRES(mutex_);

  const int32_t rank_;
  mutable Mutex mutex_;
  RankNames names_ TRESTLE_GUARDED_BY(mutex_);
  std::optional<Overdue> overdue_ TRESTLE_GUARDED_BY(mutex_);  // while the inquiry is open
  bool concluded_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::string culprit_ TRESTLE_GUARDED_BY(mutex_);  // the conclusion
  // The conclusion, unless another rank turns out to be at fault; "": no circle was found.
  std::string circle_ TRESTLE_GUARDED_BY(mutex_);
  size_t circle_end_ TRESTLE_GUARDED_BY(mutex_) = 0;     // how many of asked_ led to it
  uint32_t id_ TRESTLE_GUARDED_BY(mutex_) = 0;           // of the latest question
  std::vector<Asked> asked_ TRESTLE_GUARDED_BY(mutex_);  // in order; the last one's answer is awaited
  std::string asked_name_ TRESTLE_GUARDED_BY(mutex_);    // of the last one
  int32_t asked_for_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t asked_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t answer_timeout_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t answer_due_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t end_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
};

}  // namespace trestle
