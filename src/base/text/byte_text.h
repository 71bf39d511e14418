// ByteWriter and ByteReader convert integers (little-endian) and texts to bytes and back. They serve everything that
// bootstrap sends or stores.
//
// Values of one function, one thread. The reader trusts nothing: a read beyond the end or above the limit returns zero
// or "" and makes ok() false for good. A decoder may therefore read on and check ok() once at the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trestle {

class ByteWriter {
 public:
  template <class T>
  ByteWriter& integer(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
    return *this;
  }
  ByteWriter& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  ByteWriter& text(std::string_view text) { return integer(static_cast<uint32_t>(text.size())).raw(text); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T integer() {
    const std::string_view bytes = raw(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view raw(size_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::string_view text(size_t most) {
    const auto count = integer<uint32_t>();
    if (count > most) ok_ = false;
    return raw(count);
  }
  // An element count. Fails for a number that the remaining bytes cannot hold, so that a forged count reserves no
  // memory.
  uint32_t count(size_t least_bytes_each) {
    const auto count = integer<uint32_t>();
    if (count > rest_.size() / std::max<size_t>(least_bytes_each, 1)) ok_ = false;
    return ok_ ? count : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace trestle
