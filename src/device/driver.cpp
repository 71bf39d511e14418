#include "device/driver.h"

#include <dlfcn.h>

namespace trestle {

namespace {

using FindEntry = PFN_cuGetProcAddress_v12000;

// The name in the library itself: cuGetProcAddress has versions too.
constexpr const char* kFindEntry = "cuGetProcAddress_v2";

constexpr int kVersionOfGetVersion = 2020;  // as in the table
constexpr int kVersionsPerMajor = 1000;

std::string version_text(int version) {
  return std::to_string(version / kVersionsPerMajor) + "." + std::to_string(version % kVersionsPerMajor / 10);
}

// False: the driver does not have it.
template <class Function>
bool find(FindEntry find_entry, const char* name, int version, Function& function) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (find_entry(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS) return false;
  function = reinterpret_cast<Function>(entry);
  return found == CU_GET_PROC_ADDRESS_SUCCESS && function != nullptr;
}

// "": all are there.
std::string fill_in(Driver& driver, FindEntry find_entry) {
#define TRESTLE_FIND(name, version) \
  if (!find(find_entry, #name, version, driver.name)) return #name;
  TRESTLE_DRIVER_FUNCTIONS(TRESTLE_FIND)
#undef TRESTLE_FIND
  return "";
}

Error too_old(const char* library, int version) {
  return {Code::kInvalidUsage, std::string(library) + " supports CUDA " + version_text(version) +
                                   ", but this library was built with CUDA " + version_text(CUDA_VERSION) +
                                   ": a newer driver is needed"};
}

}  // namespace

Error Driver::failed(CUresult result, const char* call) const {
  const char* name = nullptr;
  const char* text = nullptr;
  std::string message = std::string(call) + ": ";
  if (cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr) {
    message += name;
  } else {
    message += "error " + std::to_string(result);
  }
  if (cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) message += std::string(" (") + text + ")";
  return {result == CUDA_ERROR_OUT_OF_MEMORY ? Code::kSystemError : Code::kUnhandledDeviceError, std::move(message)};
}

Status Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return {};
  return failed(result, call);
}

Result<Driver> load_driver(const char* library) {
  // Never unloaded: its threads would be left behind.
  void* loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) {
    return Error{Code::kInvalidUsage, std::string("there is no driver of NVIDIA's on this host: ") + dlerror()};
  }
  const auto find_entry = reinterpret_cast<FindEntry>(dlsym(loaded, kFindEntry));
  Driver driver;
  // A driver of another major version lacks some functions, so its version is read before the others are looked for.
  if (find_entry == nullptr ||
      !find(find_entry, "cuDriverGetVersion", kVersionOfGetVersion, driver.cuDriverGetVersion)) {
    return Error{Code::kInvalidUsage, std::string(library) + " is older than CUDA 12: a newer driver is needed"};
  }
  if (driver.cuDriverGetVersion(&driver.version) != CUDA_SUCCESS) {
    return Error{Code::kInvalidUsage, std::string(library) + " does not tell its version"};
  }
  if (driver.version / kVersionsPerMajor < CUDA_VERSION / kVersionsPerMajor) return too_old(library, driver.version);
  if (const std::string absent = fill_in(driver, find_entry); !absent.empty()) {
    return Error{Code::kInvalidUsage, std::string(library) + " lacks the function " + absent};
  }
  return driver;
}

}  // namespace trestle
