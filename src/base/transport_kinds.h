// The kinds of transports, one row each: all that code outside of src/transport knows of a kind. Nothing else compares
// a kind with a named one. The row of the same name in transport/catalog.cpp has the functions that make a transport
// and that say whether it can be used here. A test checks that both tables have the same rows in the same order.
//
// Constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace trestle {

// kAuto: chosen per pair of ranks. Any other is the place of its row, counted from 1. Rows beyond the named ones need
// no name here: only the table and tests use the names.
enum class TransportKind : uint8_t { kAuto, kLoopback, kShm, kTcp };

// Which ranks a kind can join.
enum class Reach : uint8_t { kProcess, kHost, kAnywhere };

struct TransportFacts {
  const char* name;  // as in TRESTLE_TRANSPORT
  Reach reach;
  bool shares_memory;      // both ends can map the same memory: small collectives may go over a board of shared memory
  bool authenticated;      // both ends of a connection prove to each other that they know the job's secret
  bool has_interfaces;     // one object per network interface that a dimension names
  bool views_in_process;   // a view is the sender's memory at its own address, and nothing looks at what it points to
  uint64_t segment_bytes;  // most bytes of a message of a long block; the same at both ends

  // Nominal costs, for dimensions of which neither a file nor a measurement says better.
  uint64_t latency_ns;             // of one step
  uint64_t bandwidth_mbps;         // per rank, one way, 10^6 bit/s
  uint64_t message_ns;             // processor time of a message, at both ends together
  uint64_t reduce_mbps;            // speed of a reduction, 10^6 bit/s
  uint64_t converging_permille;    // added to the time of data where several senders meet at one port
  uint64_t processor_ps_per_byte;  // processor time of a byte sent: writing it, reading it, adding it up
};

// In the order in which kinds are preferred where ranks may choose.
std::span<const TransportFacts> transport_kinds();

// For kAuto, which stands for pairs of several kinds: the facts of the slowest kind that is chosen automatically.
const TransportFacts& facts_of(TransportKind kind);

// The kind that connects ranks at this distance if none is configured: the first row that reaches that far.
TransportKind automatic_transport(Reach reach);

// "auto", the row's name, or "invalid".
const char* to_string(TransportKind kind);
// kInvalidArgument, with all names, for a text that is none of them.
Result<TransportKind> parse_transport(const std::string& text);
// "auto" and all names, with `separator` between them.
std::string transport_names(const char* separator);

}  // namespace trestle
