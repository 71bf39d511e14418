// GraphPlace: a place for calls in a CUDA graph, as the outer stream of the calls of its launches.
//
// Owned by the stream of these calls; threads as in engine/work/outer_stream.h. The graph may end before it or after
// it. put() and open() do not call the driver.
#pragma once

#include <memory>

#include "engine/work/outer_stream.h"

namespace trestle {

class OpenedDevice;
struct StreamHandle;

class GraphPlace : public OuterStream {
 public:
  // Puts it into the graph that the stream is being captured into. The device outlives the graph. Refused where the
  // driver has no words in streams.
  static Result<std::unique_ptr<OuterStream>> create(OpenedDevice& device, StreamHandle* captured,
                                                     std::shared_ptr<CaptureLane> lane,
                                                     std::shared_ptr<GraphCalls> calls);
  ~GraphPlace() override;

  int device() const override;
  Result<Ticket> put(bool mark, bool gate) override;
  Status may_put() override { return {}; }
  Result<Ticket> put_kernel(const std::function<Status(const OuterPlace&)>& submit) override;
  bool has_kernels() const override { return false; }
  bool has_words() const override { return true; }
  Result<std::shared_ptr<CaptureLane>> captured_lane() override { return std::shared_ptr<CaptureLane>(); }
  Result<std::unique_ptr<OuterStream>> capture(std::shared_ptr<CaptureLane> lane,
                                               std::shared_ptr<GraphCalls> calls) override;
  Status check() override { return {}; }
  Result<bool> has_reached(uint32_t) override { return true; }
  void open(uint32_t gate) override;

 private:
  // What the graph and the place share.
  struct Shared;
  explicit GraphPlace(std::shared_ptr<Shared> shared);
  static void arrived(void* shared);
  static void ended(void* shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace trestle
