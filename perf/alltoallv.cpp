// alltoallv_perf: an all-to-all of unequal blocks, larger between distant ranks, or as a matrix says
// (NCCL_TESTS_ALLTOALLV_SPREAD, _MATRIX_FILE, _MATRIX_SCALE, _PRINT_SUMMARY). A call in place needs blocks of the same
// size to a rank and from it, so the in-place half is N/A.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"
#include "perf/driver/environment.h"
#include "perf/driver/options.h"
#include "perf/driver/pattern.h"
#include "perf/driver/traffic.h"
#include "perf/driver/types.h"

using namespace trestle::perf;

namespace {

const Traffic& traffic() {
  static const Traffic traffic = read_traffic(test_variable("ALLTOALLV_SPREAD"), test_variable("ALLTOALLV_MATRIX_FILE"),
                                              test_variable("ALLTOALLV_MATRIX_SCALE"));
  return traffic;
}

size_t block(const Case& c, int from, int to) {
  return block_elements(traffic(), from, to, c.nranks, c.count, type_info(c.type).bytes);
}

// Elements of rank `from`'s send buffer before the block for `to`.
size_t start_of_block(const Case& c, int from, int to) {
  size_t start = 0;
  for (int peer = 0; peer < to; ++peer) start += block(c, from, peer);
  return start;
}

Shape shape(size_t elements, size_t element_bytes, int nranks) {
  const size_t count = block_count(elements, element_bytes, nranks);
  const size_t most = most_elements(traffic(), nranks, count, element_bytes);
  return {count, most, most};
}

size_t received(const Case& c) {
  size_t elements = 0;
  for (int from = 0; from < c.nranks; ++from) elements += block(c, from, c.rank);
  return elements;
}

void fill_expected(const Case& c, size_t first, size_t count, void* out) {
  char* to = static_cast<char*>(out);
  size_t start = 0;  // of the block in the receive buffer
  for (int from = 0; from < c.nranks && count > 0; ++from) {
    const size_t length = block(c, from, c.rank);
    if (first < start + length) {
      const size_t inside = first - start, part = std::min(count, length - inside);
      fill_copied(c.type, c.seed, from, start_of_block(c, from, c.rank) + inside, part, to);
      to += part * type_info(c.type).bytes;
      first += part;
      count -= part;
    }
    start += length;
  }
}

void run(const Case& c, const void* send, void* recv, Calls& calls) {
  thread_local std::vector<size_t> sent, received;  // kept, so that a timed loop allocates nothing
  sent.resize(static_cast<size_t>(c.nranks));
  received.resize(static_cast<size_t>(c.nranks));
  for (int peer = 0; peer < c.nranks; ++peer) {
    sent[static_cast<size_t>(peer)] = block(c, c.rank, peer);
    received[static_cast<size_t>(peer)] = block(c, peer, c.rank);
  }
  calls.all_to_all_v(send, sent.data(), recv, received.data(), c.type);
}

std::string check(const Options& options, int nranks) {
  if (!traffic().problem.empty()) return traffic().problem;
  if (traffic().matrix.empty()) return "";
  if (traffic().ranks != nranks) {
    return "the traffic matrix is for " + std::to_string(traffic().ranks) + " ranks, there are " +
           std::to_string(nranks);
  }
  if (options.min_bytes != options.max_bytes) return "with a traffic matrix -b and -e must be the same";
  const size_t most = most_elements(traffic(), nranks, 0, 1);
  if (most <= options.max_bytes) return "";
  return "a rank sends or receives " + std::to_string(most) + " bytes by the traffic matrix, more than -e";
}

std::vector<std::string> summary(const Options& options, int nranks) {
  const std::string wanted = test_variable("ALLTOALLV_PRINT_SUMMARY");
  if (wanted.empty() || wanted == "0") return {};
  const size_t bytes = type_info(options.types.front()).bytes;
  return traffic_summary(traffic(), nranks, block_count(options.max_bytes / bytes, bytes, nranks), bytes);
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr Collective kAllToAllV = {
      .kind = trestleCollAllToAllV,
      .in_place = false,
      .shape = shape,
      .factor = factor_blocks,
      .fill_send = [](const Case& c, void* send) { fill_copy_send(c, start_of_block(c, c.rank, c.nranks), send); },
      .verified = received,
      .fill_expected = fill_expected,
      .run = run,
      .check = check,
      .summary = summary,
  };
  return perf_main(argc, argv, kAllToAllV);
}
