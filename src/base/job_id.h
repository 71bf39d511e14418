// JobId: the number by which the ranks of one communicator recognise each other. Value type, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace trestle {

using JobId = std::array<std::byte, 16>;

// 32 hexadecimal digits: the name of the job in messages.
std::string to_hex(const JobId& job);

}  // namespace trestle
