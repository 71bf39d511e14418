// The first byte of a letter of the control mesh: its subject.
#pragma once

#include <cstdint>

namespace trestle {

enum class LetterKind : uint8_t {
  kQuestion = 1,  // inquiry.h
  kAnswer,        // inquiry.h
  kCall,          // call_check.h
  kSplitFailure,  // split_letters.h
  kNotice,        // notices.h
};

}  // namespace trestle
