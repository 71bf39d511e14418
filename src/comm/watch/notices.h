// Notices: short texts that ranks leave for each other over a communicator's control mesh, beside all streams. Of each
// rank only the latest one counts, so a notice can be taken back by another one, and nothing of it stays behind.
//
// Owned by the communicator. Any thread; it has a mutex of its own, and calls nothing under it. Texts of other ranks
// are not trusted: malformed letters are ignored.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.h"

namespace trestle {

class ControlMesh;

class Notices {
 public:
  Notices(ControlMesh& mesh, int32_t rank) : mesh_(mesh), rank_(rank) {}

  // Replaces the notice that this rank has left for that one. Both may be the same rank. At most kMostNotice bytes.
  static constexpr size_t kMostNotice = 4000;
  void leave(int32_t to, const std::string& text);
  // What that rank has left for this one; "": nothing yet.
  std::string latest(int32_t from) const;

  // ---- for the watch
  static bool is_letter(const std::string& letter);
  // Letters may come twice, and in another order than they were sent.
  void take(int32_t from, const std::string& letter);

  // While one exists, a thread sleeps at the communicator's engine until a notice comes.
  class Wait {
   public:
    explicit Wait(Notices& notices) : notices_(notices) { ++notices_.waits_; }
    ~Wait() { --notices_.waits_; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Notices& notices_;
  };
  bool awaited() const { return waits_ != 0; }

 private:
  struct Notice {
    uint64_t number = 0;
    std::string text;
  };
  void keep(int32_t from, uint64_t number, std::string text);

  ControlMesh& mesh_;
  const int32_t rank_;
  std::atomic<int> waits_{0};
  std::atomic<uint64_t> sent_{0};
  mutable Mutex mutex_;
  std::map<int32_t, Notice> notices_ TRESTLE_GUARDED_BY(mutex_);  // by sender
};

}  // namespace trestle
