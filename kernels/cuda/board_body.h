// What the kernels of the board of devices do (kernels/cuda/board.h). nvcc compiles it for devices. The tests' driver
// compiles it for the CPU, with another Machine, so that the protocol runs where there is no GPU.
//
// Machine: where the code runs. block(), blocks(); thread(), threads(), of a block: the first data_threads() ones move
// data, the others, at least one, do what takes long. store_line(); load_lines() and store_lines() of a unit, of which
// each line is whole; load_word() and store_word() of words that other devices and the host see; add() to a word of
// this device, which gives the sum. fence(): what was stored and loaded before it comes before what is stored and
// loaded after it, for all of them; release(): before what is stored after it. sync() of the threads of a block, and
// any(): likewise, and whether one of them says so. What threads of a block do before these is covered by a fence of
// another one after them. pause(), in a loop.
//
// Data: what goes into lines and what comes out of them: Sums or Copies.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/board.h"
#include "kernels/elements.h"

#if defined(__CUDACC__)
#define TRESTLE_ON_DEVICE __device__ inline
#define TRESTLE_UNROLL _Pragma("unroll")
#else
#define TRESTLE_ON_DEVICE inline
#define TRESTLE_UNROLL
#endif

namespace trestle::kernels {

inline constexpr uint32_t kBoardLooksPerAbort = 1024;
inline constexpr uint32_t kBoardLoadsTogether = 8;
inline constexpr uint32_t kBoardAbortedBlock = 1u << 16;  // what it adds to blocks_done, beside 1

TRESTLE_ON_DEVICE uint64_t line_of(uint32_t data, uint32_t flag) {
  return static_cast<uint64_t>(flag) << 32 | data;
}

TRESTLE_ON_DEVICE bool have_flag(const BoardLines& lines, uint32_t flag) {
  return static_cast<uint32_t>(lines.low >> 32) == flag && static_cast<uint32_t>(lines.high >> 32) == flag;
}
TRESTLE_ON_DEVICE uint64_t data_of(const BoardLines& lines) {
  return static_cast<uint32_t>(lines.low) | lines.high << 32;
}

// The lines that `source` writes in the memory of `owner`.
TRESTLE_ON_DEVICE uint64_t* board_lines_at(const CudaBoardCall& call, uint32_t owner, uint32_t source) {
  return call.lines[owner] + (uint64_t{call.half} * call.ranks + source) * call.lines_per_rank;
}

template <class Machine>
TRESTLE_ON_DEVICE void store_unit(const Machine& machine, uint64_t* lines, uint64_t unit, uint64_t data,
                                  uint32_t flag) {
  machine.store_lines(lines + 2 * unit,
                      {line_of(static_cast<uint32_t>(data), flag), line_of(static_cast<uint32_t>(data >> 32), flag)});
}

// A unit of every source of a group.
struct BoardUnits {
  uint64_t data[kBoardLoadsTogether];
};

// Of the ranks first, first + 1, ... that are in `from`, but not of this rank. False: aborted. Each round looks at all
// lines that are still missing, and all its loads are on their way before the first is looked at. So in whatever order
// lines come, one round after the last one finds all.
template <class Machine>
TRESTLE_ON_DEVICE bool take_units(const Machine& machine, const CudaBoardCall& call, uint32_t first, uint32_t from,
                                  uint64_t unit, BoardUnits& units) {
  const uint64_t* const lines = board_lines_at(call, call.rank, first) + kBoardHeaderLines + 2 * unit;
  const uint64_t stride = static_cast<uint32_t>(call.lines_per_rank);  // so that a product has 32-bit factors
  uint32_t missing = (from & ~(1u << call.rank)) >> first & ((1u << kBoardLoadsTogether) - 1);
  for (uint32_t looks = 1; missing != 0; ++looks) {
    BoardLines loaded[kBoardLoadsTogether] = {};
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < kBoardLoadsTogether; ++i) {
      if ((missing >> i & 1) != 0) loaded[i] = machine.load_lines(lines + i * stride);
    }
    // Here, because nvcc moves no look at a line across this branch. It would put one before the next load, and reuse
    // its registers.
    if (looks % kBoardLooksPerAbort == 0 && machine.load_word(&call.control->abort) != 0) return false;
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < kBoardLoadsTogether; ++i) {
      // Lines that were not loaded are 0, which no flag is.
      if (!have_flag(loaded[i], call.flag)) continue;
      units.data[i] = data_of(loaded[i]);
      missing &= ~(1u << i);
    }
  }
  return true;
}

// Elements of a unit, which may be the last one of its block. Bytes behind the end are 0.
template <class Stored>
struct BoardElements {
  static constexpr uint32_t kPerUnit = kBoardUnitBytes / sizeof(Stored);
  Stored at[kPerUnit];

  TRESTLE_ON_DEVICE static uint32_t count(const CudaBoardCall& call, uint64_t unit) {
    const uint64_t left = call.elements - unit * kPerUnit;
    return left < kPerUnit ? static_cast<uint32_t>(left) : kPerUnit;
  }
  TRESTLE_ON_DEVICE static BoardElements of(uint64_t data) {
    BoardElements elements;
    memcpy(elements.at, &data, kBoardUnitBytes);
    return elements;
  }
  TRESTLE_ON_DEVICE uint64_t data() const {
    uint64_t data;
    memcpy(&data, at, kBoardUnitBytes);
    return data;
  }
  // A whole unit at a multiple of its size is one access.
  TRESTLE_ON_DEVICE static bool in_one(const void* address, uint32_t count) {
    return count == kPerUnit && reinterpret_cast<uintptr_t>(address) % kBoardUnitBytes == 0;
  }
  TRESTLE_ON_DEVICE static BoardElements load(const CudaBoardCall& call, const void* block, uint64_t unit) {
    BoardElements elements = of(0);
    const uint32_t count = BoardElements::count(call, unit);
    const auto* const from = static_cast<const unsigned char*>(block) + unit * kBoardUnitBytes;
    if (in_one(from, count)) {
      memcpy(elements.at, __builtin_assume_aligned(from, kBoardUnitBytes), kBoardUnitBytes);
      return elements;
    }
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < kPerUnit; ++i) {
      if (i >= count) continue;
      if (call.elements_are_aligned != 0) {
        elements.at[i] = reinterpret_cast<const Stored*>(from)[i];
      } else {
        unsigned char bytes[sizeof(Stored)];
        for (uint32_t b = 0; b < sizeof(Stored); ++b) bytes[b] = from[i * sizeof(Stored) + b];
        memcpy(&elements.at[i], bytes, sizeof(Stored));
      }
    }
    return elements;
  }
  TRESTLE_ON_DEVICE void store(const CudaBoardCall& call, void* block, uint64_t unit) const {
    const uint32_t count = BoardElements::count(call, unit);
    auto* const to = static_cast<unsigned char*>(block) + unit * kBoardUnitBytes;
    if (in_one(to, count)) {
      memcpy(__builtin_assume_aligned(to, kBoardUnitBytes), at, kBoardUnitBytes);
      return;
    }
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < kPerUnit; ++i) {
      if (i >= count) continue;
      if (call.elements_are_aligned != 0) {
        reinterpret_cast<Stored*>(to)[i] = at[i];
      } else {
        unsigned char bytes[sizeof(Stored)];
        memcpy(bytes, &at[i], sizeof(Stored));
        for (uint32_t b = 0; b < sizeof(Stored); ++b) to[i * sizeof(Stored) + b] = bytes[b];
      }
    }
  }
};

TRESTLE_ON_DEVICE const unsigned char* own_block(const CudaBoardCall& call, uint32_t rank) {
  return static_cast<const unsigned char*>(call.send) + rank * call.send_stride;
}

// The sum of all ranks' blocks, or another operator, in the order of the ranks.
template <class E, ReduceOp op>
struct Sums {
  using Elements = BoardElements<typename E::Stored>;
  Elements result;

  TRESTLE_ON_DEVICE static uint64_t units(const CudaBoardCall& call) {
    return board_units(call.elements * sizeof(typename E::Stored));
  }
  TRESTLE_ON_DEVICE static uint64_t own(const CudaBoardCall& call, uint32_t rank, uint64_t unit) {
    Elements elements = Elements::load(call, own_block(call, rank), unit);
    if (call.is_scaled != 0) {
      typename E::Stored factor;
      memcpy(&factor, call.factor, sizeof factor);
      TRESTLE_UNROLL
      for (uint32_t i = 0; i < Elements::kPerUnit; ++i)
        elements.at[i] = E::narrow(fold<ReduceOp::kProd>(E::widen(elements.at[i]), E::widen(factor)));
    }
    return elements.data();
  }

  struct Values {
    typename E::Value at[Elements::kPerUnit];
  };
  TRESTLE_ON_DEVICE static void fold_in(Values& values, uint64_t data, bool first, uint32_t average_over) {
    const Elements elements = Elements::of(data);
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < Elements::kPerUnit; ++i) {
      auto value = E::widen(elements.at[i]);
      if constexpr (E::kScalesFirst) {
        if (average_over > 0) value *= average_factor(average_over, false);
      }
      values.at[i] = first ? value : fold<op>(values.at[i], value);
    }
  }
  template <class Machine>
  TRESTLE_ON_DEVICE bool combine(const Machine& machine, const CudaBoardCall& call, uint64_t unit) {
    if (call.recv_from == 0) return true;
    const uint64_t mine = own(call, call.rank, unit);
    Values values{};
    for (uint32_t first = 0; first < call.ranks; first += kBoardLoadsTogether) {
      BoardUnits units{};
      if (!take_units(machine, call, first, call.recv_from, unit, units)) return false;
      TRESTLE_UNROLL
      for (uint32_t i = 0; i < kBoardLoadsTogether; ++i) {
        const uint32_t rank = first + i;
        if (rank < call.ranks) fold_in(values, rank == call.rank ? mine : units.data[i], rank == 0, call.average_over);
      }
    }
    TRESTLE_UNROLL
    for (uint32_t i = 0; i < Elements::kPerUnit; ++i) {
      if (!E::kScalesFirst && call.average_over > 0) values.at[i] = divide(values.at[i], call.average_over);
      result.at[i] = E::narrow(values.at[i]);
    }
    return true;
  }
  TRESTLE_ON_DEVICE void store(const CudaBoardCall& call, uint64_t unit) const {
    if (call.recv_from != 0) result.store(call, call.recv, unit);
  }
};

// Blocks of bytes.
struct Copies {
  using Elements = BoardElements<unsigned char>;
  uint64_t results[kMostBoardRanks];
  uint64_t own_result = 0;

  TRESTLE_ON_DEVICE static uint64_t units(const CudaBoardCall& call) { return board_units(call.elements); }
  TRESTLE_ON_DEVICE static uint64_t own(const CudaBoardCall& call, uint32_t rank, uint64_t unit) {
    return Elements::load(call, own_block(call, rank), unit).data();
  }
  template <class Machine>
  TRESTLE_ON_DEVICE bool combine(const Machine& machine, const CudaBoardCall& call, uint64_t unit) {
    TRESTLE_UNROLL
    for (uint32_t first = 0; first < kMostBoardRanks; first += kBoardLoadsTogether) {
      if (first >= call.ranks) continue;
      BoardUnits units{};
      if (!take_units(machine, call, first, call.recv_from, unit, units)) return false;
      TRESTLE_UNROLL
      for (uint32_t i = 0; i < kBoardLoadsTogether; ++i) {
        if (first + i != call.rank) results[first + i] = units.data[i];
      }
    }
    if ((call.recv_from >> call.rank & 1) != 0) own_result = own(call, call.rank, unit);
    return true;
  }
  TRESTLE_ON_DEVICE void store(const CudaBoardCall& call, uint64_t unit) const {
    TRESTLE_UNROLL
    for (uint32_t rank = 0; rank < kMostBoardRanks; ++rank) {
      if (rank >= call.ranks || (call.recv_from >> rank & 1) == 0) continue;
      auto* const block = static_cast<unsigned char*>(call.recv) + rank * call.recv_stride;
      Elements::of(rank == call.rank ? own_result : results[rank]).store(call, block, unit);
    }
  }
};

template <class Machine>
TRESTLE_ON_DEVICE void clear_other_half(const Machine& machine, const CudaBoardCall& call) {
  const uint64_t lines = call.ranks * call.lines_per_rank;
  uint64_t* const from = call.lines[call.rank] + (1 - call.half) * lines;
  for (uint64_t i = machine.thread(); i < lines; i += machine.threads()) machine.store_line(from + i, 0);
  machine.fence();
  machine.sync();
}

template <class Machine>
TRESTLE_ON_DEVICE bool moves_data(const Machine& machine) {
  return machine.thread() < machine.data_threads();
}

// The host stores `abort` and then loads `begun`; this stores `begun` and then loads `abort`. So the host knows of
// every kernel that does not know of the abort. These words are in the host's memory, which takes microseconds. A warp
// waits for them as a whole, so this is done by one that has no data. The others send and wait for lines meanwhile;
// only results wait for the answer. False: aborted.
template <class Machine>
TRESTLE_ON_DEVICE bool begin_board(const Machine& machine, const CudaBoardCall& call) {
  if (machine.thread() != machine.data_threads()) return true;
  machine.store_word(&call.control->begun, call.sequence);
  if (machine.block() == 0 && call.mark_word != nullptr) machine.store_word(call.mark_word, call.mark);
  machine.fence();
  return machine.load_word(&call.control->abort) == 0;
}

template <class Machine>
TRESTLE_ON_DEVICE void send_headers(const Machine& machine, const CudaBoardCall& call) {
  const uint32_t threads = machine.threads() - machine.data_threads();
  for (uint32_t rank = machine.thread() - machine.data_threads(); rank < call.ranks; rank += threads) {
    if (rank != call.rank) store_unit(machine, board_lines_at(call, rank, call.rank), 0, call.stamp, call.flag);
  }
}

// A rank whose call is another one shows here. Its blocks may be shorter, so other threads of this grid may wait for
// ever: the host ends that by an abort. False: aborted.
template <class Machine>
TRESTLE_ON_DEVICE bool wait_for_headers(const Machine& machine, const CudaBoardCall& call) {
  const uint32_t threads = machine.threads() - machine.data_threads();
  for (uint32_t rank = machine.thread() - machine.data_threads(); rank < call.ranks; rank += threads) {
    if (rank == call.rank) continue;
    const uint64_t* const lines = board_lines_at(call, call.rank, rank);
    BoardLines header = machine.load_lines(lines);
    for (uint32_t looks = 1; !have_flag(header, call.flag); ++looks) {
      if (looks % kBoardLooksPerAbort == 0 && machine.load_word(&call.control->abort) != 0) return false;
      header = machine.load_lines(lines);
    }
    const uint64_t stamp = data_of(header);
    if (stamp == call.stamp) continue;
    machine.store_line(&call.control->other_stamps[rank], stamp);
    while (machine.load_word(&call.control->abort) == 0) machine.pause();
    return false;
  }
  return true;
}

template <class Machine, class Data>
TRESTLE_ON_DEVICE void send_blocks(const Machine& machine, const CudaBoardCall& call, uint64_t units) {
  const uint64_t stride = uint64_t{machine.blocks()} * machine.data_threads();
  const uint64_t first = uint64_t{machine.block()} * machine.data_threads() + machine.thread();
  for (uint64_t unit = first; unit < units; unit += stride) {
    uint64_t data = 0;
    bool is_loaded = false;
    for (uint32_t rank = 0; rank < call.ranks; ++rank) {
      if (rank == call.rank || (call.send_to >> rank & 1) == 0) continue;
      if (!is_loaded || call.send_stride != 0) data = Data::own(call, rank, unit);
      is_loaded = true;
      store_unit(machine, board_lines_at(call, rank, call.rank) + kBoardHeaderLines, unit, data, call.flag);
    }
  }
}

// Threads of a block stay together at the first unit, where they learn whether they may write results. Those without
// data do nothing else here. False: aborted.
template <class Machine, class Data>
TRESTLE_ON_DEVICE bool take_blocks(const Machine& machine, const CudaBoardCall& call, uint64_t units, bool aborted) {
  const uint64_t stride = uint64_t{machine.blocks()} * machine.data_threads();
  const uint64_t begin = uint64_t{machine.block()} * machine.data_threads();
  uint64_t base = begin;
  do {
    const uint64_t unit = base + machine.thread();
    Data data{};
    const bool has_unit = moves_data(machine) && !aborted && unit < units;
    const bool has_result = has_unit && data.combine(machine, call, unit);
    if (has_result != has_unit) aborted = true;
    if (base == begin) aborted = machine.any(aborted);
    if (aborted) return false;
    if (has_result) data.store(call, unit);
    base += stride;
  } while (base < units);
  return true;
}

// Thread 0 alone fences. The barrier puts what all threads of its block have done before its fence, and the counter
// puts the fences of all blocks before that of the last one.
//
// A call that found no abort does not ask again. It has stored `begun` before the host looks there, so the host, which
// has stored `abort` since, waits for `ended` and stores `chain` after that. Until then `chain` may say that this call
// has ended, because its results are good. The next kernel finds `abort`.
template <class Machine>
TRESTLE_ON_DEVICE void end_board(const Machine& machine, const CudaBoardCall& call, bool aborted) {
  aborted = machine.any(aborted);
  if (machine.thread() != 0) return;
  machine.release();
  if (machine.blocks() > 1) {
    const uint32_t done = machine.add(&call.words->blocks_done, aborted ? 1 + kBoardAbortedBlock : 1);
    if (done % kBoardAbortedBlock != machine.blocks()) return;
    aborted = done >= kBoardAbortedBlock;
    machine.store_word(&call.words->blocks_done, 0);
    machine.release();
  }
  if (!aborted) {
    machine.store_line(reinterpret_cast<uint64_t*>(&call.control->ended), line_of(call.sequence, call.sequence));
  } else {
    machine.store_word(&call.words->stopped, 1);
    machine.release();
    machine.store_word(&call.control->ended, call.sequence);
  }
}

template <class Machine, class Data>
TRESTLE_ON_DEVICE void run_board(const Machine& machine, const CudaBoardCall& call) {
  const uint64_t units = Data::units(call);
  // This word is near. Threads may find different values, if it is set now. A thread that finds 0 has good data to
  // send.
  const bool is_stopped = machine.load_word(&call.words->stopped) != 0;
  const bool has_headers = machine.block() == 0 && !is_stopped;
  bool aborted = is_stopped;
  if (machine.block() == 0 && call.clears != 0) clear_other_half(machine, call);
  if (moves_data(machine)) {
    if (!is_stopped) send_blocks<Machine, Data>(machine, call, units);
  } else {
    if (has_headers) send_headers(machine, call);
    if (!begin_board(machine, call)) aborted = true;
    if (has_headers && !aborted) aborted = !wait_for_headers(machine, call);
  }
  aborted = !take_blocks<Machine, Data>(machine, call, units, aborted);
  end_board(machine, call, aborted);
}

}  // namespace trestle::kernels
