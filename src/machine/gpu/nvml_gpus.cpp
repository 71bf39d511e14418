#include "machine/gpu/nvml_gpus.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>

namespace trestle {
namespace {

constexpr unsigned kMostGpus = 1024;       // an answer with more makes no sense
constexpr unsigned kMostLinks = 64;        // of a GPU; the largest have 18 so far
constexpr uint64_t kMostMBps = 1'000'000;  // of a link

std::string address_of(const NvmlPci& pci) {
  char text[40];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff, pci.device & 0x1f);
  return text;
}

// The text up to its final zero, which the library may have left out. Characters that cannot be printed are replaced.
std::string text_of(std::span<const char> buffer) {
  std::string text(buffer.begin(), std::ranges::find(buffer, '\0'));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string text_from(NvmlAnswer (*ask)(NvmlDevice, char*, unsigned), NvmlDevice device) {
  std::array<char, 96> buffer{};
  if (ask == nullptr || ask(device, buffer.data(), buffer.size()) != kNvmlSuccess) return {};
  return text_of(buffer);
}

uint64_t memory_of(const Nvml& nvml, NvmlDevice device) {
  NvmlMemory memory{};
  if (nvml.nvmlDeviceGetMemoryInfo == nullptr) return 0;
  return nvml.nvmlDeviceGetMemoryInfo(device, &memory) == kNvmlSuccess ? memory.total : 0;
}

// 0: not reported. The answer starts as unknown, because an old library may not touch the field.
uint64_t speed_field(const Nvml& nvml, NvmlDevice device, unsigned which, unsigned link) {
  NvmlField field{};
  field.field = which;
  field.scope = link;
  field.answer = kNvmlUnknown;
  if (nvml.nvmlDeviceGetFieldValues(device, 1, &field) != kNvmlSuccess || field.answer != kNvmlSuccess) return 0;
  if (field.type != kNvmlTypeUnsigned || field.value.number > kMostMBps) return 0;
  return field.value.number * uint64_t{8'000'000};
}

// `link`: one that is up.
uint64_t speed_of(const Nvml& nvml, NvmlDevice device, unsigned link) {
  if (nvml.nvmlDeviceGetFieldValues == nullptr) return 0;
  const uint64_t common = speed_field(nvml, device, kNvmlCommonLinkSpeed, 0);
  return common != 0 ? common : speed_field(nvml, device, kNvmlLinkSpeed, link);
}

NvmlLink other_end(const Nvml& nvml, NvmlDevice device, unsigned link) {
  NvmlLink found;
  NvmlPci pci{};
  int type = -1;
  if (nvml.nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type) == kNvmlSuccess)
    found.to_switch = type == kNvmlRemoteSwitch;
  // In a virtual machine, switches are not visible and have no address.
  if (nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci) == kNvmlSuccess) found.remote_pci = address_of(pci);
  return found;
}

// The first missing function of those that reading links needs; "": none is missing.
std::string absent_for_links(const Nvml& nvml) {
  if (nvml.nvmlDeviceGetNvLinkState == nullptr) return "nvmlDeviceGetNvLinkState";
  if (nvml.nvmlDeviceGetNvLinkRemoteDeviceType == nullptr) return "nvmlDeviceGetNvLinkRemoteDeviceType";
  if (nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2 == nullptr) return "nvmlDeviceGetNvLinkRemotePciInfo_v2";
  return "";
}

void read_links(const Nvml& nvml, const std::string& library, NvmlDevice device, NvmlGpu& gpu) {
  if (const std::string absent = absent_for_links(nvml); !absent.empty()) {
    gpu.links_unknown = library + " lacks the function " + absent;
    return;
  }
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int is_up = 0;
    const NvmlAnswer answer = nvml.nvmlDeviceGetNvLinkState(device, link, &is_up);
    if (answer == kNvmlInvalidArgument || answer == kNvmlNotSupported) continue;
    if (answer != kNvmlSuccess) {
      gpu.links.clear();
      gpu.links_unknown = nvml.failed(answer, "nvmlDeviceGetNvLinkState");
      return;
    }
    if (is_up == 0) continue;
    if (gpu.links.empty()) gpu.link_bps = speed_of(nvml, device, link);
    gpu.links.push_back(other_end(nvml, device, link));
  }
}

bool has_switch(const NvmlGpu& gpu) {
  return std::ranges::any_of(gpu.links, &NvmlLink::to_switch);
}

// Switches may be partitioned, so that they connect only some of the GPUs. If NVML does not know, the two GPUs count as
// connected.
void ask_peers(const Nvml& nvml, const std::vector<NvmlDevice>& devices, std::vector<NvmlGpu>& gpus) {
  if (nvml.nvmlDeviceGetP2PStatus == nullptr) return;
  for (size_t a = 0; a < gpus.size(); ++a) {
    for (size_t b = a + 1; b < gpus.size(); ++b) {
      if (!has_switch(gpus[a]) || !has_switch(gpus[b])) continue;
      int status = kNvmlPeersUnknown;
      const NvmlAnswer answer = nvml.nvmlDeviceGetP2PStatus(devices[a], devices[b], kNvmlPeersByNvlink, &status);
      if (answer != kNvmlSuccess || status == kNvmlPeersOk || status >= kNvmlPeersUnknown) continue;
      gpus[a].cut_off.push_back(gpus[b].pci);
      gpus[b].cut_off.push_back(gpus[a].pci);
    }
  }
}

// The device that NVML counts as `index`, and its address.
Result<std::pair<NvmlDevice, std::string>> device_at(const Nvml& nvml, unsigned index) {
  NvmlDevice device = nullptr;
  NvmlPci pci{};
  NvmlAnswer answer = nvml.nvmlDeviceGetHandleByIndex_v2(index, &device);
  if (answer != kNvmlSuccess)
    return Error{Code::kUnhandledDeviceError, nvml.failed(answer, "nvmlDeviceGetHandleByIndex_v2")};
  answer = nvml.nvmlDeviceGetPciInfo_v3(device, &pci);
  if (answer != kNvmlSuccess) return Error{Code::kUnhandledDeviceError, nvml.failed(answer, "nvmlDeviceGetPciInfo_v3")};
  return std::pair(device, address_of(pci));
}

void read_devices(const Nvml& nvml, const std::string& library, unsigned count, NvmlReading& reading) {
  std::vector<NvmlDevice> devices;
  for (unsigned index = 0; index < count; ++index) {
    const auto at = device_at(nvml, index);
    if (!at.ok()) {
      reading.notes.push_back("GPU " + std::to_string(index) + " of NVML is left out: " + at.error().message);
      continue;
    }
    const auto& [device, pci] = at.value();
    if (std::ranges::find(reading.gpus, pci, &NvmlGpu::pci) != reading.gpus.end()) continue;
    NvmlGpu gpu{.pci = pci};
    gpu.name = text_from(nvml.nvmlDeviceGetName, device);
    gpu.uuid = text_from(nvml.nvmlDeviceGetUUID, device);
    gpu.memory_bytes = memory_of(nvml, device);
    read_links(nvml, library, device, gpu);
    devices.push_back(device);
    reading.gpus.push_back(std::move(gpu));
  }
  ask_peers(nvml, devices, reading.gpus);
}

}  // namespace

NvmlReading read_nvml(const Nvml& nvml, const std::string& library) {
  NvmlReading reading;
  NvmlAnswer answer = nvml.nvmlInit_v2();
  if (answer != kNvmlSuccess) {
    reading.failure = nvml.failed(answer, "nvmlInit_v2") + " (" + library + ")";
    return reading;
  }
  const std::unique_ptr<const Nvml, void (*)(const Nvml*)> shut_down(&nvml,
                                                                     [](const Nvml* one) { one->nvmlShutdown(); });
  unsigned count = 0;
  answer = nvml.nvmlDeviceGetCount_v2(&count);
  if (answer != kNvmlSuccess)
    reading.failure = nvml.failed(answer, "nvmlDeviceGetCount_v2") + " (" + library + ")";
  else if (count == 0)
    reading.failure = library + " shows no GPU to this process";
  else if (count > kMostGpus)
    reading.failure = library + " tells of " + std::to_string(count) + " GPUs, which cannot be";
  else
    read_devices(nvml, library, count, reading);
  return reading;
}

NvmlReading read_nvml(const std::string& library) {
  const auto nvml = load_nvml(library);
  if (nvml.ok()) return read_nvml(nvml.value(), library);
  NvmlReading reading;
  reading.failure = nvml.error().message;
  return reading;
}

}  // namespace trestle
