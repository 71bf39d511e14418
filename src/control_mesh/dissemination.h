// Dissemination: one all-gather over the ranks r + 2^k, as a state machine without I/O.
//
// Owned by a ControlMesh, used under its mutex. Rank r holds the blobs of the ranks r, r-1, ... In step k it sends
// min(2^k, N - 2^k) of them to r + 2^k, so each rank holds twice as many after the step, and the N - 1 foreign blobs
// after ceil(log2 N) steps. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997, section 4 (concatenation), with the direction reversed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

int dissemination_steps(int32_t ranks);  // ceil(log2 ranks)
// The ranks rank + 2^k, k < dissemination_steps(ranks), then the ranks rank - 2^k.
std::vector<int32_t> mesh_neighbours(int32_t rank, int32_t ranks);
inline constexpr size_t kMaxBlobBytes = 1 << 20;

class Dissemination {
 public:
  Dissemination(int32_t rank, int32_t ranks);

  void start(std::string mine);
  bool started() const { return started_; }
  // Takes a payload that came from rank - 2^step. It may come before start() and out of order. False: it is malformed
  // or a duplicate.
  bool receive(int step, std::string payload);

  struct Message {
    int step;  // goes to rank + 2^step
    std::string payload;
  };
  // Messages that can be sent now, each returned once. `sane` becomes false when a received payload cannot be read.
  std::vector<Message> advance(bool& sane);

  bool done() const { return started_ && step_ == steps_; }
  // For a started gather that is not done: it waits for rank - 2^step.
  int awaited_step() const { return step_; }
  std::vector<std::string> take_blobs();  // by rank, when done

 private:
  int32_t block_count(int step) const;
  bool unpack(const std::string& payload);

  const int32_t rank_;
  const int32_t ranks_;
  const int steps_;
  bool started_ = false;
  int step_ = 0;                   // first step whose payload is not unpacked yet
  int sent_ = 0;                   // first step whose message was not sent yet
  std::vector<std::string> held_;  // held_[i]: blob of rank - i
  std::vector<std::optional<std::string>> arrived_;
};

}  // namespace trestle
