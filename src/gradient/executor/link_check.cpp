#include "gradient/executor/link_check.h"

namespace trestle {
namespace {

std::string described(const uint64_t* said) {
  return "link " + std::to_string(said[0]) + " of " + std::to_string(said[1]);
}

}  // namespace

Result<std::unique_ptr<LinkCheck>> LinkCheck::start(const std::vector<trestleComm_t>& comms) {
  auto check = std::make_unique<LinkCheck>();
  check->links_.resize(comms.size());
  for (size_t i = 0; i < comms.size(); ++i) {
    Link& link = check->links_[i];
    const auto checked = [&](trestleResult_t result) { return core_status(result, link.comm); };
    link.comm = comms[i];
    link.mine = {i, comms.size()};
    TRY(checked(trestleCommCount(link.comm, &link.ranks)));
    link.all.resize(link.mine.size() * static_cast<size_t>(link.ranks));
    TRY(checked(trestleStreamCreate(link.stream.out())));
    TRY(checked(trestleAllGather(link.mine.data(), link.all.data(), link.mine.size(), trestleUint64, link.comm,
                                 link.stream.get())));
  }
  return check;
}

Status LinkCheck::finish() {
  for (const Link& link : links_) {
    TRY(core_status(trestleStreamSynchronize(link.stream.get()), link.comm));
    for (size_t rank = 0; rank < static_cast<size_t>(link.ranks); ++rank) {
      const uint64_t* const said = &link.all[rank * link.mine.size()];
      if (said[0] == link.mine[0] && said[1] == link.mine[1]) continue;
      return Error{Code::kInvalidUsage, "the communicator of " + described(link.mine.data()) + " is " +
                                            described(said) + " of rank " + std::to_string(rank) +
                                            ": all ranks give GradCreate the same communicators in the same order"};
    }
  }
  return {};
}

}  // namespace trestle
