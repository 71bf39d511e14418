// The one table of environment variables. Internal to base (config*.cpp) and its tests; constant.
//
// A row: name, how its text is read, where the value goes, default, range or choices, whether all ranks must agree,
// help, and what more there is to say. Defaults are texts and go through the same parser as the environment.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/config/config.h"

namespace trestle {

enum class VariableKind : uint8_t {
  kText,
  kSecret,         // kText that is never shown
  kChoice,         // one of `choices`
  kTransportList,  // comma-separated list of auto and the names in base/transport_kinds.h
  kInteger,
  kIntegerOrAuto,  // "auto" is -1
  kBoolean,
  kBytes,
  kDuration,
  kDimensions,
  kPortRange,
  kLogLevel,
  kSubsystems,
};

using ConfigMember =
    std::variant<std::string Config::*, int64_t Config::*, bool Config::*, std::vector<std::string> Config::*,
                 std::vector<uint32_t> Config::*, PortRange Config::*, LogLevel Config::*, uint32_t Config::*>;

enum class Scope : uint8_t {
  // Part of the configuration hash: decisions depend on it, so every rank must have the same.
  kAgreed,
  kLocal,
};

struct Variable {
  const char* name;
  VariableKind kind;
  ConfigMember member;
  const char* fallback;  // the default
  int64_t low;           // for the numeric kinds
  int64_t high;
  const char* choices;  // for kChoice: comma-separated list
  Scope scope;
  const char* help;       // one short line
  const char* more = "";  // what else there is to say, for docs/environment.md: Markdown
};

// clang-format off
namespace config_rows {
using K = VariableKind;
using C = Config;
inline constexpr auto kAgreed = Scope::kAgreed;
inline constexpr auto kLocal = Scope::kLocal;
inline constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kHour = 3'600'000'000'000;
inline constexpr int64_t kGiB = int64_t{1} << 30;

inline constexpr Variable kVariables[] = {
  {"TRESTLE_CONF_FILE",       K::kText,       &C::config_file,       "",         0, 0, "", kLocal,
   "Configuration file with lines NAME=value. Set in the environment only.",
   "Empty: .trestle.conf in HOME, if there is one. /etc/trestle.conf may set what it does not."},
  {"TRESTLE_DEBUG",           K::kLogLevel,   &C::debug_level,       "WARN",     0, 0, "", kLocal,
   "How much is logged, each level with those before it.",
   "VERSION: once per process, at the first communicator that it makes as rank 0: Trestle's version and what it was built with; not if "
   "no level is set."},
  {"TRESTLE_DEBUG_SUBSYS",    K::kSubsystems, &C::debug_subsystems,  "INIT,BOOTSTRAP,ENV", 0, 0, "", kLocal,
   "Subsystems that log at INFO and TRACE: a comma list, or ALL; a leading ^: all but these.",
   "* INIT: the dimensions and why, calibration, where helper threads run, what a communicator did at its end.\n"
   "* BOOTSTRAP: who left or gave up.\n"
   "* ENV: what is set and by whom.\n"
   "* COLL: how a communicator failed.\n"
   "* NET: connections of tcp.\n"
   "* SHM: shared memory opened to and mapped from peers, with bytes.\n"
   "* GRAPH (or TOPOLOGY): the dimensions, every rank's place in them and what selection assumes.\n"
   "* TUNING: the schedule of every new kind of call, with policy, algorithms, chunks and predicted time.\n"
   "* CALL: one line per call of a collective, Send or Recv, with number, count, type, operator, root, buffers and stream (own, or its "
   "identity).\n"
   "* ALLOC: staging beyond its budget, huge pages that were refused (TRACE).\n"
   "* P2P: the first Send to and Recv from each peer, with transport; at TRACE each message between devices that is divided, and when "
   "its parts were read."},
  {"TRESTLE_DEBUG_FILE",      K::kText,       &C::debug_file,        "",         0, 0, "", kLocal,
   "File of the log instead of standard error; %h is the host name, %p the process id."},
  {"TRESTLE_DIMS",            K::kDimensions, &C::dimensions,        "",         0, 0, "", kAgreed,
   "Sizes of the network dimensions, innermost first. Empty: ranks per host x hosts.",
   "4x2: four neighbouring ranks in dimension 1, two such groups in dimension 2."},
  {"TRESTLE_TOPO_FILE",       K::kText,       &C::topology_file,     "",         0, 0, "", kLocal,
   "JSON file that describes the dimensions.",
   "Its contents must be the same on all ranks, its path need not."},
  {"TRESTLE_HOSTID",          K::kText,       &C::host_id,           "",         0, 0, "", kLocal,
   "Identity of the host: ranks with the same one may share memory.",
   "Empty: host name, boot id and network namespace."},
  {"TRESTLE_TRANSPORT",       K::kTransportList, &C::transports,     "auto",     0, 0, "", kAgreed,
   "Transport of each dimension, innermost first; the last one also of all further ones."},
  {"TRESTLE_ALGO",            K::kText,       &C::algorithm,         "",         0, 0, "", kAgreed,
   "Algorithms to use, such as ring. Empty: lowest predicted time.",
   "* One name.\n"
   "* Per dimension, innermost first: ring,hd. An all-reduce has reduce-scatter and all-gather phases on the innermost dimensions "
   "whose algorithms have these, all-reduce phases on those beyond: ring,rd.\n"
   "* For one phase over all ranks: \\*rd.\n"
   "* Per collective: allreduce:ring,hd;broadcast:tree,direct.\n"
   "* By size: allreduce:0-64k=rd,64k-inf=hd.\n"
   "* A leading ^ excludes."},
  {"TRESTLE_SCHED",           K::kChoice,     &C::schedule,          "auto",     0, 0, "baseline,themis,auto", kAgreed,
   "Policy that orders the chunks of an operation over the dimensions.",
   "* baseline: innermost dimension first, every chunk alike.\n"
   "* themis: each chunk begins on the dimension with the least load.\n"
   "* auto: the best predicted of these, of unequal chunks whose sizes balance the dimensions, and of a bounded search."},
  {"TRESTLE_INTRA",           K::kChoice,     &C::intra,             "scf",      0, 0, "fifo,scf", kAgreed,
   "How a dimension chooses among waiting phases, if the policy does not decide it (themis).",
   "fifo: first come first served. scf: smallest chunk first."},
  {"TRESTLE_CHUNKS",          K::kInteger,    &C::chunks,            "0",        0, 1024, "", kAgreed,
   "Chunks per operation; 0: by predicted time."},
  {"TRESTLE_SEGMENT",         K::kBytes,      &C::segment_bytes,     "0",        0, kGiB, "", kAgreed,
   "Bytes in which a step moves and reduces its block; 0: chosen per rail."},
  {"TRESTLE_INFLIGHT",        K::kInteger,    &C::phases_in_flight,  "0",        0, 1024, "", kAgreed,
   "Phases in flight per dimension; 0: chosen by the schedule."},
  {"TRESTLE_CHECK_PLANS",     K::kBoolean,    &C::check_plans,       "0",        0, 0, "", kLocal,
   "Check every plan symbolically for all ranks before it is used."},
  {"TRESTLE_CHECK",           K::kBoolean,    &C::check_calls,       "0",        0, 0, "", kAgreed,
   "Compare all calls of all ranks. For development: it costs a message per call and rank.",
   "Over separate connections. A different collective, count, type, operator, root or order is an error that names both ranks and both "
   "calls."},
  {"TRESTLE_CALIBRATE",       K::kChoice,     &C::calibrate,         "cached",   0, 0, "off,cached,full", kAgreed,
   "Source of the link speeds that are not configured.",
   "* off: the rates of rails that all ranks know, else nominal values.\n"
   "* cached: measured before for these hosts, by trestle calibrate or full; else nominal.\n"
   "* full: as cached, else measured while the communicator is made.\n"
   "\n"
   "Rank 0's file counts for all ranks. It counts for 30 days, and only for the hosts, the kernel and the version of Trestle with which "
   "it was made. The log at INFO names the file that is used, or why one is not. `trestle calibrate --list` prints what is kept, "
   "`--forget` removes it. A bandwidth that is more than four times too high for rails of known rates does not count; one that data of a "
   "communicator exceeds four times is forgotten at the communicator's end. Both are warnings. Other speeds may mean another schedule, "
   "and sums that round differently."},
  {"TRESTLE_CALIBRATION_DIR", K::kText,       &C::calibration_folder, "",        0, 0, "", kLocal,
   "Folder of the measured link speeds.",
   "Empty: trestle in XDG_CACHE_HOME, else in .cache of HOME."},
  {"TRESTLE_TIMEOUT",         K::kDuration,   &C::timeout_ns,        "10m",      kMs, 10000 * kHour, "", kLocal,
   "How long an operation may wait for other ranks before it fails."},
  {"TRESTLE_HEARTBEAT",       K::kDuration,   &C::heartbeat_ns,      "5s",       100 * kMs, kHour, "", kLocal,
   "How long a host may be silent before its ranks count as lost."},
  {"TRESTLE_SECRET",          K::kSecret,     &C::secret,            "",         0, 0, "", kLocal,
   "Shared secret of the job, the same on all ranks: connections prove that they know it.",
   "Empty: the secret inside the unique id."},
  {"TRESTLE_JOB",             K::kText,       &C::job,               "",         0, 0, "", kLocal,
   "Name of the job, the same on all its ranks. Jobs with different names never meet.",
   "Jobs without names must differ by the port at which they meet. Empty: what the launcher says (run id, job and step, namespace); trestle run makes one."},
  {"TRESTLE_COMM_ID",         K::kText,       &C::communicator_id,   "",         0, 0, "", kLocal,
   "host:port of the rendezvous. Rank 0 listens there, the others connect.",
   "No unique id is needed then."},
  {"TRESTLE_STORE",           K::kText,       &C::store,             "",         0, 0, "", kLocal,
   "Rendezvous through a file that all ranks can reach: file:PATH."},
  {"TRESTLE_SOCKET_IFNAME",   K::kText,       &C::socket_interfaces, "",         0, 0, "", kLocal,
   "Network interfaces for bootstrap and TCP: a comma list of name prefixes.",
   "A leading = means whole names, a leading ^ all but these."},
  {"TRESTLE_SOCKET_FAMILY",   K::kChoice,     &C::socket_family,     "auto",     0, 0, "auto,AF_INET,AF_INET6", kLocal,
   "Address family of sockets."},
  {"TRESTLE_RAILS",           K::kText,       &C::rails,             "",         0, 0, "", kLocal,
   "Interfaces that carry the data of tcp, all at once: eth0,eth1@25g.",
   "Each with its speed if it is to be told. Dimensions are separated by semicolons; one without interfaces has its transport's name "
   "instead: shm;eth0,eth1. Empty: all interfaces that lead to the other hosts, see docs/rails.md."},
  {"TRESTLE_RAIL_TIMEOUT",    K::kDuration,   &C::rail_timeout_ns,   "3s",       10 * kMs, kHour, "", kLocal,
   "Time after which data leaves a rail that acknowledges nothing, while others do.",
   "Within this time the data of one of several rails to a rank that acknowledges nothing goes over the others; five eighths of it "
   "without an acknowledgement are enough. Connections of the control mesh move to another rail after this time, but not before 200 ms."},
  {"TRESTLE_PORT_RANGE",      K::kPortRange,  &C::port_range,        "",         0, 0, "", kLocal,
   "Ports to listen on, low-high. Empty: the system chooses.",
   "At each interface every rank of the host needs one for data, and with several rails one more for the control mesh; for every "
   "communicator, see docs/rails.md."},
  {"TRESTLE_CONGESTION",      K::kText,       &C::congestion_control, "cubic",   0, 0, "", kLocal,
   "TCP congestion control of data connections. Empty: the system's."},
  {"TRESTLE_EXPRESS",         K::kBoolean,    &C::express,           "1",        0, 0, "", kAgreed,
   "Use the express path for small operations."},
  {"TRESTLE_EXPRESS_BYTES",   K::kBytes,      &C::express_bytes,     "8K",       0, 8192, "", kAgreed,
   "Largest operation, in bytes per rank, that takes the express path."},
  {"TRESTLE_DEVICE_EXPRESS_BYTES", K::kBytes, &C::device_express_bytes, "64K",   0, 1 << 16, "", kAgreed,
   "Largest operation on memory of devices that one kernel per rank does; 0: none.",
   "In bytes per rank and block, where the devices of all ranks write to each other. TRESTLE_EXPRESS=0 has the same effect as 0."},
  {"TRESTLE_DEVICE_EXPRESS_PROCESSES", K::kChoice, &C::device_express_processes, "auto", 0, 0, "off,auto,on", kAgreed,
   "Whether TRESTLE_DEVICE_EXPRESS_BYTES holds among ranks of several processes of a host.",
   "* off: no.\n"
   "* auto: where processes have different devices.\n"
   "* on: always. Processes take turns on a device, so this is slow where they share one.\n"
   "\n"
   "See docs/cuda.md."},
  {"TRESTLE_EAGER",           K::kBytes,      &C::eager_bytes,       "16K",      0, 1 << 20, "", kAgreed,
   "Largest message that is sent before the receiver has said that its block is free.",
   "0: only empty ones are."},
  {"TRESTLE_STAGING",         K::kBytes,      &C::staging_bytes,     "64M",      1 << 20, 1024 * kGiB, "", kAgreed,
   "Staging memory that a communicator may use per rank."},
  {"TRESTLE_SHM_MAP",         K::kBoolean,    &C::map_shared_memory, "1",        0, 0, "", kAgreed,
   "Map memory from trestleMemAlloc of peers on the same host and reduce it in place.",
   "Devices may also read memory of the host that other processes share for that. 0: processors copy data from process to process."},
  {"TRESTLE_SPIN",            K::kIntegerOrAuto, &C::spin_us,        "auto",     0, 1'000'000, "", kLocal,
   "Microseconds that a waiting call spins before it gives up the processor.",
   "auto: depends on ranks per processor."},
  {"TRESTLE_DEVICE",          K::kInteger,    &C::device,            "-1",       -1, 1023, "", kLocal,
   "CUDA device of the rank, by the number that CUDA gives it in this process. -1: none.",
   "With -1 no pointer is ever looked at. See docs/cuda.md."},
  {"TRESTLE_PEER_ACCESS",     K::kBoolean,    &C::peer_access,       "1",        0, 0, "", kLocal,
   "Let the device of a rank read memory of other ranks' devices where it lies.",
   "Where both are on one host and the devices reach each other. 0: all data between devices goes through host memory."},
  {"TRESTLE_HOST_PATH",       K::kChoice,     &C::host_path,         "auto",     0, 0, "off,auto,on", kLocal,
   "Whether the end of a long message between devices goes through host memory.",
   "The rest goes the direct way meanwhile, to a rank whose device reads this one's memory; shares follow from which part arrives "
   "first.\n"
   "\n"
   "* off: no.\n"
   "* auto: where NVLinks join the two devices.\n"
   "* on: always.\n"
   "\n"
   "See docs/cuda.md."},
  {"TRESTLE_PROGRESS_THREAD", K::kBoolean,    &C::progress_thread,   "1",        0, 0, "", kLocal,
   "Let helper threads of the library drive calls that no thread of the program waits for.",
   "0: they progress only inside calls that wait or test, except those that EventNotify was called for. Another thread, which receives "
   "other ranks' failures, always runs."},
  {"TRESTLE_PROGRESS_THREADS", K::kInteger,   &C::progress_threads,  "0",        0, 64, "", kLocal,
   "How many helper threads the process may have; 0: one for each NUMA node, at most 8.",
   "Each rank that a communicator has in this process belongs to one of them, which starts then. With 0 nodes count that have "
   "processors of the process; each helper is bound to its node, and gets the ranks that are bound there, whose rails are there, or "
   "that are made there. With another number they are not bound, and share the ranks."},
};
}  // namespace config_rows
// clang-format on

inline constexpr const auto& kVariables = config_rows::kVariables;

// nullptr: there is no variable of this name.
const Variable* find_variable(std::string_view name);

// Reads a row's value text into its member. In config_values.cpp.
Status set_config_value(Config& config, const Variable& row, const std::string& text);

// The one spelling of a text that set_config_value accepted (64M for 65536K), so that equal values have equal hashes.
std::string canonical_text(const Variable& row, const std::string& text);

// What a row accepts, for error messages and the documentation: "integer from 0 to 1024".
std::string allowed_values(const Variable& row);

}  // namespace trestle
