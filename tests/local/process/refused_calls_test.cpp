// Systems that refuse a rank the calls of shared memory, as containers with a seccomp profile do.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <sstream>
#include <vector>

#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace process_limits {
namespace refused_calls_test {
namespace {

using ranks::succeeded;

struct Refused {
  const char* name;  // in sentences
  unsigned number;
  int first_argument;  // only calls with this one; -1: all
};
const std::vector<Refused>& calls() {
  static const std::vector<Refused> all = {{"memfd_create", SYS_memfd_create, -1},
                                           {"fallocate", SYS_fallocate, -1},
                                           {"socket(AF_UNIX)", SYS_socket, AF_UNIX}};
  return all;
}

// From now on this process gets "Operation not permitted".
void refuse(const Refused& call) {
  const unsigned argument = call.first_argument < 0 ? 0 : static_cast<unsigned>(call.first_argument);
  const unsigned char to_argument = call.first_argument < 0 ? 2 : 0;  // steps to skip
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, to_argument, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// Three ranks; rank 1 is refused the call.
ranks::Job job_without(const Refused& call, const TemporaryFolder& folder,
                       const std::function<void(ranks::Process&)>& body) {
  ranks::Job job;
  job.ranks = 3;
  job.env = [&folder](int rank) {
    return ranks::Env{{"TRESTLE_DEBUG", "WARN"}, {"TRESTLE_DEBUG_FILE", folder.path(std::to_string(rank))}};
  };
  job.body = [call, body](ranks::Process& process) {
    if (process.rank == 1) refuse(call);
    body(process);
  };
  return job;
}

std::string warnings_of(const TemporaryFolder& folder, const char* rank) {
  std::istringstream log(folder.content(rank));
  std::string warnings;
  for (std::string line; std::getline(log, line);) {
    if (ranks::contains(line, " TRESTLE WARN ")) warnings += line + "\n";
  }
  return warnings;
}

void add_up(trestleComm_t comm) {
  for (const size_t count : {size_t{2}, size_t{1} << 18}) {
    std::vector<float> data(count, 1.0f);
    EXPECT_TRUE(
        succeeded(trestleAllReduce(data.data(), data.data(), count, trestleFloat32, trestleSum, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(data.front(), 3.0f);
    EXPECT_EQ(data.back(), 3.0f);
  }
}

// Ranks that may choose use tcp, and one of them says why, once.
TEST(RefusedCalls, MakeRanksOfThatHostUseTcp) {
  for (const Refused& call : calls()) {
    SCOPED_TRACE(call.name);
    const TemporaryFolder folder;
    ranks::expect_ended_well(ranks::run(job_without(call, folder, [](ranks::Process& process) {
      trestleComm_t comm = nullptr;
      trestleComm_t part = nullptr;
      ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 3}, &comm)));
      add_up(comm);
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &part, nullptr), comm));
      add_up(part);
      EXPECT_TRUE(succeeded(trestleCommDestroy(part)));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    })));
    EXPECT_EQ(warnings_of(folder, "0"), "");
    EXPECT_EQ(warnings_of(folder, "2"), "");
    const std::string warning = warnings_of(folder, "1");
    for (const std::string part : {"rank 1 ", call.name, ": Operation not permitted", "TRESTLE_TRANSPORT=tcp"})
      EXPECT_TRUE(ranks::contains(warning, part)) << part << " in " << warning;
    EXPECT_EQ(warning.find('\n') + 1, warning.size()) << warning;
  }
}

// Nobody needs shared memory, so nobody misses it.
TEST(RefusedCalls, AreNoMatterForTcp) {
  const TemporaryFolder folder;
  ranks::expect_ended_well(ranks::run(job_without(calls()[0], folder, [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 3, .transport = "tcp"}, &comm)));
    add_up(comm);
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  })));
  for (const char* rank : {"0", "1", "2"}) EXPECT_EQ(warnings_of(folder, rank), "");
}

TEST(RefusedCalls, AreAnErrorWhereShmWasAskedFor) {
  for (const Refused& call : calls()) {
    SCOPED_TRACE(call.name);
    const TemporaryFolder folder;
    ranks::expect_ended_well(ranks::run(job_without(call, folder, [&call](ranks::Process& process) {
      trestleComm_t comm = nullptr;
      EXPECT_TRUE(ranks::refused(ranks::join(process, {.ranks = 3, .transport = "shm"}, &comm), trestleSystemError,
                                 {"rank 1 (", call.name, "Operation not permitted", "TRESTLE_TRANSPORT"}));
    })));
  }
}

// TRESTLE_RAILS has its transport's name for a dimension without interfaces.
TEST(RefusedCalls, AreAnErrorWhereTheRailsSayShm) {
  const TemporaryFolder folder;
  ranks::Job job = job_without(calls()[0], folder, [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    EXPECT_TRUE(ranks::refused(ranks::join(process, {.ranks = 3}, &comm), trestleSystemError,
                               {"rank 1 (", "memfd_create", "TRESTLE_RAILS says shm", "TRESTLE_TRANSPORT"}));
  });
  job.env = [](int) { return ranks::Env{{"TRESTLE_RAILS", "shm"}}; };
  ranks::expect_ended_well(ranks::run(job));
}

}  // namespace
}  // namespace refused_calls_test
}  // namespace process_limits
