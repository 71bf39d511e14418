#include "machine/gpu/pci_gpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/files/kernel_file.h"
#include "transport/rails/pci.h"

namespace trestle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvidiaText = "0x10de";
constexpr int64_t kMostNode = 65535;

std::string folder_of(const KernelFiles& files, const std::string& pci) {
  return files.sysfs + "/bus/pci/devices/" + pci;
}

std::string text_in(const std::string& path) {
  const auto line = first_line(path);
  return line.ok() ? line.value() : "";
}

// A display controller of NVIDIA's: VGA, or 3D as of cards without an outlet. Virtual functions are parts of one.
bool is_gpu(const std::string& folder) {
  std::error_code failure;
  if (text_in(folder + "/vendor") != kNvidiaText || fs::exists(folder + "/physfn", failure)) return false;
  const std::string kind = text_in(folder + "/class");
  return kind.starts_with("0x0300") || kind.starts_with("0x0302");
}

// Idle GPUs slow their lanes down, so the present speed says little: the slower end of the line counts, at its fastest.
// A slot may have fewer lanes than the card, so of these the present number counts.
uint64_t rate_of(const KernelFiles& files, const std::string& pci) {
  const std::string folder = folder_of(files, pci);
  const int64_t lanes = number_in(folder + "/current_link_width", 0);
  const uint64_t now = pci_rate_bps(text_in(folder + "/current_link_speed"), lanes);
  uint64_t most = pci_rate_bps(text_in(folder + "/max_link_speed"), lanes);
  const std::vector<std::string> path = pci_path(folder);
  if (path.size() > 1) {
    const std::string port = folder_of(files, path[path.size() - 2]);
    const uint64_t slot = pci_rate_bps(text_in(port + "/max_link_speed"), lanes);
    if (slot != 0 && most != 0) most = std::min(most, slot);
  }
  return std::max(now, most);
}

// Of a line "Model: \t NVIDIA A100" the text behind the name and the blanks.
std::string value_of(const std::string& line, std::string_view name) {
  if (!line.starts_with(name)) return {};
  const size_t at = line.find_first_not_of(" \t", name.size());
  return at == std::string::npos ? "" : line.substr(at);
}

void ask_driver(const KernelFiles& files, Gpu& gpu) {
  std::ifstream information(files.proc + "/driver/nvidia/gpus/" + gpu.pci + "/information");
  for (std::string line; std::getline(information, line);) {
    if (const std::string name = value_of(line, "Model:"); !name.empty()) gpu.name = name;
    // Until a program has used the GPU, the driver has question marks in place of the digits.
    const std::string uuid = value_of(line, "GPU UUID:");
    if (uuid.starts_with("GPU-") && uuid.find('?') == std::string::npos) gpu.uuid = uuid;
  }
}

}  // namespace

bool pci_before(const std::string& a, const std::string& b) {
  return std::tuple(a.size(), std::string_view(a)) < std::tuple(b.size(), std::string_view(b));
}

Gpu gpu_from_files(const KernelFiles& files, const std::string& pci) {
  Gpu gpu{.pci = pci};
  const int64_t node = number_in(folder_of(files, pci) + "/numa_node", -1);
  if (node >= 0 && node <= kMostNode) gpu.numa_node = static_cast<int>(node);
  gpu.pci_bps = rate_of(files, pci);
  ask_driver(files, gpu);
  return gpu;
}

std::vector<Gpu> gpus_from_files(const KernelFiles& files) {
  std::vector<Gpu> gpus;
  std::error_code failure;
  fs::directory_iterator at(files.sysfs + "/bus/pci/devices", failure);
  for (; !failure && at != fs::directory_iterator(); at.increment(failure)) {
    const std::string pci = at->path().filename().string();
    if (is_gpu(folder_of(files, pci))) gpus.push_back(gpu_from_files(files, pci));
  }
  std::ranges::sort(gpus, pci_before, &Gpu::pci);
  return gpus;
}

std::string numeric_name(const KernelFiles& files, const std::string& pci) {
  const auto digits = [&](const char* file) {
    const std::string text = text_in(folder_of(files, pci) + file);
    return text.starts_with("0x") ? text.substr(2) : "";
  };
  const std::string vendor = digits("/vendor");
  const std::string device = digits("/device");
  return vendor.empty() || device.empty() ? "" : "device " + vendor + ":" + device;
}

}  // namespace trestle
