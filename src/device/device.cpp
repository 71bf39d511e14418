#include "device/device.h"

namespace trestle {

const char* to_string(PointerKind kind) {
  switch (kind) {
    case PointerKind::kHost:
      return "host";
    case PointerKind::kPinnedHost:
      return "pinned host";
    case PointerKind::kDevice:
      return "device";
    case PointerKind::kManaged:
      return "managed";
  }
  return "invalid";
}

}  // namespace trestle
