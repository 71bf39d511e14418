// What DeFT is compared with in its section 5, as stand-ins on link 0. Pure, any thread. Microseconds per iteration.
#pragma once

#include <span>

#include "gradient/deft_buckets.h"

namespace trestle {

// PyTorch's DDP: a bucket travels when its gradients are ready, and the next iteration begins when all have arrived.
double ddp_iteration_us(std::span<const DeftBucket> buckets);

// ByteScheduler ("A Generic Communication Scheduler for Distributed DNN Training Acceleration", SOSP 2019): the link
// always takes the ready part of the lowest bucket, and a bucket's forward pass waits for its own parts only. Buckets
// are cut into equal parts of at most part_us (0: not cut), without costs of cutting. Returns the steady time.
double byte_scheduler_iteration_us(std::span<const DeftBucket> buckets, double part_us);

}  // namespace trestle
