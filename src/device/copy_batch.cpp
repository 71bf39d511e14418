#include "device/copy_batch.h"

#include <utility>

namespace trestle {

namespace {

constexpr uint64_t kFewRows = 8;         // up to here they travel with other copies
constexpr uint64_t kShortRowBytes = 64;  // moved by single bytes without harm

}  // namespace

Status CopyBatch::add(std::byte* dst, const std::byte* src, uint64_t bytes) {
  if (bytes == 0 || dst == src) return {};
  if (bytes >= long_bytes_) {
    ++submitted_;
    return device_.copy(dst, src, bytes, stream_);
  }
  const bool continues = joined_.bytes > 0 && joined_.dst + joined_.bytes == dst && joined_.src + joined_.bytes == src;
  if (continues) {
    joined_.bytes += bytes;
    return {};
  }
  TRY(take_joined());
  joined_ = {dst, src, bytes};
  return {};
}

Status CopyBatch::flush() {
  TRY(take_joined());
  TRY(end_rows());
  return count_ > 0 ? launch_runs() : Status();
}

Status CopyBatch::take_joined() {
  const CopyRun run = std::exchange(joined_, {});
  if (run.bytes == 0 || takes(run)) return {};
  TRY(end_rows());
  rows_ = {run, 1, 0, 0};
  return {};
}

// If the distances of rows are not whole packs, a launch of rows moves them by single bytes. A row that travels as a
// run of its own may still move in packs.
bool CopyBatch::go_as_rows() const {
  const bool in_packs = rows_.dst_stride % kernels::kPackBytes == 0 && rows_.src_stride % kernels::kPackBytes == 0;
  return rows_.count > kFewRows && (in_packs || rows_.first.bytes <= kShortRowBytes);
}

// Adds the run to the rows if it continues them. Rows that will travel as single runs: at most as many as one launch
// takes, so that no call submits more than kMostSubmitted.
bool CopyBatch::takes(const CopyRun& run) {
  const CopyRun& first = rows_.first;
  if (rows_.count == 0 || run.bytes != first.bytes || run.dst <= first.dst || run.src <= first.src) return false;
  const auto dst_beyond = static_cast<uint64_t>(run.dst - first.dst);
  const auto src_beyond = static_cast<uint64_t>(run.src - first.src);
  if (rows_.count == 1) {
    rows_.dst_stride = dst_beyond;
    rows_.src_stride = src_beyond;
  }
  if (rows_.count >= kernels::kMostCudaRuns && !go_as_rows()) return false;
  const bool fits = dst_beyond == rows_.count * rows_.dst_stride && src_beyond == rows_.count * rows_.src_stride;
  rows_.count += fits;
  return fits;
}

Status CopyBatch::end_rows() {
  const bool as_rows = go_as_rows();
  const Rows rows = std::exchange(rows_, {});
  if (as_rows) {
    ++submitted_;
    return kernels_.copy_rows(rows.first.dst, rows.dst_stride, rows.first.src, rows.src_stride, rows.first.bytes,
                              rows.count, stream_);
  }
  for (uint64_t row = 0; row < rows.count; ++row) {
    TRY(put({rows.first.dst + row * rows.dst_stride, rows.first.src + row * rows.src_stride, rows.first.bytes}));
  }
  return {};
}

Status CopyBatch::put(const CopyRun& run) {
  if (count_ == runs_.size()) TRY(launch_runs());
  runs_[count_++] = run;
  return {};
}

Status CopyBatch::launch_runs() {
  ++submitted_;
  return kernels_.copy_runs({runs_.data(), std::exchange(count_, 0)}, stream_);
}

}  // namespace trestle
