#include "cli/run/rank_stream.h"

#include <array>
#include <cerrno>

namespace trestle {
namespace {

constexpr size_t kBytesAtOnce = 1 << 16;
constexpr int kMostPieces = 1 << 10;  // a leftover process may write without end

}  // namespace

bool RankStream::pass_on() {
  if (!from_) return false;
  std::array<char, kBytesAtOnce> buffer;
  const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
  if (got > 0) {
    lines_.add({buffer.data(), static_cast<size_t>(got)});
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  from_.reset();
  lines_.end();
  return false;
}

void RankStream::drain(bool last) {
  for (int piece = 0; piece < kMostPieces && pass_on(); ++piece) {
  }
  if (!last) return;
  from_.reset();
  lines_.end();
}

}  // namespace trestle
