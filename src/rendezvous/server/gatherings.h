// Gatherings: which of a rendezvous's gatherings a rank belongs to, and the holds of those whose communicators live.
//
// Owned by a RendezvousServer, used on its thread; hold() and close() by any thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/server/gathering.h"
#include "rendezvous/server/server.h"

namespace trestle {

class Gatherings {
 public:
  Gatherings(const RendezvousOptions& options, std::shared_ptr<RendezvousBell> bell);

  // The gathering that the rank has come to. `own`: the rank is of this process.
  Gathering& seat(const JoinRequest& request, const std::string& from, bool own, int64_t now);
  // All ranks have come: what failed before for want of a rank's identity is over.
  void complete(Gathering& gathering);

  std::list<Gathering>::iterator begin() { return all_.begin(); }
  std::list<Gathering>::iterator end() { return all_.end(); }
  std::list<Gathering>::const_iterator begin() const { return all_.begin(); }
  std::list<Gathering>::const_iterator end() const { return all_.end(); }
  const Gathering& newest() const { return all_.back(); }
  // The oldest one that waits for that rank, else the newest one; but a new one if that is complete.
  Gathering& lacking(int32_t rank);

  // nullptr: the rendezvous is about to end.
  RendezvousHeld hold();
  // Whether nobody needs the rendezvous any more. Then, and after close(), nobody gets a hold.
  bool finished(int64_t now);
  void close();

 private:
  // The oldest one that is still decided about, else the newest one.
  Gathering& open_or_newest();
  Gathering& refuse_both(Gathering& first, const JoinRequest& second, const std::string& from);
  Gathering* conflict_of(const JoinRequest& request);
  Gathering& gathering_for(const JoinRequest& request, int64_t now);
  Gathering& open_gathering(int64_t now);
  void look_at_holds();
  bool lives(const Gathering& gathering) const;
  void fail_communicator(const Gathering& gathering, const Error& error);

  const std::string place_;
  const std::string way_out_;  // "": the port was made for one communicator
  const JobId job_;
  const std::shared_ptr<RendezvousBell> bell_;
  bool any_complete_;         // in this process, also by an earlier rendezvous of the job
  std::list<Gathering> all_;  // the newest last
  Mutex mutex_;
  std::vector<RendezvousHeld> holds_ TRESTLE_GUARDED_BY(mutex_);  // those that are released count no more
  bool ends_ TRESTLE_GUARDED_BY(mutex_) = false;                  // nobody can get a hold any more
};

}  // namespace trestle
