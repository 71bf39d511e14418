#include "rendezvous/pmi/pmix_client.h"

#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "rendezvous/pmi/mpi_library.h"
#include "transport/socket/side_call.h"

namespace trestle {
namespace {

constexpr const char* kLibrary = "libpmix.so.2";  // of PMIx 2 to 5
constexpr const char* kPmixKey = "trestle-meeting-place";

struct Pmix {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence) fence = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;

  Error failed(const char* call, pmix_status_t status) const {
    return {Code::kRemoteError, std::string(call) + ": " + error_string(status)};
  }
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<Pmix> load_pmix() {
  // The library is never unloaded: its threads and plugins would be left behind.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return Error{Code::kInvalidUsage, std::string("PMIx cannot be loaded: ") + dlerror()};
  Pmix pmix;
  const bool all = find(library, "PMIx_Init", pmix.init) && find(library, "PMIx_Put", pmix.put) &&
                   find(library, "PMIx_Commit", pmix.commit) && find(library, "PMIx_Fence", pmix.fence) &&
                   find(library, "PMIx_Get", pmix.get) && find(library, "PMIx_Finalize", pmix.finalize) &&
                   find(library, "PMIx_Error_string", pmix.error_string);
  if (!all) return Error{Code::kInvalidUsage, std::string(kLibrary) + " lacks functions of PMIx"};
  return pmix;
}

pmix_proc_t process_of(const pmix_proc_t& own, pmix_rank_t rank) {
  pmix_proc_t process = own;
  process.rank = rank;
  return process;
}

Result<std::string> talk(const Pmix& pmix, const pmix_proc_t& own, std::string text) {
  if (!text.empty()) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    if (const auto put = pmix.put(PMIX_GLOBAL, kPmixKey, &value); put != PMIX_SUCCESS)
      return pmix.failed("PMIx_Put", put);
    if (const auto committed = pmix.commit(); committed != PMIX_SUCCESS) return pmix.failed("PMIx_Commit", committed);
  }
  pmix_info_t collect{};
  std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
  collect.value.type = PMIX_BOOL;
  collect.value.data.flag = true;
  const pmix_proc_t all = process_of(own, PMIX_RANK_WILDCARD);
  if (const auto met = pmix.fence(&all, 1, &collect, 1); met != PMIX_SUCCESS) return pmix.failed("PMIx_Fence", met);
  const pmix_proc_t zero = process_of(own, 0);
  pmix_value_t* value = nullptr;
  if (const auto got = pmix.get(&zero, kPmixKey, nullptr, 0, &value); got != PMIX_SUCCESS)
    return pmix.failed("PMIx_Get", got);
  const bool is_text = value->type == PMIX_STRING && value->data.string != nullptr;
  std::string result = is_text ? value->data.string : "";
  if (is_text) std::free(value->data.string);
  std::free(value);
  return result;
}

// A session that stays open for MPI_Init. PMIx counts references, so the session ends with the process in any case.
class OpenPmixSession {
 public:
  explicit OpenPmixSession(const Pmix& pmix) : pmix_(pmix) {}
  OpenPmixSession(const OpenPmixSession&) = delete;
  OpenPmixSession& operator=(const OpenPmixSession&) = delete;
  ~OpenPmixSession() {
    if (owner_ == getpid()) pmix_.finalize(nullptr, 0);
  }

 private:
  const Pmix pmix_;
  const pid_t owner_ = getpid();
};

Result<std::string> whole_exchange(const Pmix& pmix, const std::string& text) {
  const MpiState mpi = mpi_state();
  pmix_proc_t own{};
  if (const auto begun = pmix.init(&own, nullptr, 0); begun != PMIX_SUCCESS) return pmix.failed("PMIx_Init", begun);
  Result<std::string> result = talk(pmix, own, text);
  if (mpi == MpiState::kNotStarted) {
    static const OpenPmixSession session(pmix);
  } else {
    pmix.finalize(nullptr, 0);
  }
  return result;
}

}  // namespace

Status pmix_probe() {
  TRY(load_pmix());
  return {};
}

Result<std::string> exchange_over_pmix(const std::string& text, const WaitLimit& limit) {
  const Pmix pmix = TRY(load_pmix());
  auto exchange = TRY(SideCall<std::string>::start("PMIx", [pmix, text] { return whole_exchange(pmix, text); }));
  const Status waited = exchange.wait_before(limit);
  if (waited.ok()) return exchange.take();
  if (waited.error().code != Code::kTimeout) return waited.error();
  return Error{Code::kTimeout,
               "not all processes of the job came to PMIx's fence in time, which exchanges the address of the "
               "rendezvous: each must make a communicator of more than one rank; or set MASTER_ADDR and MASTER_PORT, "
               "the same on all ranks, to meet without the launcher"};
}

}  // namespace trestle
