// CommunicatorParts: the parts of one communicator, for those parts that use several others. References: the
// communicator owns all of them, and takes care that they live long enough.
#pragma once

namespace trestle {

class CallPath;
class Engine;
class Membership;
class MeshPoller;
class Notices;
class SplitsInProgress;
struct LifeCycle;

struct CommunicatorParts {
  const Membership& membership;
  Engine& engine;
  MeshPoller& mesh;
  CallPath& calls;
  SplitsInProgress& splits;
  Notices& notices;
  const LifeCycle& life;
};

}  // namespace trestle
