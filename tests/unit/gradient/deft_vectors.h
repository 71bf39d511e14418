// Worked cases of DeFT, computed independently of this code. Test support.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trestle {

// VGG-19 of Table II with the corrected bucket 4, two links, the second 1.65 times as slow.
struct DeftVggVector {
  std::array<uint32_t, 15> piece_bucket = {0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5};
  std::array<uint64_t, 15> piece_comm_us = {1968,  11262, 15447, 20961, 20961, 20961, 20961, 20961,
                                            20961, 20961, 20961, 20961, 15877, 15877, 8651};
  double ddp_us = 295053;
  double byte_scheduler_us = 263299;                  // not cut
  double byte_scheduler_cut_us = 258315.99999999953;  // parts of at most 13031 us
  double deft_us = 130285;
  // Batches of the update at the end of each iteration.
  std::vector<uint32_t> updates = {0, 1, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0,
                                   1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0};
  // `updates` without the iterations that have none.
  std::vector<uint32_t> batches = {1, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1,
                                   2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1};
};

// Greedy placement of items 1 .. 5 on two links.
struct DeftPlacementVector {
  std::array<uint64_t, 5> comm_us = {2, 4, 6, 7, 9};
  std::array<uint64_t, 2> capacities_us = {16, 9};
  std::vector<std::vector<uint32_t>> sends = {{4, 3, 1}, {5}};  // items count from 1
};

}  // namespace trestle
