#include "conformance/buffers/api_images.h"

#include <compare>
#include <map>
#include <mutex>
#include <utility>

#include "conformance/buffers/api_values.h"

namespace api {

namespace {

enum class Kind { kBits, kInput, kResult };

struct Key {
  Kind kind;
  trestleDataType_t type;
  trestleRedOp_t op;
  uint64_t seed;
  int rank;
  int ranks;
  size_t first;
  size_t count;
  auto operator<=>(const Key&) const = default;
};

struct Entry {
  std::once_flag made;
  std::unique_ptr<std::byte[]> data;
};

class ImageMemory {
 public:
  void keep(size_t most_bytes) {
    const std::lock_guard lock(mutex_);
    known_.clear();
    bytes_ = 0;
    most_bytes_ = most_bytes;
    keeps_ = true;
  }

  // The remembered image, or the one that make() computes. Ranks that need the same one wait for the first of them.
  template <class Make>
  Image get(const Key& key, const Make& make) {
    const size_t bytes = key.count * size_of(key.type);
    const Found found = find(key, bytes);
    Entry& entry = *found.entry;
    std::call_once(entry.made, [&] {
      entry.data = std::unique_ptr<std::byte[]>(new std::byte[bytes]);
      make(entry.data.get());
    });
    return {{found.owner, entry.data.get()}, bytes};
  }

 private:
  struct Found {
    Entry* entry;
    std::shared_ptr<Entry> owner;  // nullptr: the memory keeps it
  };

  Found find(const Key& key, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto known = known_.find(key);
    if (known == known_.end()) {
      const auto entry = std::make_shared<Entry>();
      if (bytes_ + bytes > most_bytes_) {
        if (keeps_) return {entry.get(), entry};
        known_.clear();
        bytes_ = 0;
      }
      known = known_.emplace(key, entry).first;
      bytes_ += bytes;
    }
    // Processes share the pages of what their parent has kept for as long as they count no references there.
    return {known->second.get(), keeps_ ? nullptr : known->second};
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> known_;
  size_t bytes_ = 0;
  size_t most_bytes_ = size_t{32} << 20;
  bool keeps_ = false;
};

ImageMemory& memory() {
  static ImageMemory memory;
  return memory;
}

}  // namespace

Image image_of_bits(trestleDataType_t type, uint64_t seed, int rank, size_t first, size_t count) {
  return memory().get({Kind::kBits, type, trestleSum, seed, rank, 0, first, count},
                      [&](std::byte* to) { fill_bits(to, type, seed, rank, first, count); });
}

Image image_of_input(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int rank, int ranks, size_t count) {
  return memory().get({Kind::kInput, type, op, seed, rank, ranks, 0, count},
                      [&](std::byte* to) { fill_input(to, type, op, seed, rank, ranks, 0, count); });
}

Image image_of_result(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t first, size_t count) {
  return memory().get({Kind::kResult, type, op, seed, 0, ranks, first, count},
                      [&](std::byte* to) { fill_reduced(to, type, op, seed, ranks, first, count); });
}

void keep_images(size_t most_bytes) {
  memory().keep(most_bytes);
}

}  // namespace api
