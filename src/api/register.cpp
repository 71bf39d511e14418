// The C API: user memory that peers may map.
#include "api/background.h"

using namespace trestle;

namespace {

// A handle is a number that is never dereferenced, so that callers may pass any value.
void* handle_of(uint64_t id) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(id));  // NOLINT(performance-no-int-to-ptr)
}

Error in(const char* function, const Error& error) {
  return {error.code, std::string(function) + ": " + error.message};
}

}  // namespace

extern "C" {

trestleResult_t trestleCommRegister(trestleComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument("CommRegister: comm is NULL");
    if (handle == nullptr) return invalid_argument("CommRegister: handle is NULL");
    if (buff == nullptr) return invalid_argument("CommRegister: buff is NULL");
    Use use(comm);
    TRY(check_ready(use, "CommRegister"));
    TRY(use.object()->check_open());
    const Result<uint64_t> id = use.object()->register_memory(buff, size);
    if (!id.ok()) return in("CommRegister", id.error());
    *handle = handle_of(id.value());
    return {};
  });
}

trestleResult_t trestleCommDeregister(trestleComm_t comm, void* handle) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument("CommDeregister: comm is NULL");
    if (handle == nullptr) return invalid_argument("CommDeregister: handle is NULL");
    Use use(comm);
    TRY(check_ready(use, "CommDeregister"));
    const Status done = use.object()->deregister_memory(reinterpret_cast<uintptr_t>(handle));
    if (!done.ok()) return in("CommDeregister", done.error());
    return {};
  });
}

}  // extern "C"
