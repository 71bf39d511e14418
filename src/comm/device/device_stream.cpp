#include "comm/device/device_stream.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "comm/device/graph_place.h"
#include "comm/device/opened_devices.h"
#include "engine/run/progress.h"

namespace trestle {

namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

pid_t this_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

}  // namespace

Result<std::unique_ptr<OuterStream>> DeviceStream::create(OpenedDevice& device, StreamHandle* stream) {
  auto link = TRY(device.links().take());
  return std::unique_ptr<OuterStream>(new DeviceStream(device, stream, std::move(link)));
}

DeviceStream::DeviceStream(OpenedDevice& device, StreamHandle* stream, std::unique_ptr<StreamLink> link)
    : device_(device),
      stream_(stream),
      id_(next_id()),
      thread_(stream == per_thread_stream() ? this_thread() : 0),
      link_(std::move(link)) {}

int DeviceStream::device() const {
  return device_.device().info().index;
}

DeviceStream::~DeviceStream() {
  device_.links().give_back(std::move(link_));
}

Status DeviceStream::check_thread() const {
  if (thread_ == 0 || thread_ == this_thread()) return {};
  return Error{Code::kInvalidUsage,
               "the stream was wrapped for the default stream of one thread (cudaStreamPerThread), and another "
               "thread has no such stream: only the thread that wrapped it may use it"};
}

Result<std::shared_ptr<CaptureLane>> DeviceStream::captured_lane() {
  TRY(check_thread());
  if (!TRY(device_.device().is_capturing(stream_))) return std::shared_ptr<CaptureLane>();
  const uint64_t id = TRY(device_.device().capture_id(stream_));
  const MutexLock lock(lane_mutex_);
  std::shared_ptr<CaptureLane> lane = id == lane_id_ ? lane_.lock() : nullptr;
  if (lane == nullptr) lane = std::make_shared<CaptureLane>();
  lane_id_ = id;
  lane_ = lane;
  return lane;
}

Result<std::unique_ptr<OuterStream>> DeviceStream::capture(std::shared_ptr<CaptureLane> lane,
                                                           std::shared_ptr<GraphCalls> calls) {
  TRY(check_thread());
  return GraphPlace::create(device_, stream_, std::move(lane), std::move(calls));
}

Status DeviceStream::check_usable(bool mark) {
  TRY(check_thread());
  if (TRY(device_.device().is_capturing(stream_))) {
    return Error{Code::kInvalidUsage,
                 "the CUDA stream is being captured into a graph: collectives, sends and receives are captured with "
                 "it, but Trestle's events and requests are not; use CUDA's events, or end the capture first"};
  }
  if (!mark || link_->mark->has_room()) return {};
  return Error{Code::kInvalidUsage, "the CUDA stream has not come to the last " +
                                        std::to_string(StreamLinks::kMostAheadByEvents) +
                                        " calls, and its driver has no room for more: synchronize first"};
}

// The calls end by themselves, by their deadlines or by an abort. Without words in streams a mark runs out of room.
void DeviceStream::wait_for_room() const {
  if (!has_words() || link_->gate->held() < kMostHeld) return;
  const Progress::IdleDrive idle_too;  // this thread may be the only one that would drive them
  while (link_->gate->held() >= kMostHeld) ::poll(nullptr, 0, 1);
}

Result<OuterStream::Ticket> DeviceStream::put(bool mark, bool gate) {
  TRY(check_usable(mark));
  if (gate) wait_for_room();
  Ticket ticket;
  if (mark) ticket.mark = TRY(link_->mark->put(stream_));
  if (gate) ticket.gate = TRY(link_->gate->hold(stream_));
  return ticket;
}

// The driver is not asked about a stream that is being captured, because that would end the capture. While any other
// stream is captured, the driver does not even say whether a default stream is.
Status DeviceStream::check() {
  const Result<bool> capturing = device_.device().is_capturing(stream_);
  const bool is_default = stream_ == nullptr || thread_ != 0;
  if (!capturing.ok() && !is_default) return capturing.error();
  if (!capturing.ok() || capturing.value()) return {};
  TRY(device_.device().is_idle(stream_));
  return {};
}

bool DeviceStream::has_words() const {
  return device_.links().waits_for_words();
}

Result<OuterStream::Ticket> DeviceStream::put_kernel(const std::function<Status(const OuterPlace&)>& submit) {
  Ticket ticket;
  ticket.mark = TRY(link_->mark->put_by(stream_, [&](uint32_t* word, uint32_t mark) {
    return submit({stream_, id_, word, mark});
  }));
  return ticket;
}

Result<bool> DeviceStream::has_reached(uint32_t mark) {
  return Mark::is_past(TRY(link_->mark->reached_by_word()), mark);
}

}  // namespace trestle
