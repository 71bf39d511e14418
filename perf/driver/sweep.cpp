#include "perf/driver/sweep.h"

#include <cstdio>

#include "perf/driver/types.h"
#include "perf/report/table.h"

namespace trestle::perf {
namespace {

std::vector<int> roots_of(const Collective& collective, const Options& options, int nranks) {
  if (!collective.sweeps_roots) return {-1};
  if (options.root >= 0) return {options.root};
  std::vector<int> roots;
  for (int root = 0; root < nranks; ++root) roots.push_back(root);
  return roots;
}

uint64_t rows_of(const Options& options, size_t ops, size_t roots) {
  return size_count(options) * options.types.size() * ops * roots * static_cast<uint64_t>(options.run_cycles);
}

}  // namespace

Sweep::Sweep(Ranks& ranks, const Collective& collective, const Options& options, size_t buffer_bytes,
             JsonReport* report)
    : ranks_(ranks),
      collective_(collective),
      options_(options),
      buffer_bytes_(buffer_bytes),
      report_(report),
      ops_(collective.sweeps_ops ? options.ops : std::vector<trestleRedOp_t>{trestleSum}),
      roots_(roots_of(collective, options, ranks.layout().nranks())),
      progress_(ranks.prints() ? stderr : nullptr, rows_of(options, ops_.size(), roots_.size())) {}

Tally Sweep::run() {
  for (int cycle = 0; options_.run_cycles == 0 || cycle < options_.run_cycles; ++cycle) {
    for (const trestleDataType_t type : options_.types) {
      for (const trestleRedOp_t op : ops_) {
        if (op == kMulSum) ranks_.use_mul_sum(type);
        for (const int root : roots_) run_sizes(type, op, root);
      }
    }
  }
  return tally_;
}

void Sweep::run_sizes(trestleDataType_t type, trestleRedOp_t op, int root) {
  const auto row_of = [&](size_t bytes) {
    return make_row(collective_, options_, type, op, root, ranks_.layout().nranks(), bytes, buffer_bytes_);
  };
  for (size_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes *= 2) {
    const Row row = row_of(bytes);
    progress_.begin_stage("warm-up", row.size_bytes, static_cast<uint64_t>(options_.warmup_iters) * agg_iters());
    warm_up(ranks_, row, options_.warmup_iters);
  }
  for (size_t bytes = options_.min_bytes; bytes != 0; bytes = next_size(options_, bytes)) {
    run_row(row_of(bytes), root);
  }
}

void Sweep::show(const std::string& text) const {
  if (!ranks_.prints()) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Sweep::run_row(const Row& row, int root) {
  const RowHead head = {row.size_bytes, row.shape.count, type_info(row.call.type).name,
                        collective_.sweeps_ops ? op_name(row.call.op) : collective_.op_label, root};
  std::string line;
  const auto add = [&](const std::string& text) {
    if (progress_.shown()) {
      line += text;
    } else {
      show(text);
    }
  };
  add(row_head(head));
  const Half out_of_place = run_half(row, false);
  add(row_half(&out_of_place, options_.per_iteration));
  Half in_place;
  if (collective_.in_place) in_place = run_half(row, true);
  const Half* second = collective_.in_place ? &in_place : nullptr;
  add(row_half(second, options_.per_iteration));
  if (report_ != nullptr && ranks_.prints()) report_->row(head, out_of_place, second, options_);
  add((options_.report_timestamps ? row_timestamp() : "") + "\n");
  progress_.end_row();
  show(line);
}

Half Sweep::run_half(const Row& row, bool in_place) {
  progress_.begin_stage(in_place ? "in place" : "out of place", row.size_bytes,
                        static_cast<uint64_t>(options_.iters) * agg_iters());
  Timing timing = measure(ranks_, row, in_place, progress_);
  Half half;
  half.time_us = timing.seconds * 1e6;
  half.algbw = timing.seconds > 0 ? static_cast<double>(moved_bytes(row)) / timing.seconds / 1e9 : 0;
  half.busbw = half.algbw * collective_.factor(row.call.nranks);
  if (options_.per_iteration) {
    half.iterations_us = std::move(timing.iterations_us);
    half.process_iterations_us = std::move(timing.process_iterations_us);
    half.tails = tails_of(half.iterations_us, static_cast<size_t>(options_.skipped_iterations));
  }
  tally_.busbw_sum += half.busbw;
  ++tally_.halves;
  if (options_.checks > 0 && (!in_place || collective_.verifies_in_place)) {
    progress_.begin_stage("verification", row.size_bytes, 0);
    const Verdict verdict = verify(ranks_, row, in_place, progress_);
    half.wrong = verdict.wrong_elements;
    tally_.failed_checks += verdict.failed_here ? 1 : 0;
  }
  return half;
}

}  // namespace trestle::perf
