// GPUs and NVLinks as NVML tells of them: by a fake library, by broken ones, and without one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "machine/gpu/gpu.h"
#include "machine/gpu/nvlink_pairs.h"
#include "machine/gpu/nvml_gpus.h"
#include "support/pci_files.h"
#include "unit/machine/fake_nvml.h"

namespace trestle {
namespace {

using Names = std::vector<std::string>;

constexpr int kGpuIsLost = 15;
constexpr uint64_t kLink_bps = 25'000 * uint64_t{8'000'000};

class NvmlGpus : public testing::Test {
 protected:
  static FakeNvmlState& fake() {
    static FakeNvmlState* const state = [] {
      void* const library = dlopen(TRESTLE_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
      CHECK(library != nullptr, "the fake library was not built");
      return reinterpret_cast<FakeNvml>(dlsym(library, "fake_nvml"))();
    }();
    return *state;
  }
  void SetUp() override { fake() = two_linked_gpus(); }
  void TearDown() override { EXPECT_EQ(fake().open, 0) << "every init needs a shutdown"; }

  HostGpus read(const std::string& library = TRESTLE_FAKE_NVML) const {
    return read_gpus(files_.files(), library, {}, nodes_);
  }

  // `count` GPUs, each with 18 links to switches of its own bus.
  static void make_switched(unsigned count) {
    fake().gpus.clear();
    for (unsigned i = 0; i < count; ++i) {
      FakeNvmlGpu gpu{.bus = 0x10 + i, .common_mbps = 26'562};
      gpu.links.resize(18, {.remote = kNvmlRemoteSwitch, .remote_bus = 0xc0});
      fake().gpus.push_back(gpu);
    }
  }

  MachineFiles files_;
  std::vector<LayoutNode> nodes_ = {{0, 0}, {1, 0}};
};

TEST_F(NvmlGpus, HaveWhatTheLibraryTells) {
  write_gpu(files_, "pci0000:f0/0000:f0:00.0", 1);
  const HostGpus host = read();
  ASSERT_EQ(host.list.size(), 2u) << "the second one is in no file";
  const Gpu& gpu = host.list[0];
  EXPECT_EQ(gpu.pci, "0000:f0:00.0");
  EXPECT_EQ(gpu.name, "NVIDIA Fake");
  EXPECT_EQ(gpu.uuid, "GPU-0123abcd-0000");
  EXPECT_EQ(gpu.memory_bytes, uint64_t{80} << 30);
  EXPECT_EQ(gpu.numa_node, 1) << "from the files";
  EXPECT_EQ(gpu.nvlinks, 4);
  EXPECT_EQ(gpu.nvlink_bps, kLink_bps);
  EXPECT_EQ(host.list[1].pci, "0000:f1:00.0");
  EXPECT_EQ(host.list[1].numa_node, -1);
  EXPECT_EQ(host.links, (std::vector<GpuLink>{{"0000:f0:00.0", "0000:f1:00.0", 4, 4 * kLink_bps, false}}));
  EXPECT_EQ(host.notes, Names{});
}

TEST_F(NvmlGpus, LinksAreCountedByTheirOtherEnd) {
  FakeNvmlGpu third{.bus = 0xe0, .common_mbps = 20'000};
  third.links = {{.remote_bus = 0xf0}, {.remote_bus = 0xf0, .up = false}, {.remote_bus = 0x77}, {.remote = 1}};
  fake().gpus.push_back(third);
  fake().gpus[0].links.push_back({.remote_bus = 0xe0});
  const HostGpus host = read();
  EXPECT_EQ(host.links, (std::vector<GpuLink>{{"0000:e0:00.0", "0000:f0:00.0", 1, 20'000 * uint64_t{8'000'000}, false},
                                              {"0000:f0:00.0", "0000:f1:00.0", 4, 4 * kLink_bps, false}}));
  EXPECT_EQ(host.list[0].nvlinks, 3) << "one is down, one leads to a GPU that is not here, one to a processor";
}

TEST_F(NvmlGpus, SwitchesJoinAll) {
  make_switched(20);
  const HostGpus host = read();
  ASSERT_EQ(host.list.size(), 20u);
  EXPECT_EQ(host.list[19].nvlinks, 18);
  ASSERT_EQ(host.links.size(), 190u);
  for (const GpuLink& link : host.links) {
    EXPECT_TRUE(link.through_switch);
    EXPECT_EQ(link.nvlinks, 18);
    EXPECT_EQ(link.rate_bps, 18 * 26'562 * uint64_t{8'000'000});
  }
}

TEST_F(NvmlGpus, SwitchesMayBeParted) {
  make_switched(4);
  fake().gpus[3].links.resize(9);
  fake().peers = {{{0, 2}, 5}, {{0, 3}, 5}, {{1, 2}, 5}, {{1, 3}, 4}};
  const HostGpus host = read();
  ASSERT_EQ(host.links.size(), 2u);
  EXPECT_EQ(host.links[0].a + host.links[0].b, "0000:10:00.00000:11:00.0");
  EXPECT_EQ(host.links[1].a + host.links[1].b, "0000:12:00.00000:13:00.0");
  EXPECT_EQ(host.links[1].nvlinks, 9) << "the end that has fewer";
  EXPECT_EQ(host.links[1].rate_bps, 9 * 26'562 * uint64_t{8'000'000});
  fake().answers["nvmlDeviceGetP2PStatus"] = kNvmlNotSupported;
  EXPECT_EQ(read().links.size(), 6u) << "nothing says that they are parted";
}

TEST_F(NvmlGpus, ASpeedThatIsNotToldIsNotKnown) {
  for (FakeNvmlGpu& gpu : fake().gpus) {
    gpu.common_mbps = 0;
    gpu.link_mbps = 50'000;
  }
  EXPECT_EQ(read().links[0].rate_bps, 8 * kLink_bps) << "as the link itself says";
  for (FakeNvmlGpu& gpu : fake().gpus) gpu.link_mbps = 4'000'000'000;
  EXPECT_EQ(read().links[0].rate_bps, 0u) << "nonsense";
  for (FakeNvmlGpu& gpu : fake().gpus) gpu.link_mbps = 0;
  const HostGpus host = read();
  EXPECT_EQ(host.links[0].nvlinks, 4);
  EXPECT_EQ(host.links[0].rate_bps, 0u);
  fake() = two_linked_gpus();
  fake().answers["nvmlDeviceGetFieldValues"] = kNvmlUnknown;
  EXPECT_EQ(read().list[0].nvlink_bps, 0u);
}

// ---- what is not known

TEST_F(NvmlGpus, AGpuThatIsLostIsSaidAndTheOthersTellOfIt) {
  fake().gpus[1].links[2].answer = kGpuIsLost;
  const HostGpus host = read();
  ASSERT_EQ(host.list.size(), 2u);
  EXPECT_EQ(host.list[0].nvlinks, 4);
  EXPECT_EQ(host.list[1].nvlinks, -1);
  EXPECT_EQ(host.notes, Names{"NVLinks of 0000:f1:00.0 unknown: nvmlDeviceGetNvLinkState: GPU is lost"});
  ASSERT_EQ(host.links.size(), 1u);
  EXPECT_EQ(host.links[0].nvlinks, 4);
  EXPECT_EQ(host.links[0].rate_bps, 4 * kLink_bps);
}

TEST_F(NvmlGpus, GpusThatTheProcessMayNotSeeAreSaid) {
  for (const char* pci : {"0000:f0:00.0", "0000:f1:00.0", "0000:f2:00.0", "0000:f3:00.0"})
    write_gpu(files_, std::string("pci0000:00/") + pci, 0);
  const HostGpus host = read();
  ASSERT_EQ(host.list.size(), 4u);
  EXPECT_EQ(host.list[3].nvlinks, -1);
  EXPECT_EQ(host.notes,
            Names{"NVLinks of 0000:f2:00.0, 0000:f3:00.0 unknown: not among the GPUs that NVML shows to this process"});
}

TEST_F(NvmlGpus, WithoutNvlinksThereIsNoNote) {
  for (FakeNvmlGpu& gpu : fake().gpus) gpu.links.clear();
  const HostGpus host = read();
  EXPECT_EQ(host.list[0].nvlinks, 0);
  EXPECT_EQ(host.links, std::vector<GpuLink>{});
  EXPECT_EQ(host.notes, Names{});
}

TEST_F(NvmlGpus, FailuresOfTheLibraryAreSaid) {
  write_gpu(files_, "pci0000:00/0000:f0:00.0", 0);
  const std::string library = TRESTLE_FAKE_NVML;
  const auto note = [&] {
    const HostGpus host = read();
    EXPECT_EQ(host.list.size(), 1u) << "that of the files";
    return host.notes.size() == 1 ? host.notes[0] : std::to_string(host.notes.size()) + " notes";
  };
  fake().answers = {{"nvmlInit_v2", 9}};
  EXPECT_EQ(note(), "NVLinks unknown: nvmlInit_v2: Driver Not Loaded (" + library + ")");
  fake().answers = {{"nvmlDeviceGetCount_v2", 42}};
  EXPECT_EQ(note(), "NVLinks unknown: nvmlDeviceGetCount_v2: error 42 (" + library + ")");
  fake() = two_linked_gpus();
  fake().more = 4'000'000'000;
  EXPECT_EQ(note(), "NVLinks unknown: " + library + " tells of 4000000002 GPUs, which cannot be");
  fake() = {};
  EXPECT_EQ(note(), "NVLinks unknown: " + library + " shows no GPU to this process");
}

TEST_F(NvmlGpus, AGpuThatCannotBeAskedIsLeftOut) {
  fake().more = 1;
  EXPECT_EQ(read().notes, Names{"GPU 2 of NVML is left out: nvmlDeviceGetHandleByIndex_v2: error 2"});
  EXPECT_EQ(read().list.size(), 2u);
  fake().answers = {{"nvmlDeviceGetPciInfo_v3", kGpuIsLost}};
  fake().more = 0;
  const HostGpus none = read();
  EXPECT_TRUE(none.list.empty());
  EXPECT_EQ(none.notes, (Names{"GPU 0 of NVML is left out: nvmlDeviceGetPciInfo_v3: GPU is lost",
                               "GPU 1 of NVML is left out: nvmlDeviceGetPciInfo_v3: GPU is lost"}));
}

// Any single function may fail: what it would have told is not known, and nothing else.
TEST_F(NvmlGpus, WhatOneCallDoesNotTellIsNotKnown) {
  const auto gpu_without = [](const char* function) {
    fake().answers = {{function, kGpuIsLost}};
    const NvmlReading reading = read_nvml(TRESTLE_FAKE_NVML);
    EXPECT_EQ(reading.gpus.size(), 2u) << function;
    return reading.gpus.empty() ? NvmlGpu{} : reading.gpus[0];
  };
  EXPECT_EQ(gpu_without("nvmlDeviceGetName").name, "");
  EXPECT_EQ(gpu_without("nvmlDeviceGetUUID").uuid, "");
  EXPECT_EQ(gpu_without("nvmlDeviceGetMemoryInfo").memory_bytes, 0u);
  EXPECT_EQ(gpu_without("nvmlDeviceGetNvLinkRemotePciInfo_v2").links, (std::vector<NvmlLink>(4)));
  EXPECT_EQ(gpu_without("nvmlDeviceGetNvLinkRemoteDeviceType").links,
            (std::vector<NvmlLink>(4, {.remote_pci = "0000:f1:00.0"})));
  EXPECT_EQ(gpu_without("nvmlDeviceGetName").links.size(), 4u);
}

TEST_F(NvmlGpus, NamesMayBeNonsense) {
  fake().gpus[0].name = std::string(500, 'x');
  fake().gpus[1].name = "a\nb\x80";
  const NvmlReading reading = read_nvml(TRESTLE_FAKE_NVML);
  EXPECT_EQ(reading.gpus[0].name, std::string(96, 'x')) << "the end was not written";
  EXPECT_EQ(reading.gpus[1].name, "a?b?");
}

TEST_F(NvmlGpus, AnAddressThatIsToldTwiceIsOneGpu) {
  fake().gpus[1].bus = 0xf0;
  fake().gpus[0].domain = fake().gpus[1].domain = 0x10000;
  const HostGpus host = read();
  ASSERT_EQ(host.list.size(), 1u);
  EXPECT_EQ(host.list[0].pci, "10000:f0:00.0");
  EXPECT_TRUE(host.links.empty());
}

// ---- libraries that lack something

TEST_F(NvmlGpus, OldLibrariesLackFunctions) {
  const Nvml whole = load_nvml(TRESTLE_FAKE_NVML).value();
  const auto gpu_of = [](const Nvml& nvml) { return read_nvml(nvml, "libnvidia-ml.so.1").gpus.at(0); };
  Nvml nvml = whole;
  nvml.nvmlDeviceGetNvLinkState = nullptr;
  EXPECT_EQ(gpu_of(nvml).links_unknown, "libnvidia-ml.so.1 lacks the function nvmlDeviceGetNvLinkState");
  nvml = whole;
  nvml.nvmlDeviceGetNvLinkRemoteDeviceType = nullptr;
  EXPECT_EQ(gpu_of(nvml).links_unknown, "libnvidia-ml.so.1 lacks the function nvmlDeviceGetNvLinkRemoteDeviceType");
  nvml = whole;
  nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2 = nullptr;
  EXPECT_EQ(gpu_of(nvml).links_unknown, "libnvidia-ml.so.1 lacks the function nvmlDeviceGetNvLinkRemotePciInfo_v2");
  nvml = whole;
  nvml.nvmlDeviceGetName = nullptr;
  nvml.nvmlDeviceGetUUID = nullptr;
  nvml.nvmlDeviceGetMemoryInfo = nullptr;
  nvml.nvmlDeviceGetFieldValues = nullptr;
  nvml.nvmlDeviceGetP2PStatus = nullptr;
  nvml.nvmlErrorString = nullptr;
  const NvmlGpu gpu = gpu_of(nvml);
  EXPECT_EQ(gpu.name + gpu.uuid + gpu.links_unknown, "");
  EXPECT_EQ(gpu.links.size(), 4u);
  EXPECT_EQ(gpu.link_bps, 0u);
  EXPECT_EQ(nvml.failed(kGpuIsLost, "nvmlInit_v2"), "nvmlInit_v2: error 15");
}

TEST_F(NvmlGpus, ALibraryThatIsNoneIsSaid) {
  write_gpu(files_, "pci0000:00/0000:f0:00.0", 0);
  const std::string broken = TRESTLE_BROKEN_NVML;
  EXPECT_EQ(read(broken).notes, Names{"NVLinks unknown: " + broken + " lacks the function nvmlShutdown"});
  EXPECT_EQ(read("/nonexistent/nvml.so").notes,
            Names{"NVLinks unknown: /nonexistent/nvml.so: cannot open shared object file: No such file or directory"});
  files_.write("sys/nvml.so", "not a library");
  const Names notes = read(files_.files().sysfs + "/nvml.so").notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("NVLinks unknown: " + files_.files().sysfs + "/nvml.so: ")) << notes[0];
}

TEST_F(NvmlGpus, TellOfAPairByItsAddresses) {
  fake().gpus.push_back({.bus = 0xf2});
  NvlinkPairs pairs(TRESTLE_FAKE_NVML);
  const auto joined = pairs.between("0000:f1:00.0", "0000:f0:00.0");
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->nvlinks, 4);
  EXPECT_EQ(joined->rate_bps, 4 * kLink_bps);
  const auto apart = pairs.between("0000:f0:00.0", "0000:f2:00.0");
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->nvlinks, 0);
  EXPECT_FALSE(pairs.between("0000:f0:00.0", "0000:f3:00.0").has_value()) << "NVML does not know it";
  fake().gpus.clear();
  EXPECT_TRUE(pairs.between("0000:f1:00.0", "0000:f0:00.0").has_value()) << "it asks once";
}

TEST_F(NvmlGpus, WithUnknownLinksAreNotTakenForUnlinked) {
  for (FakeNvmlGpu& gpu : fake().gpus) gpu.links = {{.answer = kGpuIsLost}};
  EXPECT_FALSE(NvlinkPairs(TRESTLE_FAKE_NVML).between("0000:f0:00.0", "0000:f1:00.0").has_value());
  fake() = two_linked_gpus();
  fake().gpus[0].links = {{.answer = kGpuIsLost}};
  EXPECT_TRUE(NvlinkPairs(TRESTLE_FAKE_NVML).between("0000:f0:00.0", "0000:f1:00.0").has_value()) << "the other end";
  fake() = two_linked_gpus();
  fake().answers = {{"nvmlDeviceGetNvLinkRemotePciInfo_v2", kGpuIsLost}};
  EXPECT_FALSE(NvlinkPairs(TRESTLE_FAKE_NVML).between("0000:f0:00.0", "0000:f1:00.0").has_value()) << "unknown ends";
  EXPECT_FALSE(NvlinkPairs("no_such_library.so").between("0000:f0:00.0", "0000:f1:00.0").has_value());
}

}  // namespace
}  // namespace trestle
