#include "machine/gpu/nvml.h"

#include <dlfcn.h>

namespace trestle {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The first missing function of those that are needed; "": none is missing.
std::string fill_in(void* library, Nvml& nvml) {
#define TRESTLE_NVML_FIND(name, arguments) \
  if (!find(library, #name, nvml.name)) return #name;
  TRESTLE_NVML_NEEDED(TRESTLE_NVML_FIND)
#undef TRESTLE_NVML_FIND
#define TRESTLE_NVML_LOOK_FOR(name, arguments) find(library, #name, nvml.name);
  TRESTLE_NVML_OPTIONAL(TRESTLE_NVML_LOOK_FOR)
#undef TRESTLE_NVML_LOOK_FOR
  find(library, "nvmlErrorString", nvml.nvmlErrorString);
  return "";
}

}  // namespace

std::string Nvml::failed(NvmlAnswer answer, const char* call) const {
  const char* text = nvmlErrorString == nullptr ? nullptr : nvmlErrorString(answer);
  return std::string(call) + ": " + (text == nullptr ? "error " + std::to_string(answer) : text);
}

Result<Nvml> load_nvml(const std::string& library) {
  // Never unloaded: the driver's libraries are not made for that.
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) return Error{Code::kInvalidUsage, dlerror()};
  Nvml nvml;
  if (const std::string absent = fill_in(loaded, nvml); !absent.empty())
    return Error{Code::kInvalidUsage, library + " lacks the function " + absent};
  return nvml;
}

}  // namespace trestle
