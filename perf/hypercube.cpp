// hypercube_perf: an all-gather of log2(n) exchanges. In step k ranks that differ in bit k swap the 2^k blocks that
// each has; every step is a group of one send and one receive per rank.
#include <bit>

#include "perf/backend/calls.h"
#include "perf/driver/collective.h"
#include "perf/driver/types.h"

using namespace trestle::perf;

namespace {

struct Exchange {
  int peer;
  size_t mine, theirs;  // elements before the blocks
  size_t count;         // elements
};

Exchange exchange_of(const Case& c) {
  const int blocks = 1 << c.step, peer = c.rank ^ blocks;
  const auto start = [&](int rank) { return static_cast<size_t>(rank & -blocks) * c.count; };
  return {peer, start(c.rank), start(peer), static_cast<size_t>(blocks) * c.count};
}

// The receive buffer's place of this rank's own block.
char* own_block(const Case& c, void* recv) {
  return static_cast<char*>(recv) + static_cast<size_t>(c.rank) * c.count * type_info(c.type).bytes;
}

void enqueue(const Case& c, const void* send, void* recv, Calls& calls) {
  const auto both = [&](const void* from, void* to, size_t count, int peer) {
    calls.send(from, count, c.type, peer);
    calls.recv(to, count, c.type, peer);
  };
  if (c.step == 0 && send != own_block(c, recv)) both(send, own_block(c, recv), c.count, c.rank);
  if (c.nranks == 1) return;
  const Exchange step = exchange_of(c);
  const size_t bytes = type_info(c.type).bytes;
  const void* from = c.step == 0 ? send : static_cast<char*>(recv) + step.mine * bytes;
  both(from, static_cast<char*>(recv) + step.theirs * bytes, step.count, step.peer);
}

void run(const Case& c, const void* send, void* recv, Calls& calls) {
  calls.group_start();
  enqueue(c, send, recv, calls);
  calls.group_end();
}

std::string skips(int nranks) {
  if (std::has_single_bit(static_cast<unsigned>(nranks))) return "";
  return "a hypercube has 1, 2, 4, 8, ... ranks, not " + std::to_string(nranks) + ": nothing is measured";
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr Collective kHypercube = {
      .kind = trestleCollAllGather,
      .send_in_place = InPlace::kBlock,
      .shape = gathering_shape,
      .factor = factor_one,
      .fill_send = fill_own_send,
      .verified = [](const Case& c) { return c.count * static_cast<size_t>(c.nranks); },
      .fill_expected = fill_gathered_expected,
      .run = run,
      .op_label = "",
      .predicts = false,  // the library's own all-gather is another one
      .steps =
          [](int nranks) {
            return nranks == 1 ? 1 : static_cast<int>(std::bit_width(static_cast<unsigned>(nranks))) - 1;
          },
      .moved = [](const Shape& shape, int nranks) { return shape.count * static_cast<size_t>(nranks - 1); },
      .skips = skips,
  };
  return perf_main(argc, argv, kHypercube);
}
