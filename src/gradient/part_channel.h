// PartChannel: tensors cut into equal parts on one channel, lowest tensor first, and the next forward pass, which waits
// for them (ByteScheduler: Peng et al., SOSP 2019). One message, a run of parts, is on the channel at a time.
//
// Value type, one thread. Copies are cheap enough to try a choice. Times are seconds from the beginning of the backward
// pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gradient/copies.h"
#include "gradient/plan.h"
#include "gradient/timeline.h"
#include "gradient/workload.h"

namespace trestle {

class PartChannel {
 public:
  // part_bytes: most bytes of a part, at least 1. Tensors of no bytes have no parts. The workload must live longer.
  // copy_per_byte_s: as in GradientLink. A run is copied as an all-reduce of all its tensors would be (MessageCopies).
  PartChannel(const GradientWorkload& workload, MessageCost cost, uint64_t part_bytes, double copy_per_byte_s = 0);

  bool all_sent() const { return parts_left_ == 0; }
  uint64_t parts_left() const { return parts_left_; }
  // Advances to the time at which some part is ready and the channel is free.
  void wait();
  // Advances to the time at which all parts of the run are ready.
  void wait_for(const PartRun& run);
  // After wait(): up to `most` consecutive ready parts, from the first unsent part of the lowest ready tensor.
  PartRun next_run(uint64_t most) const;
  // How many parts a run has. next_run returned the run, or it continues what has been sent of its tensors.
  uint64_t parts_of(const PartRun& run) const;
  uint64_t parts_of_tensor(uint32_t tensor) const { return tensors_[tensor].parts; }
  double bytes_of(const PartRun& run) const;      // equal parts may have fractions of bytes
  double copied_bytes(const PartRun& run) const;  // into a buffer and out of it
  MessageTime send(const PartRun& run);
  // When the next forward pass ends. All parts must have been sent.
  double forward_end_s() const;
  // When it ends if each remaining part travels alone, lowest ready tensor first.
  double forward_end_alone_s() const;

 private:
  struct Tensor {
    uint64_t parts = 0;
    uint64_t sent = 0;
    double ready_s = 0;
    double end_s = 0;  // of its last part so far
  };
  void release();

  const GradientWorkload* workload_;
  MessageCost cost_;
  double copy_per_byte_s_;
  std::shared_ptr<const MessageCopies> copies_;
  std::vector<Tensor> tensors_;
  uint64_t parts_left_ = 0;
  double now_s_ = 0;
  size_t released_ = 0;            // tensors from here on are ready
  std::vector<uint32_t> waiting_;  // ready tensors, the lowest at the back; some may be sent already
};

}  // namespace trestle
