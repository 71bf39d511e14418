// For tests of streams: an engine whose operations are receives over a transport. The test decides when their messages
// arrive.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/engine.h"
#include "engine/run/operation.h"
#include "engine/run/stream.h"
#include "sim/virtual_clock.h"
#include "unit/engine/engine_of_two.h"

namespace trestle {

class GatedTransport : public Transport {
 public:
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest&) override { return Error{Code::kInternalError, "nobody sends here"}; }
  Result<bool> post_recv(RecvRequest& request) override {
    if (closed_to_posts) return Error{Code::kSystemError, "closed"};
    request.state = RequestState::kPending;
    posted_.push_back(&request);
    return true;
  }
  void release(RecvRequest& request) override { request.state = RequestState::kIdle; }
  Result<bool> progress() override { return false; }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override { posted_.clear(); }

  // Numbers of the operations whose receive is posted, ascending.
  std::vector<uint64_t> posted() const {
    std::vector<uint64_t> numbers;
    for (const RecvRequest* request : posted_) numbers.push_back(request->tag.operation);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  void arrive(uint64_t number) {
    const auto found = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const RecvRequest* request) { return request->tag.operation == number; });
    ASSERT_NE(found, posted_.end()) << "operation " << number << " has posted nothing";
    complete(**found);
    posted_.erase(found);
  }
  void arrive_all() {
    for (RecvRequest* request : posted_) complete(*request);
    posted_.clear();
  }
  // Lets at most `most` messages of a phase arrive.
  void arrive_some(uint32_t phase, int most) {
    std::erase_if(posted_, [&](RecvRequest* request) {
      if (request->tag.phase != phase || most-- <= 0) return false;
      complete(*request);
      return true;
    });
  }
  bool closed_to_posts = false;

 private:
  // A view is of zeros.
  void complete(RecvRequest& request) {
    if (request.pieces.empty() && request.bytes != 0) {
      if (request.bytes > zeros_.back().size()) zeros_.emplace_back(request.bytes);
      request.view = {{zeros_.back().data(), request.bytes}};
    }
    request.state = RequestState::kDone;
  }

  std::deque<std::vector<std::byte>> zeros_{std::vector<std::byte>(4096)};  // the last ones are the longest
  std::vector<RecvRequest*> posted_;
};

using Numbers = std::vector<uint64_t>;

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = make_engine(gate_);
    Dimension dimension;
    dimension.size = 2;
    topology_.dimensions = {dimension};
    PrepareRequest request;
    request.collective = Collective::kSendRecv;
    request.count = 4;
    request.peer = 1;
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return uint64_t{4096}; };
    auto prepared = prepare_point_to_point(request, false, context);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    prepared_ = std::move(prepared).value();
  }

  std::shared_ptr<Engine> make_engine(GatedTransport*& gate) {
    auto transport = std::make_unique<GatedTransport>();
    gate = transport.get();
    return engine_of_two(config_of_two(clock_), std::move(transport));
  }
  Operation* operation_of(Engine& engine, uint64_t number, int64_t timeout_ns = 0) {
    Operation* result = engine.acquire(prepared_);
    result->bind({}, private_region(data_, sizeof data_), number, timeout_ns);
    engine.count_pending(1);
    return result;
  }
  Operation* operation(uint64_t number, int64_t timeout_ns = 0) { return operation_of(*engine_, number, timeout_ns); }
  void drive() {
    while (engine_->try_progress()) {
    }
  }
  void arrive(uint64_t number) {
    gate_->arrive(number);
    drive();
  }
  Numbers posted() {
    drive();
    return gate_->posted();
  }

  VirtualClock clock_;
  Topology topology_;
  GatedTransport* gate_ = nullptr;
  std::shared_ptr<const Prepared> prepared_;
  std::shared_ptr<Stream> a_ = std::make_shared<Stream>();
  std::shared_ptr<Stream> b_ = std::make_shared<Stream>();
  std::shared_ptr<Stream> c_ = std::make_shared<Stream>();
  std::shared_ptr<Event> event_ = std::make_shared<Event>();
  float data_[4] = {};
  std::shared_ptr<Engine> engine_;  // declared last, because its operations point to the streams
};

}  // namespace trestle
