#include "perf/driver/measure.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "perf/driver/ending.h"
#include "perf/driver/pattern.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Buffers {
  char* send;
  char* recv;
};

// Every iteration uses another part of the buffers. So small messages do not stay in the cache, and the verification
// detects a peer that still reads where the previous message lay.
Buffers buffers_of(Backend& backend, size_t i, const Row& row, bool in_place, size_t iteration) {
  const size_t places = row.size_bytes == 0 ? 1 : std::max<size_t>(1, row.buffer_bytes / row.size_bytes);
  const size_t start =
      row.size_bytes * (iteration % places) + static_cast<size_t>(row.options->unalign) * row.element_bytes;
  const RankBuffers& state = backend.buffers(i);
  if (!in_place) return {state.send + start, state.recv + start};
  const size_t block = static_cast<size_t>(backend.rank(i)) * row.shape.count * row.element_bytes;
  char* shared = state.recv + start;
  const auto at = [&](InPlace place) { return place == InPlace::kBlock ? shared + block : shared; };
  return {at(row.collective->send_in_place), at(row.collective->recv_in_place)};
}

Case case_of(const Row& row, int rank) {
  Case call = row.call;
  call.rank = rank;
  return call;
}

// Runs `repeats` operations of every rank. Steps are enqueued one after the other and not in one group, because calls
// of a group do not wait for each other.
void enqueue(Backend& backend, const Row& row, bool in_place, size_t iteration, int repeats) {
  const bool group = repeats > 1 || backend.count() > 1;
  const int steps = row.collective->steps != nullptr ? row.collective->steps(row.call.nranks) : 1;
  for (int step = 0; step < steps; ++step) {
    if (group) backend.group_start();
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (size_t i = 0; i < backend.count(); ++i) {
        const Buffers buffers = buffers_of(backend, i, row, in_place, iteration);
        Case call = case_of(row, backend.rank(i));
        call.step = step;
        if (call.op == kMulSum) call.op = backend.mul_sum(i);
        row.collective->run(call, buffers.send, buffers.recv, backend.calls(i));
      }
    }
    if (group) backend.group_end();
  }
}

// Writes this rank's data. If the host cannot write to the buffer directly, the data is made on the host and copied. It
// has zeros where the collective writes nothing.
void fill_send(Access& access, const Row& row, const Case& call, char* send) {
  if (access.is_direct()) return row.collective->fill_send(call, send);
  const size_t bytes = row.shape.send * row.element_bytes;
  std::vector<uint64_t> data((bytes + 7) / 8);
  row.collective->fill_send(call, data.data());
  access.write(send, data.data(), bytes);
}

// The number of wrong elements in this rank's receive buffer. Computes the expected ones piece by piece, so that they
// stay in the cache.
uint64_t count_wrong_elements(Access& access, const Row& row, const Case& call, const char* recv) {
  constexpr size_t kPiece = 8192;
  constexpr size_t kCopiedPiece = 1 << 20;  // fewer copies
  const size_t piece = access.is_direct() ? kPiece : kCopiedPiece;
  std::vector<uint64_t> expected(piece);  // 8 bytes: the size of the largest type
  std::vector<uint64_t> copied(access.is_direct() ? 0 : piece);
  const size_t total = row.collective->verified(call);
  // Only a real reduction may be inexact.
  const bool reduces = row.collective->kind != trestleCollSendRecv && row.collective->sweeps_ops;
  uint64_t wrong = 0;
  for (size_t first = 0; first < total; first += piece) {
    const size_t count = std::min(piece, total - first);
    row.collective->fill_expected(call, first, count, expected.data());
    const void* found = recv + first * row.element_bytes;
    if (!access.is_direct()) {
      access.read(copied.data(), recv + first * row.element_bytes, count * row.element_bytes);
      found = copied.data();
    }
    wrong += count_wrong(call.type, reduces ? call.op : trestleSum, found, expected.data(), count);
  }
  return wrong;
}

// For every process, the longest samples of its threads.
std::vector<std::vector<double>> longest_of_processes(Ranks& ranks, const std::vector<double>& samples) {
  const std::vector<std::vector<double>> all = ranks.gather(samples);
  const size_t per_process = all.size() / static_cast<size_t>(ranks.layout().processes);
  std::vector<std::vector<double>> processes;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (rank % per_process == 0) processes.push_back(all[rank]);
    std::vector<double>& longest = processes.back();
    for (size_t i = 0; i < longest.size(); ++i) longest[i] = std::max(longest[i], all[rank][i]);
  }
  return processes;
}

void barrier_after(Ranks& ranks, int blocking, Clock::time_point& start, Progress& progress) {
  if (blocking == 1) return ranks.barrier();
  const Clock::time_point before = Clock::now();
  progress.tick();
  ranks.barrier();
  start += Clock::now() - before;  // neither the tick nor the barrier is timed
}

double us_per_operation(const Row& row, Clock::time_point start) {
  return seconds_since(start) * 1e6 / row.options->agg_iters;
}

double middle_of(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Row make_row(const Collective& collective, const Options& options, trestleDataType_t type, trestleRedOp_t op, int root,
             int nranks, size_t bytes, size_t buffer_bytes) {
  Row row{};
  row.collective = &collective;
  row.options = &options;
  row.element_bytes = type_info(type).bytes;
  row.shape = collective.shape(bytes / row.element_bytes, row.element_bytes, nranks);
  row.size_bytes = std::max(row.shape.send, row.shape.recv) * row.element_bytes;
  row.buffer_bytes = buffer_bytes;
  row.call = {type, op, std::max(root, 0), nranks, 0, row.shape.count, 0, 0};
  return row;
}

size_t moved_bytes(const Row& row) {
  if (row.collective->moved == nullptr) return row.size_bytes;
  return row.collective->moved(row.shape, row.call.nranks) * row.element_bytes;
}

namespace {

bool is_by_graph(Backend& backend, const Row& row) {
  return row.options->graph_launches != 0 && !backend.graphs().empty();
}

// The time of all launches, each of all iterations.
double seconds_of_launches(Ranks& ranks, Backend& backend, const Row& row, bool in_place) {
  const Options& options = *row.options;
  backend.graphs().begin_capture();
  for (int i = 0; i < options.iters; ++i) enqueue(backend, row, in_place, static_cast<size_t>(i), options.agg_iters);
  backend.graphs().end_capture();
  ranks.barrier();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.graph_launches; ++i) backend.graphs().launch();
  double elapsed = seconds_since(start);
  backend.wait_for_launches();
  if (!options.report_cpu_time) elapsed = seconds_since(start);
  return elapsed / options.graph_launches;
}

// A call whose result is verified, by a graph if that is what is measured.
void enqueue_once(Backend& backend, const Row& row, bool in_place) {
  if (!is_by_graph(backend, row)) {
    enqueue(backend, row, in_place, 0, 1);
    return backend.wait();
  }
  backend.graphs().begin_capture();
  enqueue(backend, row, in_place, 0, 1);
  backend.graphs().end_capture();
  backend.graphs().launch();
  backend.wait_for_launches();
}

}  // namespace

void warm_up(Backend& backend, const Row& row, int iters) {
  for (int i = 0; i < iters; ++i) enqueue(backend, row, false, static_cast<size_t>(i), row.options->agg_iters);
  backend.wait();
}

Timing measure(Ranks& ranks, Backend& backend, const Row& row, bool in_place, Progress& progress) {
  const Options& options = *row.options;
  if (is_by_graph(backend, row)) {
    const double seconds = seconds_of_launches(ranks, backend, row, in_place);
    Timing timing;
    timing.seconds = ranks.average(seconds / (static_cast<double>(options.iters) * options.agg_iters));
    return timing;
  }
  std::vector<double> samples;
  samples.reserve(options.per_iteration ? static_cast<size_t>(options.iters) : 0);
  ranks.barrier();
  Clock::time_point start = Clock::now();
  for (int i = 0; i < options.iters; ++i) {
    const Clock::time_point before = options.per_iteration ? Clock::now() : start;
    enqueue(backend, row, in_place, static_cast<size_t>(i), options.agg_iters);
    if (options.blocking == 0 && !options.per_iteration) continue;
    backend.wait();
    if (options.per_iteration) samples.push_back(seconds_since(before) * 1e6 / options.agg_iters);
    if (options.blocking == 1 || options.blocking == 3) barrier_after(ranks, options.blocking, start, progress);
  }
  double elapsed = seconds_since(start);
  backend.wait();
  if (!options.report_cpu_time) elapsed = seconds_since(start);
  Timing timing;
  timing.seconds = ranks.average(elapsed / (static_cast<double>(options.iters) * options.agg_iters));
  if (!options.per_iteration) return timing;
  timing.iterations_us = ranks.combine(samples, Combine::kMax);
  if (!options.json_path.empty()) timing.process_iterations_us = longest_of_processes(ranks, samples);
  return timing;
}

CallTimes measure_calls(Ranks& ranks, Backend& backend, const Row& row, bool in_place) {
  std::vector<double> host, launch;
  for (int i = 0; i < row.options->iters; ++i) {
    ranks.barrier();
    const Clock::time_point start = Clock::now();
    enqueue(backend, row, in_place, static_cast<size_t>(i), row.options->agg_iters);
    host.push_back(us_per_operation(row, start));
    backend.wait();
    launch.push_back(us_per_operation(row, start));
  }
  return {ranks.average(middle_of(host)), 0, ranks.average(middle_of(launch))};
}

double measure_issue(Ranks& ranks, Backend& backend, const Row& row, bool in_place) {
  std::vector<double> issue;
  for (int i = 0; i < row.options->iters; ++i) {
    ranks.barrier();
    enqueue(backend, row, in_place, static_cast<size_t>(2 * i), row.options->agg_iters);
    const Clock::time_point start = Clock::now();
    enqueue(backend, row, in_place, static_cast<size_t>(2 * i + 1), row.options->agg_iters);
    issue.push_back(us_per_operation(row, start));
    backend.wait();
  }
  return ranks.average(middle_of(issue));
}

Verdict verify(Ranks& ranks, Backend& backend, const Row& row, bool in_place, Progress& progress) {
  for (int round = 0; round < row.options->checks; ++round) {
    progress.tick();
    Row fresh = row;
    fresh.call.seed = (static_cast<uint64_t>(round) << 48) ^ (row.size_bytes << 1) ^ (in_place ? 1 : 0);
    for (size_t i = 0; i < backend.count(); ++i) {
      const Buffers buffers = buffers_of(backend, i, row, in_place, 0);
      char* start = in_place ? buffers_of(backend, i, row, false, 0).recv : buffers.recv;
      backend.access(i).zero(start, row.size_bytes);
      fill_send(backend.access(i), fresh, case_of(fresh, backend.rank(i)), buffers.send);
    }
    enqueue_once(backend, fresh, in_place);
    uint64_t wrong = 0;
    for (size_t i = 0; i < backend.count(); ++i) {
      wrong += count_wrong_elements(backend.access(i), fresh, case_of(fresh, backend.rank(i)),
                                    buffers_of(backend, i, row, in_place, 0).recv);
    }
    const double all = ranks.combine(static_cast<double>(wrong), Combine::kSum);
    if (all > 0) return {static_cast<uint64_t>(all), wrong > 0};
  }
  return {0, false};
}

}  // namespace trestle::perf
