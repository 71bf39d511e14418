#include "perf/driver/sweep.h"

#include <cmath>
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

uint64_t rows_of(const Options& options, size_t ops, size_t roots, size_t backends) {
  return size_count(options) * options.types.size() * ops * roots * backends *
         static_cast<uint64_t>(options.run_cycles);
}

}  // namespace

Sweep::Sweep(Ranks& ranks, const std::vector<Backend*>& backends, const Collective& collective, const Options& options,
             size_t buffer_bytes, JsonReport* report)
    : ranks_(ranks),
      backends_(backends),
      collective_(collective),
      options_(options),
      buffer_bytes_(buffer_bytes),
      report_(report),
      ops_(collective.sweeps_ops ? options.ops : std::vector<trestleRedOp_t>{trestleSum}),
      roots_(roots_of(collective, options, ranks.layout().nranks())),
      columns_(columns_of(options)),
      progress_(ranks.prints() ? stderr : nullptr, rows_of(options, ops_.size(), roots_.size(), backends.size())) {
  for (const Backend* backend : backends_) tally_.scores.push_back({.backend = backend->name()});
}

Tally Sweep::run() {
  for (int cycle = 0; options_.run_cycles == 0 || cycle < options_.run_cycles; ++cycle) {
    for (const trestleDataType_t type : options_.types) {
      for (const trestleRedOp_t op : ops_) {
        const std::vector<size_t> measured = able(type, op);
        for (const size_t i : measured) {
          if (op == kMulSum) backends_[i]->use_mul_sum(type);
        }
        for (const int root : roots_) run_sizes(measured, type, op, root);
      }
    }
  }
  return tally_;
}

std::vector<size_t> Sweep::able(trestleDataType_t type, trestleRedOp_t op) const {
  std::vector<size_t> able;
  for (size_t i = 0; i < backends_.size(); ++i) {
    const std::string why_not = backends_[i]->lacks(collective_, type, op);
    if (why_not.empty()) {
      able.push_back(i);
    } else {
      show("# " + std::string(backends_[i]->name()) + ": " + why_not + "\n");
    }
  }
  return able;
}

// The backends take turns, row by row, so that what changes on the machine meanwhile changes for all.
void Sweep::run_sizes(const std::vector<size_t>& measured, trestleDataType_t type, trestleRedOp_t op, int root) {
  const auto row_of = [&](size_t bytes) {
    return make_row(collective_, options_, type, op, root, ranks_.layout().nranks(), bytes, buffer_bytes_);
  };
  for (const size_t i : measured) {
    for (size_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes *= 2) {
      const Row row = row_of(bytes);
      progress_.begin_stage("warm-up", row.size_bytes, static_cast<uint64_t>(options_.warmup_iters) * agg_iters());
      warm_up(*backends_[i], row, options_.warmup_iters);
    }
  }
  for (size_t bytes = options_.min_bytes; bytes != 0; bytes = next_size(options_, bytes)) {
    double seconds[2] = {};
    for (const size_t i : measured) run_row(i, row_of(bytes), root, seconds);
  }
}

void Sweep::show(const std::string& text) const {
  if (!ranks_.prints()) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Sweep::run_row(size_t backend, const Row& row, int root, double (&seconds)[2]) {
  const RowHead head = {row.size_bytes,
                        row.shape.count,
                        type_info(row.call.type).name,
                        collective_.sweeps_ops ? op_name(row.call.op) : collective_.op_label,
                        root,
                        columns_.backends ? backends_[backend]->name() : nullptr};
  std::string line;
  const auto add = [&](const std::string& text) {
    if (progress_.shown()) {
      line += text;
    } else {
      show(text);
    }
  };
  add(row_head(head));
  const Half out_of_place = run_half(backend, row, false, seconds[0]);
  add(row_half(&out_of_place, columns_));
  Half in_place;
  if (collective_.in_place) in_place = run_half(backend, row, true, seconds[1]);
  const Half* second = collective_.in_place ? &in_place : nullptr;
  add(row_half(second, columns_));
  if (report_ != nullptr && ranks_.prints()) report_->row(head, out_of_place, second, options_);
  add(row_end(head, columns_) + "\n");
  progress_.end_row();
  show(line);
}

Half Sweep::run_half(size_t index, const Row& row, bool in_place, double& seconds) {
  Backend& backend = *backends_[index];
  progress_.begin_stage(in_place ? "in place" : "out of place", row.size_bytes,
                        static_cast<uint64_t>(options_.iters) * agg_iters());
  Timing timing = measure(ranks_, backend, row, in_place, progress_);
  Half half;
  half.time_us = timing.seconds * 1e6;
  half.algbw = timing.seconds > 0 ? static_cast<double>(moved_bytes(row)) / timing.seconds / 1e9 : 0;
  half.busbw = half.algbw * collective_.factor(row.call.nranks);
  if (options_.per_iteration) {
    half.iterations_us = std::move(timing.iterations_us);
    half.process_iterations_us = std::move(timing.process_iterations_us);
    half.tails = tails_of(half.iterations_us, static_cast<size_t>(options_.skipped_iterations));
  }
  if (options_.call_times) {
    half.calls = measure_calls(ranks_, backend, row, in_place);
    half.calls->issue_us = measure_issue(ranks_, backend, row, in_place);
  }
  Score& score = tally_.scores[index];
  score.busbw_sum += half.busbw;
  ++score.halves;
  if (index == 0) seconds = timing.seconds;
  if (index > 0 && seconds > 0 && timing.seconds > 0) score.log_ratio_sum += std::log(timing.seconds / seconds);
  if (options_.checks > 0 && (!in_place || backend.has_result_in_place(collective_))) {
    progress_.begin_stage("verification", row.size_bytes, 0);
    const Verdict verdict = verify(ranks_, backend, row, in_place, progress_);
    half.wrong = verdict.wrong_elements;
    tally_.failed_checks += verdict.failed_here ? 1 : 0;
  }
  return half;
}

}  // namespace trestle::perf
