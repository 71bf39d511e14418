// Dissemination: one all-gather over the ranks r + 2^k as a state machine without I/O.
//
// Owned by a ControlMesh, used under its mutex. In step k rank r sends the blobs of the ranks r, r-1, ... that it
// holds, min(2^k, N - 2^k) of them, to r + 2^k, and so holds twice as many afterwards; N - 1 foreign blobs after
// ceil(log2 N) steps. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", 1997, section 4 (concatenation), with the direction reversed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

int dissemination_steps(int32_t ranks);  // ceil(log2 ranks)
inline constexpr size_t kMaxBlobBytes = 1 << 20;

class Dissemination {
 public:
  Dissemination(int32_t rank, int32_t ranks);

  void start(std::string mine);
  bool started() const { return started_; }
  // A payload that came from rank - 2^step; it may come before start() and out of order. False: nonsense or twice.
  bool receive(int step, std::string payload);

  struct Message {
    int step;  // goes to rank + 2^step
    std::string payload;
  };
  // Messages that can be sent now, each once. False in `sane` when a received payload could not be read.
  std::vector<Message> advance(bool& sane);

  bool done() const { return started_ && step_ == steps_; }
  int awaited_step() const { return step_; }  // of a started one that is not done: waits for rank - 2^step
  std::vector<std::string> take_blobs();      // by rank, when done

 private:
  int32_t block_count(int step) const;
  bool unpack(const std::string& payload);

  const int32_t rank_;
  const int32_t ranks_;
  const int steps_;
  bool started_ = false;
  int step_ = 0;                   // first step whose payload is not taken in
  int sent_ = 0;                   // first step that was not sent
  std::vector<std::string> held_;  // held_[i]: of rank - i
  std::vector<std::optional<std::string>> arrived_;
};

}  // namespace trestle
