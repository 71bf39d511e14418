#include "cli/write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace trestle {

Status write_file(const std::string& path, const std::string& text) {
  const auto failed = [&](int number) {
    return Error{Code::kInvalidArgument, path + ": cannot be written: " + std::strerror(number)};
  };
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return failed(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int number = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) return failed(number);
  if (!closed) return failed(errno);
  return {};
}

}  // namespace trestle
