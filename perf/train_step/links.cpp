#include "perf/train_step/links.h"

#include "perf/driver/ending.h"

namespace trestle::perf {

LinkComms::LinkComms(trestleComm_t job, int rank, const std::vector<std::string>& rails) : job_(job) {
  if (rails.empty()) all_.push_back(job);
  for (const std::string& link : rails) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.rails = link.c_str();
    trestleComm_t comm = nullptr;
    require(trestleCommSplit(job, 0, rank, &comm, &config), job);
    all_.push_back(comm);
  }
}

LinkComms::~LinkComms() {
  for (const trestleComm_t comm : all_) {
    if (comm != job_) require(trestleCommDestroy(comm));
  }
}

}  // namespace trestle::perf
