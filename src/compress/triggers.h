// When the choice of c is made again (FLEX, arXiv 2312.02493, section 4). Value types, one thread. Rank 0 watches,
// decides and tells the others: plans must change on all ranks at the same step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trestle {

// Says when gains are to be measured again: when the smoothed gain of the last steps differs by a tenth from the one
// after the last measurement. The mean is over five steps, the j-th last with weight 0.99^j. The reference is taken
// when five steps are there, so no single step decides.
class GainTrigger {
 public:
  static constexpr size_t kWindow = 5;

  explicit GainTrigger(double threshold = 0.1) : threshold_(threshold) {}

  // One step's gain; values that are not finite are left out. True: measure again, then call measured().
  bool add(double gain);
  void measured();

 private:
  double threshold_;
  std::array<double, kWindow> gains_{};  // a ring, `count_` were added
  uint64_t count_ = 0;
  double reference_ = 0;  // of the first full window
};

// Says when c is to be searched again: when the startup time or the bandwidth of the links has changed by more than a
// part of its value at the last search. The paper's threshold is 0, which noise always passes.
class LinkTrigger {
 public:
  explicit LinkTrigger(double threshold = 0.05) : threshold_(threshold) {}

  // True the first time, and after a change. The new values are then those to compare with.
  bool update(double startup_s, double per_byte_s);

 private:
  double threshold_;
  bool known_ = false;
  double startup_s_ = 0;
  double per_byte_s_ = 0;
};

}  // namespace trestle
