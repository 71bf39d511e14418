// Launchers' variables: the launcher that is chosen, its key-value space, and incomplete sets of variables.
#include <gtest/gtest.h>

#include "base/config/launcher.h"

namespace trestle {
namespace {

using Kind = LauncherSpace::Kind;

// The variables that `env` shows under the launcher.
Environment hydra() {
  return {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_FD", "6"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
}

Environment open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
          {"PMIX_NAMESPACE", "373620737"},
          {"PMIX_RANK", "1"},
          {"PMIX_SERVER_URI41", "373620736.0;tcp4://127.0.0.1:49845"}};
}

Environment slurm() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_JOB_ID", "77"},
          {"SLURM_STEP_NODELIST", "node[03-04]"}};
}

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

TEST(LauncherVariables, OfHydra) {
  const Launcher launcher = read_launcher(hydra());
  EXPECT_EQ(launcher.source, "Hydra");
  EXPECT_EQ(launcher.rank, 1);
  EXPECT_EQ(launcher.world_size, 4);
  EXPECT_EQ(launcher.local_rank, 1);
  EXPECT_EQ(launcher.master_address, "") << "two of four are elsewhere";
  EXPECT_EQ(launcher.space.kind, Kind::kPmi);
  EXPECT_EQ(launcher.space.rank, 1);
  EXPECT_EQ(launcher.space.pmi_fd, 6);
  EXPECT_EQ(launcher.problem + launcher.incomplete, "");
}

TEST(LauncherVariables, OfHydraWithAPort) {
  Environment environment = hydra();
  environment.erase("PMI_FD");
  environment.erase("PMI_RANK");
  environment.erase("PMI_SIZE");
  environment["PMI_PORT"] = "node0:43853";
  environment["PMI_ID"] = "2";
  const Launcher launcher = read_launcher(environment);
  EXPECT_NE(launcher.incomplete.find("PMI_ID=2 is set, PMI_SIZE is not"), std::string::npos) << launcher.incomplete;
  EXPECT_EQ(launcher.space.kind, Kind::kPmi);
  EXPECT_EQ(launcher.space.rank, 2);
  EXPECT_EQ(launcher.space.pmi_port, "node0:43853");
  environment["WORLD_SIZE"] = "4";
  environment["RANK"] = "2";
  EXPECT_EQ(read_launcher(environment).incomplete, "");
}

TEST(LauncherVariables, OpenMpiMeetsThroughPmix) {
  const Launcher launcher = read_launcher(open_mpi());
  EXPECT_EQ(launcher.source, "Open MPI");
  EXPECT_EQ(launcher.space.kind, Kind::kPmix);
  EXPECT_EQ(launcher.space.rank, 1);
  EXPECT_TRUE(launcher.address_concluded);
  EXPECT_EQ(launcher.master_address, "127.0.0.1") << "for where libpmix is missing";
  Environment without_server = open_mpi();
  without_server.erase("PMIX_SERVER_URI41");
  EXPECT_EQ(read_launcher(without_server).space.kind, Kind::kNone);
}

TEST(LauncherVariables, ASetAddressIsNoConclusion) {
  const Launcher launcher = read_launcher(with(open_mpi(), {{"MASTER_ADDR", "node7"}}));
  EXPECT_EQ(launcher.master_address, "node7");
  EXPECT_FALSE(launcher.address_concluded);
}

TEST(LauncherVariables, NameTheJob) {
  const Environment torchrun = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  const std::pair<Environment, std::string> jobs[] = {
      {open_mpi(), "373620737"},
      {slurm(), "77"},
      {with(slurm(), {{"SLURM_STEP_ID", "2"}}), "77.2"},
      {hydra(), ""},
      {torchrun, ""},
      {with(torchrun, {{"TORCHELASTIC_RUN_ID", "none"}}), ""},
      {with(torchrun, {{"TORCHELASTIC_RUN_ID", "8b2c"}}), "8b2c"},
  };
  for (const auto& [environment, job] : jobs) EXPECT_EQ(read_launcher(environment).job, job);
}

TEST(LauncherVariables, OfSlurmInItsThreeModes) {
  EXPECT_EQ(read_launcher(slurm()).space.kind, Kind::kNone);
  EXPECT_EQ(read_launcher(slurm()).master_address, "node03");
  // --mpi=pmi2 also speaks PMI-1, and sets no variables of Hydra.
  const Launcher pmi = read_launcher(with(slurm(), {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_FD", "11"}}));
  EXPECT_EQ(pmi.source, "Slurm");
  EXPECT_EQ(pmi.local_rank, 1);
  EXPECT_EQ(pmi.space.kind, Kind::kPmi);
  const Launcher pmix = read_launcher(
      with(slurm(), {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.3.0"}, {"PMIX_SERVER_URI2", "x"}}));
  EXPECT_EQ(pmix.source, "Slurm");
  EXPECT_EQ(pmix.space.kind, Kind::kPmix);
}

// srun has started Hydra's own processes. The ranks inherit its variables, which must be ignored.
TEST(LauncherVariables, HydraInsideSlurmIsHydra) {
  const Environment around = with(slurm(), {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "n"}, {"PMIX_SERVER_URI2", "x"}});
  const Launcher launcher = read_launcher(with(around, hydra()));
  EXPECT_EQ(launcher.source, "Hydra");
  EXPECT_EQ(launcher.rank, 1);
  EXPECT_EQ(launcher.space.kind, Kind::kPmi);
  EXPECT_EQ(read_launcher(with(hydra(), open_mpi())).space.kind, Kind::kPmix);
}

TEST(LauncherVariables, OfAnyLauncherWithPmi) {
  const Launcher launcher = read_launcher({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(launcher.source, "PMI");
  EXPECT_EQ(launcher.rank, 1);
  EXPECT_EQ(launcher.space.kind, Kind::kNone);
}

TEST(LauncherVariables, NoneAreAProcessAlone) {
  for (const Environment& environment : {Environment{}, Environment{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}}) {
    const Launcher launcher = read_launcher(environment);
    EXPECT_EQ(launcher.source, "");
    EXPECT_FALSE(launcher.rank.has_value());
    EXPECT_EQ(launcher.problem + launcher.incomplete, "");
  }
}

TEST(LauncherVariables, HalfOfAPairIsSaid) {
  const std::pair<const char*, const char*> halves[] = {{"RANK", "WORLD_SIZE"},
                                                        {"WORLD_SIZE", "RANK"},
                                                        {"PMI_RANK", "PMI_SIZE"},
                                                        {"PMIX_RANK", "WORLD_SIZE"},
                                                        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};
  for (const auto& [there, missing] : halves) {
    const std::string said = read_launcher({{there, "3"}}).incomplete;
    EXPECT_NE(said.find(std::string(there) + "=3 is set, " + missing + " is not"), std::string::npos) << said;
  }
  EXPECT_EQ(read_launcher(with(hydra(), {{"RANK", "3"}})).incomplete, "") << "RANK alone is anybody's variable";
}

TEST(LauncherVariables, BadNumbersOfPmiAreNamed) {
  EXPECT_NE(read_launcher(with(hydra(), {{"PMI_FD", "six"}})).problem.find("PMI_FD=six"), std::string::npos);
  EXPECT_NE(read_launcher(with(hydra(), {{"PMI_RANK", "4"}})).problem.find("PMI_RANK=4"), std::string::npos);
  EXPECT_NE(read_launcher(with(open_mpi(), {{"PMIX_RANK", "-1"}})).problem.find("PMIX_RANK=-1"), std::string::npos);
}

}  // namespace
}  // namespace trestle
