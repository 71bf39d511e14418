#include "gradient/executor/plan_bytes.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/hash.h"
#include "gradient/executor/trace/json_text.h"

namespace trestle {
namespace {

constexpr uint64_t kFormat = 0x7472706c616e0003;  // "trplan", version 3

class Writer {
 public:
  void word(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift));
  }
  void real(double value) { word(std::bit_cast<uint64_t>(value)); }
  void groups(const std::vector<TensorGroup>& all) {
    word(all.size());
    for (const TensorGroup& group : all) word(uint64_t{group.first} << 32 | group.last);
  }
  void delayed(const GradientPlan& plan) {
    word(plan.delayed.buckets.size());
    for (const DeftBucket& bucket : plan.delayed.buckets) {
      for (const uint64_t us : {bucket.forward_us, bucket.backward_us, bucket.comm_us}) word(us);
    }
    word(plan.delayed.links.size());
    for (const DeftLink& link : plan.delayed.links) word(link.slowdown_permille);
    word(plan.capacity_permille);
  }
  void loss(const PreserverRatio& loss) {
    for (const double value : {loss.single_loss, loss.merged_loss, loss.ratio}) real(value);
    word(loss.accepted);
  }
  void text(const std::string& all) {
    word(all.size());
    for (const char c : all) word(static_cast<unsigned char>(c));
  }
  void compressed(const CompressedStep& step) {
    real(step.ratio);
    text(step.collective);
    real(step.selection_s);
  }
  std::vector<std::byte> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t word() {
    uint64_t value = 0;
    if (bytes_.size() - at_ < 8) {
      broken_ = true;
      return 0;
    }
    for (int shift = 0; shift < 64; shift += 8) value |= std::to_integer<uint64_t>(bytes_[at_++]) << shift;
    return value;
  }
  double real() { return std::bit_cast<double>(word()); }
  // The number of items that follow. Each takes at least a word, so a broken number cannot ask for too much memory.
  size_t length() {
    const uint64_t length = word();
    if (length > (bytes_.size() - at_) / 8) broken_ = true;
    return broken_ ? 0 : length;
  }
  std::vector<TensorGroup> groups() {
    std::vector<TensorGroup> all(length());
    for (TensorGroup& group : all) {
      const uint64_t both = word();
      group = {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
    }
    return all;
  }
  void delayed(GradientPlan& plan) {
    plan.delayed.buckets.resize(length());
    for (DeftBucket& bucket : plan.delayed.buckets) {
      for (uint64_t* us : {&bucket.forward_us, &bucket.backward_us, &bucket.comm_us}) *us = word();
    }
    plan.delayed.links.resize(length());
    for (DeftLink& link : plan.delayed.links) link.slowdown_permille = static_cast<uint32_t>(word());
    plan.capacity_permille = static_cast<uint32_t>(word());
  }
  PreserverRatio loss() {
    PreserverRatio loss;
    for (double* value : {&loss.single_loss, &loss.merged_loss, &loss.ratio}) *value = real();
    loss.accepted = word() != 0;
    return loss;
  }
  std::string text() {
    std::string all(length(), '\0');
    for (char& c : all) c = static_cast<char>(word());
    return all;
  }
  CompressedStep compressed() {
    CompressedStep step;
    step.ratio = real();
    step.collective = text();
    step.selection_s = real();
    return step;
  }
  bool at_end() const { return !broken_ && at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool broken_ = false;
};

template <class Items, class Write>
std::string list(const Items& items, Write write) {
  std::string text = "[";
  for (const auto& item : items) text.append(text.size() == 1 ? "" : ",").append(write(item));
  return text + "]";
}

// The shortest text that reads back as the same number, with a point in every locale. JSON has no infinity and no NaN.
// Sums of very large times and models of the loss may give either.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general).ptr};
}

// How far DeFT's Preserver let the knapsacks grow, and what it expects of the loss.
std::string loss_json(const PlannedStep& step) {
  if (!step.loss) return "";
  return ",\"capacity\":" + number(step.plan.capacity_permille / 1000.0) +
         ",\"loss_ratio\":" + number(step.loss->ratio) +
         ",\"loss_accepted\":" + (step.loss->accepted ? "true" : "false");
}

std::string compressed_json(const PlannedStep& step) {
  if (!step.compressed) return "";
  return ",\"ratio\":" + number(step.compressed->ratio) + ",\"collective\":" + json_quoted(step.compressed->collective) +
         ",\"selection_s\":" + number(step.compressed->selection_s);
}

}  // namespace

std::vector<std::byte> plan_bytes(const PlannedStep& step) {
  Writer writer;
  writer.word(kFormat);
  writer.text(step.policy);
  const GradientPlan& plan = step.plan;
  writer.word(static_cast<uint64_t>(plan.shape));
  writer.word(static_cast<uint64_t>(plan.gather));
  writer.word(plan.part_bytes);
  writer.real(plan.negotiation_s);
  writer.groups(plan.groups);
  writer.groups(plan.gather_groups);
  writer.word(plan.runs.size());
  for (const PartRun& run : plan.runs) {
    for (const uint64_t value : {uint64_t{run.first_tensor}, run.first_part, uint64_t{run.last_tensor}, run.last_part})
      writer.word(value);
  }
  writer.real(step.time.iteration_s);
  writer.real(step.time.exposed_s);
  writer.real(step.time.backward_start_s);
  writer.real(step.updates_per_iteration);
  writer.word(step.age);
  writer.word(step.batches.size());
  for (const uint32_t batches : step.batches) writer.word(batches);
  writer.delayed(plan);
  writer.word(step.loss ? 1 : 0);
  if (step.loss) writer.loss(*step.loss);
  writer.word(step.compressed ? 1 : 0);
  if (step.compressed) writer.compressed(*step.compressed);
  return std::move(writer.bytes);
}

Result<PlannedStep> plan_from_bytes(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  PlannedStep step;
  const bool format = reader.word() == kFormat;
  step.policy = reader.text();
  GradientPlan& plan = step.plan;
  const uint64_t shape = reader.word();
  const uint64_t gather = reader.word();
  plan.shape = static_cast<StepShape>(shape);
  plan.gather = static_cast<GatherIssue>(gather);
  plan.part_bytes = reader.word();
  plan.negotiation_s = reader.real();
  plan.groups = reader.groups();
  plan.gather_groups = reader.groups();
  plan.runs.resize(reader.length());
  for (PartRun& run : plan.runs) {
    run.first_tensor = static_cast<uint32_t>(reader.word());
    run.first_part = reader.word();
    run.last_tensor = static_cast<uint32_t>(reader.word());
    run.last_part = reader.word();
  }
  step.time.iteration_s = reader.real();
  step.time.exposed_s = reader.real();
  step.time.backward_start_s = reader.real();
  step.updates_per_iteration = reader.real();
  step.age = static_cast<uint32_t>(reader.word());
  step.batches.resize(reader.length());
  for (uint32_t& batches : step.batches) batches = static_cast<uint32_t>(reader.word());
  reader.delayed(plan);
  if (reader.word() != 0) step.loss = reader.loss();
  if (reader.word() != 0) step.compressed = reader.compressed();
  const bool known =
      shape <= static_cast<uint64_t>(StepShape::kDelayed) && gather <= static_cast<uint64_t>(GatherIssue::kOneAhead);
  if (format && known && reader.at_end()) return step;
  return Error{Code::kInternalError, "what rank 0 sent is not a plan"};
}

uint64_t checksum(std::span<const std::byte> bytes) {
  return Hasher().bytes(bytes).digest();
}

std::string plan_json(const PlannedStep& step) {
  const auto group = [](const TensorGroup& one) {
    return "[" + std::to_string(one.first) + "," + std::to_string(one.last) + "]";
  };
  const auto count = [](uint32_t one) { return std::to_string(one); };
  return "{\"policy\":" + json_quoted(step.policy) + ",\"iteration_s\":" + number(step.time.iteration_s) +
         ",\"exposed_s\":" + number(step.time.exposed_s) +
         ",\"updates_per_iteration\":" + number(step.updates_per_iteration) + ",\"age\":" + std::to_string(step.age) +
         ",\"groups\":" + list(step.plan.groups, group) + ",\"gather_groups\":" + list(step.plan.gather_groups, group) +
         ",\"batches\":" + list(step.batches, count) + loss_json(step) + compressed_json(step) + "}";
}

std::string workload_json(const GradientWorkload& workload) {
  return "{\"tensors\":" +
         list(workload.tensors,
              [](const GradientTensor& tensor) {
                return "{\"name\":" + json_quoted(tensor.name) + ",\"bytes\":" + std::to_string(tensor.bytes) +
                       ",\"forward_s\":" + number(tensor.forward_s) + ",\"backward_s\":" + number(tensor.backward_s) +
                       "}";
              }) +
         "}";
}

}  // namespace trestle
