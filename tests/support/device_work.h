// Random work on a device's memory, and the same work on the host beside it, for tests of queues on devices.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "device/device.h"
#include "engine/work/work.h"

namespace trestle {

// Memory of a device and its image on the host. Both hold the same bytes when a work begins.
class WorkMemory {
 public:
  WorkMemory(Device& device, uint64_t bytes)
      : device_(device),
        image_(bytes),
        stream_(device.make_stream(false).value()),
        memory_(device.allocate(bytes).value()),
        pinned_(device.allocate_pinned(bytes).value()) {}
  WorkMemory(const WorkMemory&) = delete;
  WorkMemory& operator=(const WorkMemory&) = delete;
  ~WorkMemory() {
    EXPECT_TRUE(device_.free_pinned(pinned_).ok());
    EXPECT_TRUE(device_.free(memory_).ok());
    EXPECT_TRUE(device_.destroy_stream(stream_).ok());
  }

  uint64_t bytes() const { return image_.size(); }
  std::byte* on_device() { return memory_; }
  std::byte* on_host() { return image_.data(); }

  // Bytes that are no NaN and no infinity in any type at any address: the bits of a NaN may differ.
  void fill(Rng& rng) {
    for (size_t at = 0; at + sizeof(uint64_t) <= image_.size(); at += sizeof(uint64_t)) {
      const uint64_t word = (rng.next() & 0x9f9f9f9f9f9f9f9f) | 0x2020202020202020;
      std::memcpy(image_.data() + at, &word, sizeof word);
    }
    std::memcpy(pinned_, image_.data(), bytes());
    copy(memory_, pinned_);
  }
  testing::AssertionResult is_equal() {
    copy(pinned_, memory_);
    const auto differs = std::mismatch(image_.begin(), image_.end(), pinned_).first;
    if (differs == image_.end()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "byte " << differs - image_.begin() << " of " << bytes() << " differs";
  }

 private:
  void copy(std::byte* dst, const std::byte* src) {
    ASSERT_TRUE(device_.copy(dst, src, bytes(), stream_).ok());
    ASSERT_TRUE(device_.synchronize(stream_).ok());
  }

  Device& device_;
  std::vector<std::byte> image_;
  StreamHandle* const stream_;
  std::byte* const memory_;
  std::byte* const pinned_;
};

struct WorkShape {
  WorkKind kind = WorkKind::kCopy;
  ReduceSpec spec;
  size_t sources = 1;
  uint64_t elements = 0;
  uint64_t element_bytes() const { return kind == WorkKind::kCopy ? 1 : size_of(spec.type); }
};

// A work of this shape on random pieces: long, short, in rows, with gaps, at any address, sometimes in place. The lists
// of the destination and the sources have the same boundaries or others.
class RandomWork {
 public:
  RandomWork(WorkMemory& memory, const WorkShape& shape, Rng& rng) : rng_(rng) {
    const uint64_t unit = shape.element_bytes();
    const uint64_t bytes = shape.elements * unit;
    const size_t areas = shape.sources + 1;
    const uint64_t area_bytes = memory.bytes() / areas / 256 * 256;
    const bool alike = rng.below(2) == 0;
    Cuts cuts = cut(bytes, unit);
    for (size_t area = 0; area < areas; ++area) {
      if (!alike) cuts = cut(bytes, unit);
      places_.push_back(spread(cuts, area * area_bytes, area_bytes, bytes));
    }
    if (rng.below(4) == 0) places_[0] = places_[1 + rng.below(shape.sources)];  // in place
    for (std::byte& byte : factor_) byte = static_cast<std::byte>((rng.next() & 0x9f) | 0x20);
    on_device_.build(memory.on_device(), places_, rng, true);
    on_host_.build(memory.on_host(), places_, rng, false);
    for (Work* const work : {&on_device_.work, &on_host_.work}) {
      work->kind = shape.kind;
      work->bytes = bytes;
      work->source_count = static_cast<uint32_t>(shape.sources);
      work->spec = shape.spec;
      work->reduce = find_own_reduce(shape.spec.type, shape.spec.op);
      work->factor = factor_.data();
    }
  }
  RandomWork(const RandomWork&) = delete;
  RandomWork& operator=(const RandomWork&) = delete;

  Work& on_device() { return on_device_.work; }
  const Work& on_host() const { return on_host_.work; }

 private:
  using Cuts = std::vector<uint64_t>;
  struct Place {
    uint64_t at = 0;
    uint64_t bytes = 0;
  };
  using Places = std::vector<Place>;

  struct Side {
    Work work;
    std::vector<Piece> write;
    std::vector<std::vector<ConstPiece>> read;
    std::vector<std::span<const ConstPiece>> sources;

    void build(std::byte* base, const std::vector<Places>& places, Rng& rng, bool with_empty) {
      for (const Place& place : places[0]) {
        if (with_empty && rng.below(8) == 0) write.push_back({base + place.at, 0});
        write.push_back({base + place.at, place.bytes});
      }
      for (size_t s = 1; s < places.size(); ++s) {
        std::vector<ConstPiece>& list = read.emplace_back();
        for (const Place& place : places[s]) {
          list.push_back({base + place.at, place.bytes});
          if (with_empty && rng.below(8) == 0) list.push_back({base + place.at, 0});
        }
      }
      for (const auto& list : read) sources.emplace_back(list);
      work.destination = write;
      work.sources = sources;
    }
  };

  Cuts cut(uint64_t bytes, uint64_t unit) {
    const std::array<uint64_t, 4> most = {bytes, bytes / 4, 40 * unit, unit};
    const uint64_t limit = std::max(unit, most[rng_.below(most.size())] / unit * unit);
    const bool equal = rng_.below(2) == 0;
    Cuts cuts;
    for (uint64_t at = 0; at < bytes; at += cuts.back()) {
      const uint64_t take = equal ? limit : (rng_.below(limit / unit) + 1) * unit;
      cuts.push_back(std::min(take, bytes - at));
    }
    return cuts;
  }

  Places spread(const Cuts& cuts, uint64_t first, uint64_t room, uint64_t bytes) {
    const std::array<uint64_t, 3> starts = {0, 8, rng_.below(32)};
    uint64_t at = first + starts[rng_.below(starts.size())];
    uint64_t gap = rng_.below(3) * 16 + rng_.below(2) * rng_.below(16);
    const bool equal = rng_.below(2) == 0;
    if (32 + bytes + cuts.size() * 48 > room) gap = 0;
    Places places;
    for (const uint64_t one : cuts) {
      places.push_back({at, one});
      at += one + (equal || gap == 0 ? gap : rng_.below(gap));
    }
    return places;
  }

  Rng& rng_;
  std::vector<Places> places_;  // the destination's, then each source's
  alignas(8) std::array<std::byte, 8> factor_{};
  Side on_device_;
  Side on_host_;
};

// Calls check(shape) for every kind, type and operator, and several numbers of sources.
template <class Check>
void for_work_shapes(uint64_t elements, Check check) {
  static constexpr uint8_t kSums[] = {0, 1, 1, 0, 0, 1, 0, 0, 1};
  check(WorkShape{WorkKind::kCopy, {}, 1, elements});
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    check(WorkShape{WorkKind::kScale, {type, ReduceOp::kSum, 0, false}, 1, elements});
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg, kPreMulSum}) {
      for (const size_t sources : {1, 2, 3, 4, 9}) {
        const uint32_t average_over = op == ReduceOp::kAvg ? static_cast<uint32_t>(sources) + 1 : 0;
        check(WorkShape{WorkKind::kReduce, {type, op, average_over, false, kSums}, sources, elements});
      }
    }
  }
}

}  // namespace trestle
