// The C API: communicators made of some ranks of others.
#include "api/background.h"
#include "api/config.h"

using namespace trestle;

namespace {

Result<CommunicatorSettings> child_settings(const Communicator& parent, const trestleConfig_t* config) {
  return make_child_settings(parent.settings(), TRY(read_config(config)));
}

Status split(trestleComm_t comm, int color, int key, trestleComm_t* newcomm, const trestleConfig_t* config) {
  if (comm == nullptr) return invalid_argument("CommSplit: comm is NULL");
  Use use(comm);
  TRY(check_ready(use, "CommSplit"));
  const std::shared_ptr<Communicator> parent = use.object();
  TRY(parent->check_open());
  // If newcomm is NULL, this rank takes part all the same, so that all ranks are told and none waits.
  const bool has_place = newcomm != nullptr;
  const auto nowhere = std::make_shared<trestleComm_t>();
  if (!has_place) newcomm = nowhere.get();
  const auto call = std::make_shared<SplitCall>(SplitCall{0, color, key, has_place, child_settings(*parent, config)});
  const bool blocking = call->settings.ok() ? call->settings.value().blocking : parent->settings().blocking;
  const Creation create = [parent, call, nowhere](std::atomic<bool>& stop) { return parent->split(*call, stop); };
  const auto take_number = [=] { call->number = parent->split_number(); };
  Group& group = Group::of_this_thread();
  if (group.open()) group.add_numbering(parent, take_number);
  if (blocking || (has_place && color != TRESTLE_SPLIT_NOCOLOR))
    return create_for(newcomm, create, blocking, take_number);
  *newcomm = nullptr;
  return split_for_others(comm, create, take_number);
}

}  // namespace

extern "C" {

trestleResult_t trestleCommSplit(trestleComm_t comm, int color, int key, trestleComm_t* newcomm,
                                 const trestleConfig_t* config) {
  return guarded_in_group(
      [&] {
        // NULL until the group's end has created it.
        if (newcomm != nullptr && Group::of_this_thread().open()) *newcomm = nullptr;
        return split(comm, color, key, newcomm, config);
      },
      [comm] { fail_without_memory(comm); });
}

}  // extern "C"
