// All-to-all over the dimensions: each phase brings every block one coordinate closer to its destination, with fewer
// and larger messages than a flat one.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/prepare/prepared.h"
#include "sched/select/select.h"
#include "unit/engine/grids.h"

namespace trestle {
namespace regrouping_test {
namespace {

uint64_t preferred_segment(const void*, const std::vector<int32_t>&) {
  return 4096;
}

PrepareRequest exchange(uint64_t count, bool in_place) {
  PrepareRequest request;
  request.collective = Collective::kAllToAll;
  request.count = count;
  request.in_place = in_place;
  return request;
}

std::vector<std::shared_ptr<const Prepared>> prepare_all(const Topology& topology, const PrepareRequest& request,
                                                         const std::string& algo, uint32_t chunks = 1) {
  SelectionRequest selection;
  selection.collective = Collective::kAllToAll;
  selection.element_bytes = 4;
  selection.bytes = vector_elements(request, topology.ranks()) * 4;
  SelectionConfig config;
  config.algo = algo;
  config.chunks = chunks;
  const Schedule schedule = select_schedule(selection, topology, config).value();
  std::vector<std::shared_ptr<const Prepared>> all;
  for (int32_t rank = 0; rank < topology.ranks(); ++rank) {
    const PrepareContext context{&topology, rank, true, &preferred_segment, nullptr};
    auto prepared = prepare(request, schedule, context);
    EXPECT_TRUE(prepared.ok()) << (prepared.ok() ? "" : prepared.error().message);
    all.push_back(std::move(prepared).value());
  }
  return all;
}

std::string on_each(const std::string& name, size_t dimensions) {
  std::string list = name;
  while (--dimensions > 0) list += "," + name;
  return list;
}

// The sender of an element, and its index there.
using Label = std::pair<int32_t, uint64_t>;
// The three buffers of a rank. In place the first two are the same.
using Memory = std::array<std::vector<Label>, 3>;

class Ranks {
 public:
  Ranks(const std::vector<std::shared_ptr<const Prepared>>& prepared, uint64_t elements) : prepared_(prepared) {
    for (size_t r = 0; r < prepared.size(); ++r) {
      Memory& memory = memories_.emplace_back();
      for (auto& buffer : memory) buffer.assign(elements, {-1, 0});
      memory[2].resize(prepared[r]->staging_bytes / 4);
      for (uint64_t i = 0; i < elements; ++i) memory[0][i] = {static_cast<int32_t>(r), i};
    }
  }

  // The checker proves what the plans of one phase do: output block j is member j's block for this rank.
  void run(size_t chunk, size_t stage) {
    std::vector<std::vector<Label>> taken(memories_.size());
    for (size_t r = 0; r < memories_.size(); ++r) {
      const PreparedPhase& phase = prepared_[r]->phases[chunk][stage];
      for (const int32_t peer : phase.peers) {
        const PreparedPhase& theirs = prepared_[static_cast<size_t>(peer)]->phases[chunk][stage];
        const uint32_t parts = parts_of(*phase.plan);
        const uint32_t mine = static_cast<uint32_t>(phase.plan->me) * parts;
        for (uint32_t i = theirs.input.first[mine]; i < theirs.input.first[mine + parts]; ++i) {
          const PieceRef& piece = theirs.input.pieces[i];
          const auto& from = at(static_cast<size_t>(peer), piece.buffer);
          for (uint64_t e = 0; e < piece.bytes / 4; ++e) taken[r].push_back(from.at(piece.offset / 4 + e));
        }
      }
    }
    for (size_t r = 0; r < memories_.size(); ++r) {
      size_t next = 0;
      for (const PieceRef& piece : prepared_[r]->phases[chunk][stage].output.pieces) {
        for (uint64_t e = 0; e < piece.bytes / 4; ++e) {
          at(r, piece.buffer).at(piece.offset / 4 + e) = taken[r].at(next++);
        }
      }
      ASSERT_EQ(next, taken[r].size());
    }
  }

  std::vector<Label>& at(size_t rank, BufferId buffer) {
    const bool one = prepared_[rank]->in_place && buffer == BufferId::kRecv;
    return memories_[rank][one ? 0 : static_cast<size_t>(buffer)];
  }

 private:
  const std::vector<std::shared_ptr<const Prepared>>& prepared_;
  std::vector<Memory> memories_;
};

TEST(Regrouping, BringsEveryBlockToItsPlace) {
  const std::vector<std::vector<int32_t>> grids = {{4, 2}, {2, 4}, {3, 2}, {2, 3, 2}, {3, 1, 2}, {2, 2, 2, 2}, {5, 3}};
  for (const std::vector<int32_t>& sizes : grids) {
    const Topology topology = engine_grid(sizes);
    const auto n = static_cast<uint64_t>(topology.ranks());
    for (const char* name : {"direct", "bruck", "pairwise"}) {
      for (const bool in_place : {false, true}) {
        for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{200}}) {
          const auto prepared =
              prepare_all(topology, exchange(count, in_place), on_each(name, sizes.size()), count == 200 ? 3 : 1);
          ASSERT_EQ(prepared[0]->phases[0].size(), sizes.size()) << to_string(prepared[0]->schedule, topology);
          Ranks ranks(prepared, n * count);
          for (size_t chunk = 0; chunk < prepared[0]->phases.size(); ++chunk) {
            for (size_t stage = 0; stage < sizes.size(); ++stage) ranks.run(chunk, stage);
          }
          for (uint64_t r = 0; r < n; ++r) {
            for (uint64_t i = 0; i < n * count; ++i) {
              const Label expected{static_cast<int32_t>(i / count), r * count + i % count};
              ASSERT_EQ(ranks.at(r, BufferId::kRecv)[i], expected) << "rank " << r << ", element " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Regrouping, SendsFewerAndLongerMessages) {
  const Topology topology = engine_grid({4, 3, 2});
  const uint64_t vector_bytes = uint64_t{24} * 10 * 4;
  const auto prepared = prepare_all(topology, exchange(10, false), "alltoall:direct,direct,direct");
  const uint64_t sizes[] = {4, 3, 2};
  for (const auto& rank : prepared) {
    size_t messages = 0;
    for (size_t stage = 0; stage < 3; ++stage) {
      uint64_t sent_bytes = 0;
      const PreparedPhase& phase = rank->phases[0][stage];
      for (size_t s = 0; s < phase.plan->steps.size(); ++s) {
        if (phase.plan->steps[s].kind != StepKind::kSend) continue;
        ++messages;
        sent_bytes += phase.step_bytes[s];
      }
      EXPECT_EQ(sent_bytes, vector_bytes / sizes[stage] * (sizes[stage] - 1)) << "dimension " << stage + 1;
    }
    EXPECT_EQ(messages, 3u + 2 + 1) << "instead of 23";
    EXPECT_EQ(rank->staging_bytes, vector_bytes) << "send, receive, staging, receive";
  }
}

}  // namespace
}  // namespace regrouping_test
}  // namespace trestle
