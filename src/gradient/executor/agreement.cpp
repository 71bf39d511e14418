#include "gradient/executor/agreement.h"

#include <utility>

namespace trestle {

Facts facts_of(const GradientSettings& settings, const std::vector<TensorEntry>& tensors, Facts said) {
  const auto op = static_cast<ReduceOp>(settings.op);
  said.insert(said.end(), {{"the config's op", to_string(op)},
                           {"the config's allow", std::to_string(settings.liberties)},
                           {"an update function", settings.update ? "given" : "none"}});
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& tensor = tensors[i];
    said.push_back({"tensor " + std::to_string(i), "\"" + tensor.name + "\" of " + std::to_string(tensor.bytes()) +
                                                       " bytes (" + to_string(tensor.type) + ")"});
  }
  return said;
}

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

Status RankAgreement::agree(const char* function, const Facts& facts, const Status& own) const {
  return trestle::agree(function, facts, own, [this](const std::string& mine) -> Result<std::string> {
    std::string all(mine.size() * static_cast<size_t>(ranks_), '\0');
    TRY(finished(trestleAllGather(mine.data(), all.data(), mine.size(), trestleUint8, comm_, stream_.get())));
    return all;
  });
}

Status RankAgreement::broadcast(void* data, size_t bytes) const {
  return finished(trestleBroadcast(data, data, bytes, trestleUint8, 0, comm_, stream_.get()));
}

Result<std::vector<std::byte>> RankAgreement::from_rank_0(std::vector<std::byte> bytes) const {
  uint64_t length = bytes.size();
  TRY(broadcast(&length, sizeof length));
  bytes.resize(length);
  TRY(broadcast(bytes.data(), bytes.size()));
  return bytes;
}

Result<std::vector<double>> RankAgreement::means(std::vector<double> values) const {
  TRY(finished(
      trestleAllReduce(values.data(), values.data(), values.size(), trestleFloat64, trestleAvg, comm_, stream_.get())));
  return values;
}

}  // namespace trestle
