#include "base/job_id.h"

namespace trestle {

std::string to_hex(const JobId& job) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::byte b : job) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

}  // namespace trestle
