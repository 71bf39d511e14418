#include "gradient/executor/agreement.h"

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "gradient/executor/plan_bytes.h"

namespace trestle {
namespace {

// For a sentence: what a rank does if its text differs from rank 0's.
const char* other_text(std::string_view function) {
  if (function == "GradDrain") return "has ended another number of steps";
  return function == "GradMeasureLoss" ? "gives another batch" : "asks for another policy";
}

// The words that a rank says of its call.
enum Said : size_t { kCode, kFunction, kTensors, kTable, kText, kOp, kAllow, kUpdate, kWords };

uint64_t digest(const std::string& text) {
  return Hasher().string(text).digest();
}

uint64_t digest(const std::vector<TensorEntry>& tensors) {
  Hasher hasher;
  for (const TensorEntry& tensor : tensors) {
    hasher.string(tensor.name).integer(tensor.count).integer(static_cast<uint64_t>(tensor.type));
  }
  return hasher.digest();
}

// The words that a rank says of a tensor: the digest of its name, its bytes, its type. All are kNoTensor if the rank
// has no such tensor.
constexpr size_t kTensorWords = 3;
constexpr uint64_t kNoTensor = UINT64_MAX;

std::string described(const uint64_t* words) {
  if (words[2] == kNoTensor) return "no such tensor";
  return std::to_string(words[1]) + " bytes (" + to_string(static_cast<DataType>(words[2])) + ")";
}

std::string number_and_name(size_t tensor, const std::vector<TensorEntry>& tensors) {
  const std::string number = "tensor " + std::to_string(tensor);
  return tensor < tensors.size() ? number + " (\"" + tensors[tensor].name + "\")" : number;
}

}  // namespace

Result<RankAgreement> RankAgreement::make(trestleComm_t comm, LinkAccess& access) {
  RankAgreement agreement(comm, access);
  TRY(agreement.checked(trestleCommCount(comm, &agreement.ranks_)));
  TRY(agreement.checked(trestleCommUserRank(comm, &agreement.rank_)));
  TRY(agreement.checked(trestleStreamCreate(agreement.stream_.out())));
  return agreement;
}

Status RankAgreement::finished(trestleResult_t issued) const {
  TRY(checked(issued));
  const Status ended = checked(trestleStreamSynchronize(stream_.get()));
  // A wait can fail for want of memory. checked() has then ended the communicators, so this wait is short.
  if (!ended.ok()) (void)trestleStreamSynchronize(stream_.get());
  return ended;
}

Result<std::vector<uint64_t>> RankAgreement::gather(const std::vector<uint64_t>& words) const {
  std::vector<uint64_t> all(words.size() * static_cast<size_t>(ranks_));
  TRY(finished(trestleAllGather(words.data(), all.data(), words.size(), trestleUint64, comm_, stream_.get())));
  return all;
}

Status RankAgreement::broadcast(void* data, size_t bytes) const {
  return finished(trestleBroadcast(data, data, bytes, trestleUint8, 0, comm_, stream_.get()));
}

Status RankAgreement::all_could(const char* what, const Status& own) const {
  const std::vector<uint64_t> codes = TRY(gather({own.ok() ? 0 : static_cast<uint64_t>(own.error().code)}));
  if (!own.ok()) return own;
  for (size_t r = 0; r < codes.size(); ++r) {
    if (codes[r] == 0) continue;
    const auto code = static_cast<Code>(codes[r]);
    return Error{code, std::string(what) + ": rank " + std::to_string(r) + " could not (" + to_string(code) +
                           "); its own call has the sentence"};
  }
  return {};
}

Status RankAgreement::compare(const char* function, const std::string& text, const GradientSettings& settings,
                              const std::vector<TensorEntry>& tensors, const Status& own) const {
  std::vector<uint64_t> mine(kWords);
  mine[kCode] = own.ok() ? 0 : static_cast<uint64_t>(own.error().code);
  mine[kFunction] = digest(std::string(function));
  mine[kTensors] = tensors.size();
  mine[kTable] = digest(tensors);
  mine[kText] = digest(text);
  mine[kOp] = static_cast<uint64_t>(settings.op);
  mine[kAllow] = settings.liberties;
  mine[kUpdate] = settings.update ? 1 : 0;
  const std::vector<uint64_t> all = TRY(gather(mine));
  if (!own.ok()) return own;
  const std::string in = std::string(function) + ": ";
  // Refusals first: the arguments of a rank that could not make the call do not count.
  for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r) {
    const auto code = static_cast<Code>(all[r * kWords + kCode]);
    if (code == Code::kSuccess) continue;
    return Error{code, in + "rank " + std::to_string(r) + " refused the call (" + to_string(code) +
                           "); its own call has the sentence"};
  }
  bool same_tables = true;
  size_t most_tensors = 0;
  for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r) {
    const uint64_t* said = &all[r * kWords];
    const std::string rank = "rank " + std::to_string(r);
    const auto differs = [&](Said word) { return said[word] != all[word]; };
    const char* what = differs(kFunction) ? "makes another call"
                       : differs(kText)   ? other_text(function)
                       : differs(kOp)     ? "has another operator in its config"
                       : differs(kAllow)  ? "allows other liberties in its config"
                       : differs(kUpdate) ? "differs in whether its config has an update function"
                                          : nullptr;
    if (what != nullptr) return Error{Code::kInvalidUsage, in + rank + " " + what + " than rank 0"};
    same_tables = same_tables && !differs(kTable);
    most_tensors = std::max<size_t>(most_tensors, said[kTensors]);
  }
  if (same_tables) return {};
  const Status status = difference(most_tensors, tensors);
  return status.ok() ? status : Error{status.error().code, in + status.error().message};
}

// Every rank reports the same difference: the first tensor that differs, of the first rank that differs from rank 0.
Status RankAgreement::difference(size_t most_tensors, const std::vector<TensorEntry>& tensors) const {
  std::vector<uint64_t> mine(most_tensors * kTensorWords, kNoTensor);
  for (size_t i = 0; i < tensors.size(); ++i) {
    mine[i * kTensorWords] = digest(tensors[i].name);
    mine[i * kTensorWords + 1] = tensors[i].bytes();
    mine[i * kTensorWords + 2] = static_cast<uint64_t>(tensors[i].type);
  }
  const std::vector<uint64_t> all = TRY(gather(mine));
  for (size_t r = 1; r < static_cast<size_t>(ranks_); ++r) {
    for (size_t i = 0; i < most_tensors; ++i) {
      const uint64_t* first = &all[i * kTensorWords];
      const uint64_t* other = &all[r * mine.size() + i * kTensorWords];
      if (std::equal(first, first + kTensorWords, other)) continue;
      std::string sentence = number_and_name(i, tensors) + ": rank " + std::to_string(r) + " registered " +
                             described(other) + " and rank 0 " + described(first);
      if (first[1] == other[1] && first[2] == other[2]) sentence += ", under another name";
      return Error{Code::kInvalidUsage, sentence};
    }
  }
  return Error{Code::kInternalError, "the ranks' tensors differ, but no tensor does"};
}

Result<std::vector<std::byte>> RankAgreement::from_rank_0(const Result<std::vector<std::byte>>& mine) const {
  std::vector<std::byte> bytes;
  uint64_t head[3] = {};  // code, length, checksum
  if (rank_ == 0) {
    const auto* sentence = reinterpret_cast<const std::byte*>(mine.ok() ? nullptr : mine.error().message.data());
    if (mine.ok()) {
      bytes = mine.value();
    } else {
      bytes.assign(sentence, sentence + mine.error().message.size());
    }
    head[0] = mine.ok() ? 0 : static_cast<uint64_t>(mine.error().code);
    head[1] = bytes.size();
    head[2] = checksum(bytes);
  }
  TRY(broadcast(head, sizeof head));
  bytes.resize(head[1]);
  if (!bytes.empty()) TRY(broadcast(bytes.data(), bytes.size()));
  const bool right = checksum(bytes) == head[2];
  TRY(all_could("the plan of rank 0", right ? Status() : Error{Code::kInternalError, "its checksum is wrong"}));
  if (head[0] == 0) return bytes;
  return Error{static_cast<Code>(head[0]), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

Result<std::vector<double>> RankAgreement::means(std::vector<double> values) const {
  TRY(finished(
      trestleAllReduce(values.data(), values.data(), values.size(), trestleFloat64, trestleAvg, comm_, stream_.get())));
  return values;
}

}  // namespace trestle
