// ScopeExit: runs a function at the end of its scope, also where an exception ends it, unless release() was called.
#pragma once

#include <utility>

namespace trestle {

template <class F>
class [[nodiscard]] ScopeExit {
 public:
  // The function must not throw.
  explicit ScopeExit(F function) : function_(std::move(function)) {}
  ~ScopeExit() {
    if (armed_) function_();
  }
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;
  void release() { armed_ = false; }

 private:
  F function_;
  bool armed_ = true;
};

}  // namespace trestle
