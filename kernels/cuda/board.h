// The board of devices: small collectives among ranks of one host, by one kernel per rank that exchanges data with
// those of the other ranks through device memory. What host and device share. Plain values, any thread.
//
// Each rank has lines in its device's memory, into which the other ranks write. A line is 8 bytes: 4 of data and a flag
// that says which call they belong to. A line is written and read as a whole, so the reader needs no other signal: it
// looks at the line until it has the flag. (NCCL calls the same idea LL, for low latency.) Half of the bytes are flags,
// which does not matter where latency is all.
//
// Two halves take turns: call s writes into half s modulo 2. This needs no answer from the reader. A rank begins call
// s + 2 when its call s + 1 is done, so it has the header that every other rank has written in call s + 1; each wrote
// it when its own call s was done, and so had read everything of it. That holds only if calls of a rank come one after
// the other, in the same order on all ranks, and if every rank writes a header to every other one in every call.
//
// A flag is the number of the call, modulo kBoardFlags, plus one; 0 is a line that nobody has written. A line of a long
// call may keep its flag while short calls go on, so the kernel clears a half before its flags come again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle::kernels {

inline constexpr uint32_t kMostBoardRanks = 16;
inline constexpr uint32_t kBoardHalves = 2;
// A thread moves this much of a block at a time, in two lines. The last unit of a block may have fewer bytes.
inline constexpr uint32_t kBoardUnitBytes = 8;
// Threads of a block of a kernel. Those that move data have one unit each at a time. The others, a warp, wait for the
// host's memory and for headers, so that no data waits behind these.
inline constexpr uint32_t kBoardDataThreads = 256;
inline constexpr uint32_t kBoardThreads = kBoardDataThreads + 32;
inline constexpr uint32_t kBoardHeaderLines = 16;  // the stamp, and none behind it, so that data begins at 128 bytes
// The two lines of a unit. They are written and read by one access, which is no promise that they come together: each
// has a flag.
struct alignas(16) BoardLines {
  uint64_t low;
  uint64_t high;
};
inline constexpr uint64_t kBoardFlags = 0x7ffffffe;
inline constexpr uint64_t kBoardClearEvery = uint64_t{1} << 30;

constexpr uint64_t board_units(uint64_t bytes) {
  return (bytes + kBoardUnitBytes - 1) / kBoardUnitBytes;
}
// Lines that one rank needs for the blocks of another one, in a half, if no block is longer than most_bytes.
constexpr uint64_t board_lines(uint64_t most_bytes) {
  return kBoardHeaderLines + 2 * board_units(most_bytes);
}
// Bytes of a rank's memory: its lines, and words of this device in front of them.
inline constexpr uint64_t kBoardWordBytes = 128;
constexpr uint64_t board_bytes(uint64_t most_bytes, uint64_t ranks) {
  return kBoardWordBytes + kBoardHalves * ranks * board_lines(most_bytes) * sizeof(uint64_t);
}
static_assert(kBoardWordBytes % sizeof(BoardLines) == 0 && board_lines(0) % 2 == 0 && board_lines(1) % 2 == 0,
              "units lie at multiples of their size");
constexpr uint32_t board_flag(uint64_t sequence) {
  return static_cast<uint32_t>(sequence % kBoardFlags) + 1;
}
// Whether the kernel of this call clears the other half first. That was read by this rank, and nobody writes to it
// before the header of this call. Twice in kBoardClearEvery calls, one for each half.
constexpr bool board_clears(uint64_t sequence) {
  return sequence >= kBoardClearEvery && sequence % kBoardClearEvery < kBoardHalves;
}

// Words in pinned memory, one set per rank. Numbers of calls are their low 32 bits.
struct alignas(128) BoardControl {
  uint32_t abort = 0;  // written by the host: kernels end soon, and write no results from now on
  // Written by kernels. begun: the last call whose kernel runs or has run; ended: that has ended, as far as the host is
  // concerned: it touches no buffer any more.
  uint32_t begun = 0;
  uint32_t ended = 0;
  // As ended, but not after an abort, when the host writes it. Streams wait for it.
  uint32_t chain = 0;
  // By rank: the stamp that it gave the call in which it differed; 0: none did. A stamp is not 0.
  uint64_t other_stamps[kMostBoardRanks] = {};
};

static_assert(offsetof(BoardControl, ended) % 8 == 0 &&
                  offsetof(BoardControl, chain) == offsetof(BoardControl, ended) + 4,
              "one store writes both");

// Words of a rank in the memory of its device.
struct BoardWords {
  uint32_t blocks_done = 0;  // of the call that runs, and which of them were aborted
  // No kernel that begins later sends anything or reads a buffer: the work before it may not have been done. Set by a
  // kernel that was aborted, and by the host before it lets a stream go on that it has held.
  uint32_t stopped = 0;
};
static_assert(sizeof(BoardWords) <= kBoardWordBytes);

// One call on one rank. A block goes to each rank of send_to, and one comes from each rank of recv_from: `elements`
// elements each, at multiples of the strides. This rank may be in both.
struct CudaBoardCall {
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t elements = 0;
  uint64_t send_stride = 0;  // bytes
  uint64_t recv_stride = 0;  // copies only
  uint32_t send_to = 0;      // bit r: rank r
  uint32_t recv_from = 0;    // copies: likewise; sums: all ranks or none
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t average_over = 0;          // ReduceSpec::average_over
  uint32_t is_scaled = 0;             // each rank's elements are multiplied by its factor first
  uint32_t elements_are_aligned = 0;  // both buffers begin at a multiple of the element's size
  uint32_t sequence = 0;
  uint32_t flag = 0;
  uint32_t half = 0;
  uint32_t clears = 0;
  uint32_t mark = 0;  // written to mark_word when the kernel begins, if there is one
  uint64_t stamp = 0;
  uint64_t lines_per_rank = 0;
  alignas(8) unsigned char factor[8] = {};  // one element
  BoardControl* control = nullptr;
  uint32_t* mark_word = nullptr;
  BoardWords* words = nullptr;
  uint64_t* lines[kMostBoardRanks] = {};  // of each rank
};

}  // namespace trestle::kernels
