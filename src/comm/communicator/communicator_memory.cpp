// User memory that is registered with a communicator.
#include "base/log.h"
#include "comm/communicator/communicator.h"
#include "engine/prepare/call_bytes.h"

namespace trestle {

Result<uint64_t> Communicator::register_memory(const void* begin, size_t bytes) {
  TRY(check_open());
  return memory_->add(begin, bytes);
}

// Works also after a failure: the operations have ended then.
Status Communicator::deregister_memory(uint64_t id) {
  const MutexLock lock(submit_mutex_);
  if (engine_->settled_pending() != 0) {
    return Error{Code::kInvalidUsage,
                 "operations of communicator " + membership_.name() +
                     " are under way, and peers may be reading the memory: synchronize, then deregister it"};
  }
  return memory_->remove(id);
}

// Other memory may lie at the addresses now. Peers must not be told to read the old memory.
void Communicator::check_memory(const Call& call) {
  const CallBytes reach = reach_of(call.request, call.sending, membership_.rank(), membership_.ranks());
  const int dropped = memory_->drop_unmapped(call.send, reach.given) + memory_->drop_unmapped(call.recv, reach.taken);
  if (dropped == 0) return;
  LOG(kWarn, kAlloc,
      "%s: a buffer lies where memory was registered with trestleCommRegister and has been unmapped since: it is "
      "copied "
      "from now on; call trestleCommDeregister before munmap",
      membership_.own_name().c_str());
}

}  // namespace trestle
