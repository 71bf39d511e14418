// Measures the links of a communicator before its first call (TRESTLE_CALIBRATE=full).
#include "base/clock.h"
#include "comm/communicator/communicator.h"
#include "comm/communicator/group.h"
#include "rendezvous/giving_up.h"
#include "sched/calibrate/calibration.h"

namespace trestle {

namespace {

class CommunicatorProbe : public CalibrationProbe {
 public:
  CommunicatorProbe(std::shared_ptr<Communicator> communicator, const std::atomic<bool>* stop)
      : communicator_(std::move(communicator)),
        stop_(stop),
        sent_(kMostCalibrationBytes),
        received_(communicator_->topology().dimensions.size()) {}

  Result<int64_t> exchange(const ExchangeRequest& request) override {
    Call barrier;
    barrier.measuring = true;
    barrier.request.collective = Collective::kBarrier;
    barrier.request.type = DataType::kInt8;
    TRY(communicator_->submit(barrier, communicator_->own_stream()));
    TRY(communicator_->synchronize(stop_));
    const int64_t begin_ns = monotonic_clock().now_ns();
    for (int i = 0; i < request.times; ++i) TRY(exchange_once(request));
    return monotonic_clock().now_ns() - begin_ns;
  }

  Status largest(std::vector<int64_t>& values) override {
    Call call;
    call.measuring = true;
    call.request.collective = Collective::kAllReduce;
    call.request.type = DataType::kInt64;
    call.request.op = ReduceOp::kMax;
    call.request.count = values.size();
    call.request.in_place = true;
    call.send = call.recv = values.data();
    TRY(communicator_->submit(call, communicator_->own_stream()));
    return communicator_->synchronize(stop_);
  }

 private:
  Status exchange_once(const ExchangeRequest& request) {
    const Topology& topology = communicator_->topology();
    Group group;
    group.start();
    for (uint8_t d = 0; d < request.bytes.size(); ++d) {
      if (request.bytes[d] == 0) continue;
      received_[d].resize(kMostCalibrationBytes);
      const std::vector<int32_t> members = topology.group(communicator_->rank(), d);
      const auto me = static_cast<size_t>(topology.coordinate(communicator_->rank(), d));
      Call send = message(members[(me + 1) % members.size()], request.bytes[d]);
      send.sending = true;
      send.send = sent_.data();
      TRY(group.add({communicator_, send, false, communicator_->own_stream(), nullptr, nullptr}));
      Call receive = message(members[(me + members.size() - 1) % members.size()], request.bytes[d]);
      receive.recv = received_[d].data();
      TRY(group.add({communicator_, receive, false, communicator_->own_stream(), nullptr, nullptr}));
    }
    TRY(group.end());
    return communicator_->synchronize(stop_);
  }

  static Call message(int32_t peer, uint64_t bytes) {
    Call call;
    call.measuring = true;
    call.request.collective = Collective::kSendRecv;
    call.request.type = DataType::kUint8;
    call.request.count = bytes;
    call.request.peer = peer;
    return call;
  }

  const std::shared_ptr<Communicator> communicator_;
  const std::atomic<bool>* const stop_;
  const std::vector<std::byte> sent_;
  std::vector<std::vector<std::byte>> received_;  // by dimension
};

// Every rank has the same measurements and fits the same numbers.
Result<Topology> measure_links(const std::shared_ptr<Communicator>& communicator, const std::atomic<bool>* stop) {
  CommunicatorProbe probe(communicator, stop);
  const Calibration calibration = TRY(measure_calibration(probe, communicator->topology()));
  return fit_calibration(calibration, communicator->topology());
}

}  // namespace

Status Communicator::calibrate(const CalibrationPlace& place, const std::atomic<bool>* stop) {
  const Result<Topology> measured = measure_links(shared_from_this(), stop);
  if (!measured.ok()) {
    if (stop != nullptr && *stop && !exits()) abort();
    engine_->fail(measured.error());
    return measured.error();
  }
  membership_.set_measured(measured.value());
  if (rank() == 0) calibration_ = keep_calibration(place, measured.value());
  return {};
}

}  // namespace trestle
