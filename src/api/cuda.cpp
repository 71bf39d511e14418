// The C API: streams and memory of CUDA devices.
#include "api/cuda.h"

#include <string_view>

#include "api/background.h"
#include "api/calls.h"
#include "comm/device/call_place.h"
#include "comm/device/opened_devices.h"
#include "trestle/cuda.h"

using namespace trestle;

namespace trestle {

Status look_at_buffers(const Communicator& communicator, const char* function, Call& call, const CallElements& extent) {
  const int64_t device = communicator.settings().config.device;
  call.request.has_data = !has_pairwise_blocks(call.request.collective) || extent.sent != 0 || extent.received != 0;
  // Without data here, or on any rank, there is nothing to agree on.
  if (device < 0 || !call.request.has_data || !moves_data(call.request.collective) || is_empty(call)) return {};
  const CallBytes reach = reach_of(call.request, call.sending, communicator.rank(), communicator.ranks());
  const UsedBuffer send{"send", call.send, extent.sent == 0 ? 0 : reach.given};
  const UsedBuffer recv{"receive", call.recv, extent.received == 0 ? 0 : reach.taken};
  const auto place = place_of(static_cast<int>(device), send, recv);
  if (!place.ok()) return Error{place.error().code, std::string(function) + ": " + place.error().message};
  call.request.place = place.value().place;
  call.request.open_to_devices = place.value().open_to_devices;
  return {};
}

Status check_scalar(const Communicator& communicator, const char* function, const void* scalar) {
  if (communicator.settings().config.device < 0) return {};
  const PointerInfo info = TRY(OpenedDevices::process().look_at(scalar));
  if (info.kind != PointerKind::kDevice) return {};
  return invalid_argument(std::string(function) + ": the scalar is memory of device " + std::to_string(info.device) +
                          ", but the host reads it: it must be in host memory, pinned or managed memory included");
}

bool has_device(trestleComm_t comm) {
  Use use(comm);
  return use.alive() && use.object()->settings().config.device >= 0;
}

Status check_for_host(const char* name, const void* memory) {
  if (memory == nullptr) return {};
  const PointerInfo info = TRY(OpenedDevices::process().look_at(memory));
  if (info.kind != PointerKind::kDevice) return {};
  return invalid_argument(std::string(name) + " is memory of device " + std::to_string(info.device) +
                          ", but the host reads and writes it here: it must be host memory, pinned or managed memory "
                          "included");
}

Status check_device(const char* function, const Stream& stream, const Communicator& communicator) {
  const int64_t device = communicator.settings().config.device;
  if (device < 0 || device == stream.outer_device()) return {};
  return invalid_argument(std::string(function) + ": the stream is of device " + std::to_string(stream.outer_device()) +
                          ", but the communicator's device is " + std::to_string(device));
}

}  // namespace trestle

extern "C" {

trestleResult_t trestleStreamWrapCuda(trestleStream_t* stream, void* cudaStream) {
  return guarded([&]() -> Status {
    if (stream == nullptr) return invalid_argument("StreamWrapCuda: stream is NULL");
    auto outer = OpenedDevices::process().link_to(static_cast<StreamHandle*>(cudaStream));
    if (!outer.ok()) return Error{outer.error().code, "StreamWrapCuda: " + outer.error().message};
    *stream = make_handle<trestleStream>(TRY(Stream::on(std::move(outer).value())));
    return {};
  });
}

trestleResult_t trestleCommDevice(trestleComm_t comm, int* device) {
  return with_comm(comm, "CommDevice", [&](const Communicator& communicator) -> Status {
    if (device == nullptr) return invalid_argument("CommDevice: device is NULL");
    *device = static_cast<int>(communicator.settings().config.device);
    return {};
  });
}

trestleResult_t trestleConfiguredDevice(int* device) {
  return guarded([&]() -> Status {
    if (device == nullptr) return invalid_argument("ConfiguredDevice: device is NULL");
    const Result<Config>& config = process_config_result();
    if (!config.ok()) return config.error();
    *device = TRESTLE_CONFIG_UNDEF_INT;
    for (const Config::Value& value : config.value().values) {
      const bool is_set = value.source != ConfigSource::kDefault;
      if (is_set && value.name == std::string_view("TRESTLE_DEVICE")) *device = static_cast<int>(config.value().device);
    }
    return {};
  });
}

}  // extern "C"
