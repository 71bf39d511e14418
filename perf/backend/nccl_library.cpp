#include "perf/backend/nccl_library.h"

#include <dlfcn.h>

namespace trestle::perf {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Returns the names of the required functions that the library does not have.
std::string fill(void* library, NcclLibrary& nccl) {
  std::string missing;
  const auto need = [&missing](const void* found, const char* name) {
    if (found == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
#define TRESTLE_NCCL_FIND(name, arguments) find(library, "nccl" #name, nccl.name);
  TRESTLE_NCCL_REQUIRED(TRESTLE_NCCL_FIND)
  TRESTLE_NCCL_OPTIONAL(TRESTLE_NCCL_FIND)
#undef TRESTLE_NCCL_FIND
#define TRESTLE_NCCL_NEED(name, arguments) need(reinterpret_cast<const void*>(nccl.name), "nccl" #name);
  TRESTLE_NCCL_REQUIRED(TRESTLE_NCCL_NEED)
#undef TRESTLE_NCCL_NEED
  find(library, "ncclGetErrorString", nccl.GetErrorString);
  find(library, "ncclGetLastError", nccl.GetLastError);
  need(reinterpret_cast<const void*>(nccl.GetErrorString), "ncclGetErrorString");
  return missing;
}

}  // namespace

std::string nccl_version_text(int version) {
  const int major = version >= 10000 ? version / 10000 : version / 1000;  // 2.8 and older count in thousands
  const int rest = version >= 10000 ? version % 10000 : version % 1000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

std::string NcclLibrary::sentence(const char* call, int result, NcclComm comm) const {
  const char* const code = GetErrorString(result);
  const char* const detail = GetLastError != nullptr ? GetLastError(comm) : nullptr;
  std::string text = "NCCL's " + std::string(call) + ": " + (code != nullptr ? code : std::to_string(result));
  if (detail != nullptr && *detail != '\0') text += ": " + std::string(detail);
  return text;
}

LoadedNccl load_nccl(const std::string& name) {
  LoadedNccl loaded;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    loaded.problem = "'" + name + "' cannot be loaded: " + (why != nullptr ? why : "the loader does not say why");
    return loaded;
  }
  NcclLibrary nccl;
  nccl.name = name;
  const std::string missing = fill(library, nccl);
  if (!missing.empty()) {
    loaded.problem = "'" + name + "' is not a library of NCCL 2.7 or newer: it has no " + missing;
    return loaded;
  }
  if (const int result = nccl.GetVersion(&nccl.version); result != 0) {
    loaded.problem = "'" + name + "' does not tell its version: " + nccl.sentence("GetVersion", result, nullptr);
    return loaded;
  }
  // dlsym also searches the libraries that this one depends on. Only Trestle's own libnccl depends on libtrestle.
  nccl.takes_host_memory = dlsym(library, "trestleGetVersion") != nullptr;
  loaded.library = nccl;
  return loaded;
}

}  // namespace trestle::perf
