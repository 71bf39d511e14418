// Readers of the words behind a policy's name, for the rows of policies.cpp. Pure, any thread. Errors
// (kInvalidArgument) are a sentence without the policy's name.
#pragma once

#include <span>
#include <string>

#include "gradient/policy/policy.h"

namespace trestle {

using PolicyWords = std::span<const std::string>;

Result<PolicyArguments> no_words(PolicyWords words);
// At most one word: bytes as 25M, at least 1.
Result<PolicyArguments> bytes_word(PolicyWords words, uint64_t otherwise);
// At most two words: bytes as above, and a duration as 50us.
Result<PolicyArguments> part_words(PolicyWords words, uint64_t otherwise);
// At most one word: a whole number from 1 to `most`.
Result<PolicyArguments> count_word(PolicyWords words, uint32_t otherwise, uint32_t most);
// BYTES or tuned, then eager or lookahead; all may be left out.
Result<PolicyArguments> dear_words(PolicyWords words);
// shared or free; without a word shared, because every layout of the parameters allows it.
Result<PolicyArguments> split_words(PolicyWords words);
// At most one word: hidden, or a number above 0 and at most 1; without a word hidden.
Result<PolicyArguments> ratio_words(PolicyWords words);

}  // namespace trestle
