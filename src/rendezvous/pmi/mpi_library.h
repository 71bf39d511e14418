// Whether MPI runs in this process too. MPI talks to the launcher over the same PMI or PMIx as we do, and the launcher
// cares which of the two begins and ends that session.
//
// Asks the loaded libraries, links none. Any thread.
#pragma once

#include <cstdint>

namespace trestle {

enum class MpiState : uint8_t {
  kAbsent,      // no MPI library is loaded
  kNotStarted,  // an MPI library is loaded, and MPI_Init has not been called
  kRunning,
  kEnded,  // MPI_Finalize has been called
};

MpiState mpi_state();

}  // namespace trestle
