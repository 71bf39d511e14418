// The limit of the sizes of files (RLIMIT_FSIZE, ulimit -f). The kernel ends a process that exceeds it (SIGXFSZ), so
// whoever makes a file longer asks before. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trestle {

// Bytes that a file of this process may have; UINT64_MAX: as many as there is room for.
uint64_t most_file_bytes();

// "files of this process have at most 1024 bytes (RLIMIT_FSIZE; ulimit -f 1)".
std::string file_size_text(uint64_t most_bytes);

// Whether so many bytes may be added at the end of an open file. Pipes and terminals have no limit.
bool has_room(int fd, size_t bytes);

// Writes all of it at the end of an open file. False: not so, and errno says why; EFBIG: the limit is lower.
bool write_all(int fd, std::string_view text);

}  // namespace trestle
