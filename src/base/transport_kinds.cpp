#include "base/transport_kinds.h"

#include <string_view>

#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr uint64_t kKiB = 1024;

// Segments: large enough to hide the cost of a message, small enough to stay in the cache from the copy to the
// reduction.
// Bandwidth and processor time of a message: within a host a copy at memory speed, and what the engine needs for a step
// and a message (broadcast to 4 ranks over shm: 8 B 3.2 us by tree, 32 KiB 23 us by dbtree, 51 us by ring); tcp: one
// stream over the loopback device or a 25 to 50 Gb/s card. Reductions run at memory speed.
// Converging: where streams of several senders meet at one port, one after the other loses packets. With four ranks on
// shaped links of 100 Mb/s, direct took 1.15 to 1.24 times as long as its bytes need, hd 1.17, ring 1.00 to 1.01
// (scripts/lab).
// Processor time of a byte: measured on two cores of an AMD EPYC, all-reduce of 64 MiB float32 between 2 ranks, each
// with a core: 13.5 ms over shm (0.2 ns per byte sent) and 26 ms over tcp on the loopback device (0.39 ns).
constexpr TransportFacts kRows[] = {
    {.name = "loopback",
     .reach = Reach::kProcess,
     .shares_memory = true,
     .authenticated = false,
     .has_interfaces = false,
     .views_in_process = true,
     .segment_bytes = 256 * kKiB,
     .latency_ns = 400,
     .bandwidth_mbps = 80'000,
     .message_ns = 150,
     .reduce_mbps = 64'000,
     .converging_permille = 0,
     .processor_ps_per_byte = 100},
    {.name = "shm",
     .reach = Reach::kHost,
     .shares_memory = true,
     .authenticated = true,
     .has_interfaces = false,
     .views_in_process = false,
     .segment_bytes = 256 * kKiB,
     .latency_ns = 1'500,
     .bandwidth_mbps = 80'000,
     .message_ns = 1'000,
     .reduce_mbps = 64'000,
     .converging_permille = 0,
     .processor_ps_per_byte = 200},
    {.name = "tcp",
     .reach = Reach::kAnywhere,
     .shares_memory = false,
     .authenticated = true,
     .has_interfaces = true,
     .views_in_process = false,
     .segment_bytes = 256 * kKiB,
     .latency_ns = 15'000,
     .bandwidth_mbps = 30'000,
     .message_ns = 2'000,
     .reduce_mbps = 64'000,
     .converging_permille = 170,
     .processor_ps_per_byte = 400},
};

constexpr size_t row_of(TransportKind kind) {
  return static_cast<size_t>(kind) - 1;
}

// std::size(kRows): no row reaches.
constexpr size_t first_that_reaches(Reach reach) {
  size_t row = 0;
  while (row < std::size(kRows) && kRows[row].reach < reach) ++row;
  return row;
}

constexpr bool is_named(TransportKind kind, std::string_view name) {
  return kRows[row_of(kind)].name == name;
}
static_assert(is_named(TransportKind::kLoopback, "loopback") && is_named(TransportKind::kShm, "shm") &&
                  is_named(TransportKind::kTcp, "tcp"),
              "the named kinds are the first rows");
static_assert(first_that_reaches(Reach::kAnywhere) < std::size(kRows), "every pair of ranks needs a transport");
// comm/setup/routing.cpp counts on it.
static_assert(kRows[first_that_reaches(Reach::kProcess)].shares_memory &&
                  kRows[first_that_reaches(Reach::kHost)].shares_memory,
              "ranks of one host share memory by default");

}  // namespace

std::span<const TransportFacts> transport_kinds() {
  return kRows;
}

const TransportFacts& facts_of(TransportKind kind) {
  if (kind == TransportKind::kAuto) return kRows[first_that_reaches(Reach::kAnywhere)];
  CHECK(row_of(kind) < std::size(kRows), "a kind of transport that does not exist");
  return kRows[row_of(kind)];
}

TransportKind automatic_transport(Reach reach) {
  return static_cast<TransportKind>(first_that_reaches(reach) + 1);
}

const char* to_string(TransportKind kind) {
  if (kind == TransportKind::kAuto) return "auto";
  return row_of(kind) < std::size(kRows) ? kRows[row_of(kind)].name : "invalid";
}

Result<TransportKind> parse_transport(const std::string& text) {
  for (size_t kind = 0; kind <= std::size(kRows); ++kind) {
    if (text == to_string(static_cast<TransportKind>(kind))) return static_cast<TransportKind>(kind);
  }
  std::vector<std::string_view> known = names_of(kRows);
  known.insert(known.begin(), to_string(TransportKind::kAuto));
  return unknown_name(text, "a transport", known);
}

std::string transport_names(const char* separator) {
  std::string names = to_string(TransportKind::kAuto);
  for (const TransportFacts& row : kRows) names.append(separator).append(row.name);
  return names;
}

}  // namespace trestle
