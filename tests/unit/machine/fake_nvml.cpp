#include "unit/machine/fake_nvml.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "machine/gpu/nvml.h"

#define FAKE_ENTRY extern "C" __attribute__((visibility("default")))

namespace {

using namespace trestle;

FakeNvmlState& state() {
  static FakeNvmlState the_state = two_linked_gpus();
  return the_state;
}

// What a test wants this function to answer. Without an init every function fails.
NvmlAnswer before(const char* function) {
  const auto wanted = state().answers.find(function);
  if (wanted != state().answers.end()) return wanted->second;
  return state().open > 0 ? kNvmlSuccess : 1;
}

const FakeNvmlGpu& gpu_of(NvmlDevice device) {
  return state().gpus.at(reinterpret_cast<size_t>(device) - 1);
}

const FakeNvlink* link_of(NvmlDevice device, unsigned link) {
  const FakeNvmlGpu& gpu = gpu_of(device);
  return link < gpu.links.size() ? &gpu.links[link] : nullptr;
}

void write_pci(unsigned domain, unsigned bus, NvmlPci& pci) {
  pci = {};
  pci.domain = domain;
  pci.bus = bus;
  std::snprintf(pci.text.data(), pci.text.size(), "%08X:%02X:00.0", domain, bus);
}

// Without an end if it does not fit.
void write_text(const std::string& text, char* buffer, unsigned length) {
  std::memset(buffer, 0, length);
  std::memcpy(buffer, text.data(), std::min<size_t>(text.size(), length));
}

}  // namespace

FAKE_ENTRY FakeNvmlState* fake_nvml() {
  return &state();
}

FAKE_ENTRY NvmlAnswer nvmlInit_v2() {
  ++state().open;
  const NvmlAnswer answer = before("nvmlInit_v2");
  if (answer != kNvmlSuccess) --state().open;
  return answer;
}

FAKE_ENTRY NvmlAnswer nvmlShutdown() {
  --state().open;
  return kNvmlSuccess;
}

FAKE_ENTRY const char* nvmlErrorString(NvmlAnswer answer) {
  return answer == 15 ? "GPU is lost" : answer == 9 ? "Driver Not Loaded" : nullptr;
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(state().gpus.size()) + state().more;
  return before("nvmlDeviceGetCount_v2");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  if (index >= state().gpus.size()) return kNvmlInvalidArgument;
  *device = reinterpret_cast<NvmlDevice>(size_t{index} + 1);
  return before("nvmlDeviceGetHandleByIndex_v2");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPci* pci) {
  write_pci(gpu_of(device).domain, gpu_of(device).bus, *pci);
  return before("nvmlDeviceGetPciInfo_v3");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetName(NvmlDevice device, char* name, unsigned length) {
  write_text(gpu_of(device).name, name, length);
  return before("nvmlDeviceGetName");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned length) {
  write_text(gpu_of(device).uuid, uuid, length);
  return before("nvmlDeviceGetUUID");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* memory) {
  memory->total = gpu_of(device).memory;
  return before("nvmlDeviceGetMemoryInfo");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, int* is_up) {
  const FakeNvlink* at = link_of(device, link);
  if (at == nullptr) return gpu_of(device).links.empty() ? kNvmlNotSupported : kNvmlInvalidArgument;
  *is_up = at->up ? 1 : 0;
  return at->answer != 0 ? at->answer : before("nvmlDeviceGetNvLinkState");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice device, unsigned link, int* type) {
  *type = link_of(device, link)->remote;
  return before("nvmlDeviceGetNvLinkRemoteDeviceType");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPci* pci) {
  write_pci(0, link_of(device, link)->remote_bus, *pci);
  return before("nvmlDeviceGetNvLinkRemotePciInfo_v2");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetFieldValues(NvmlDevice device, int count, NvmlField* fields) {
  for (int i = 0; i < count; ++i) {
    const bool common = fields[i].field == kNvmlCommonLinkSpeed;
    const unsigned mbps = common ? gpu_of(device).common_mbps : gpu_of(device).link_mbps;
    if (!common && fields[i].field != kNvmlLinkSpeed) return kNvmlInvalidArgument;
    if (!common && link_of(device, fields[i].scope) == nullptr) return kNvmlInvalidArgument;
    fields[i].answer = mbps == 0 ? kNvmlNotSupported : kNvmlSuccess;
    fields[i].type = kNvmlTypeUnsigned;
    fields[i].value.number = mbps;
  }
  return before("nvmlDeviceGetFieldValues");
}

FAKE_ENTRY NvmlAnswer nvmlDeviceGetP2PStatus(NvmlDevice a, NvmlDevice b, int what, int* status) {
  const auto pair = std::pair(reinterpret_cast<size_t>(a) - 1, reinterpret_cast<size_t>(b) - 1);
  const auto said = state().peers.find(pair);
  *status = said == state().peers.end() ? kNvmlPeersOk : said->second;
  return what == kNvmlPeersByNvlink ? before("nvmlDeviceGetP2PStatus") : kNvmlInvalidArgument;
}
