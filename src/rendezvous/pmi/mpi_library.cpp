#include "rendezvous/pmi/mpi_library.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace trestle {
namespace {

// The signature of MPI_Initialized and MPI_Finalized in the ABI of every MPI library.
using MpiQuestion = int (*)(int* answer);

int keep_mpi_names(dl_phdr_info* object, size_t, void* names) {
  const std::string_view path = object->dlpi_name;
  if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
    static_cast<std::vector<std::string>*>(names)->emplace_back(path);
  return 0;
}

MpiQuestion find_question(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<MpiQuestion>(found);
  // A library that a Python extension module has loaded is in no global scope.
  std::vector<std::string> libraries;
  dl_iterate_phdr(keep_mpi_names, &libraries);
  for (const std::string& library : libraries) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);  // drops only the reference that this function took
    if (found != nullptr) return reinterpret_cast<MpiQuestion>(found);
  }
  return nullptr;
}

bool yes(MpiQuestion question) {
  int answer = 0;
  return question != nullptr && question(&answer) == 0 && answer != 0;
}

}  // namespace

MpiState mpi_state() {
  const MpiQuestion initialized = find_question("MPI_Initialized");
  if (initialized == nullptr) return MpiState::kAbsent;
  if (!yes(initialized)) return MpiState::kNotStarted;
  return yes(find_question("MPI_Finalized")) ? MpiState::kEnded : MpiState::kRunning;
}

}  // namespace trestle
