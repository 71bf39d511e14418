// Facts about the machine that this process runs on. Read from the kernel at each call; any thread.
//
// Two processes share a host exactly when host_identity() is equal: then they can share memory and reach each other's
// abstract Unix sockets. Containers on one machine share the boot id, but have their own network namespace and usually
// their own name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace trestle {

std::string host_name();       // gethostname(); "unknown" if that fails
std::string boot_id();         // /proc/sys/kernel/random/boot_id; empty if unreadable
uint64_t network_namespace();  // inode of /proc/self/ns/net; 0 if unreadable
// "boot id/namespace": processes for which it is equal reach each other over loopback. "": the kernel does not tell.
std::string network_identity();
std::string host_identity();  // "name/boot id/namespace"
// This thread's affinity mask, or another thread's: CPU c is bit c % 64 of word c / 64, and the last word is not 0.
// Empty if the kernel does not tell. A process's number is that of its first thread.
std::vector<uint64_t> usable_cpu_mask(pid_t thread = 0);

}  // namespace trestle
