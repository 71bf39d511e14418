// SplitsInProgress: the splits of one communicator that are under way on this rank, for the threads that make them and
// for ranks that ask about them.
//
// Owned by the communicator. Any thread; it has a mutex of its own, and calls nothing under it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace trestle {

class SplitsInProgress {
 public:
  // One split is under way for as long as this lives. Used by the thread that makes it.
  class Registration {
   public:
    Registration(SplitsInProgress& all, uint64_t number) : all_(all), number_(number), awaited_(all.begin(number)) {}
    ~Registration() { all_.end(number_); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    // The ranks of the new communicator, by their ranks there.
    void set_members(const std::vector<int32_t>& members) { all_.set_members(number_, members); }
    // Where to write the member that this rank waits for; -1: none.
    std::atomic<int32_t>& awaited() { return awaited_; }
    // Success, or why a member gave up.
    Status failure() const { return all_.failure(number_); }

   private:
    SplitsInProgress& all_;
    const uint64_t number_;
    std::atomic<int32_t>& awaited_;
  };

  bool contains(uint64_t number);
  std::optional<uint64_t> oldest();
  // The rank that this one waits for while the new communicator is made, as the parent numbers it; -1: none. nullopt:
  // the members are not known yet.
  std::optional<int32_t> awaited_while_joining(uint64_t number);
  // A member gave up. The first failure stays; a split that is not under way is ignored.
  void set_failure(uint64_t number, Error error);

  // While one exists, a thread exchanges something with all ranks over the control mesh.
  class Exchange {
   public:
    explicit Exchange(SplitsInProgress& all) : all_(all) { ++all_.exchanges_; }
    ~Exchange() { --all_.exchanges_; }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

   private:
    SplitsInProgress& all_;
  };
  bool has_exchanges() const { return exchanges_ != 0; }

 private:
  struct Split {
    std::vector<int32_t> members;  // empty: not known yet
    std::atomic<int32_t> awaited{-1};
    std::optional<Error> failure;
  };
  std::atomic<int32_t>& begin(uint64_t number);
  void end(uint64_t number);
  void set_members(uint64_t number, const std::vector<int32_t>& members);
  Status failure(uint64_t number);

  std::atomic<int> exchanges_{0};
  Mutex mutex_;
  std::map<uint64_t, Split> splits_ TRESTLE_GUARDED_BY(mutex_);  // by their numbers
};

}  // namespace trestle
