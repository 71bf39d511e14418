#include "perf/backend/graphs.h"

namespace trestle::perf {

void Graphs::begin_capture() {
  drop();
  for (const Rank& rank : ranks_) rank.gpu->begin_capture(rank.stream);
}

void Graphs::end_capture() {
  for (Rank& rank : ranks_) rank.graph = rank.gpu->end_capture(rank.stream);
}

void Graphs::launch() {
  for (const Rank& rank : ranks_) rank.gpu->launch(rank.graph, rank.stream);
}

void Graphs::drop() {
  for (Rank& rank : ranks_) {
    if (rank.graph != nullptr) rank.gpu->destroy_graph(rank.graph);
    rank.graph = nullptr;
  }
}

}  // namespace trestle::perf
