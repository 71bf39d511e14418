// Runs: walks the pieces of a Work's destination and of its sources side by side, one contiguous run at a time. The
// boundaries of the lists may differ.
//
// Owned by the object that does the work; one thread at a time. It allocates only in the constructor, or for more
// sources than the constructor was told.
#pragma once

#include <span>
#include <vector>

#include "engine/work/work.h"
#include "memory/region.h"

namespace trestle {

class Runs {
 public:
  explicit Runs(size_t most_sources);

  // The work and its lists must stay until the walk is over. Throws std::bad_alloc.
  void begin(const Work& work);
  // Goes to the next run; false: there is none. `join`: it goes on where the next pieces of all lists continue it.
  bool next(bool join);

  std::byte* destination() const { return destination_; }
  std::span<const std::byte* const> sources() const { return sources_; }
  uint64_t bytes() const { return bytes_; }
  // Whether the destination, or any source, is memory of the host. Pieces without a region are the device's.
  bool writes_host() const { return writes_host_; }
  bool reads_host() const { return reads_host_; }

 private:
  template <class P>
  class Cursor {
   public:
    explicit Cursor(std::span<const P> pieces) : pieces_(pieces) { pass_ended(); }
    bool at_end() const { return pieces_.empty(); }
    auto data() const { return pieces_.front().data + offset_; }
    uint64_t left() const { return pieces_.front().bytes - offset_; }
    bool on_host() const { return pieces_.front().region != nullptr && !pieces_.front().region->on_device(); }
    void skip(uint64_t bytes) {
      offset_ += bytes;
      pass_ended();
    }

   private:
    void pass_ended() {
      while (!pieces_.empty() && offset_ == pieces_.front().bytes) {
        pieces_ = pieces_.subspan(1);
        offset_ = 0;
      }
    }
    std::span<const P> pieces_;
    uint64_t offset_ = 0;
  };

  bool next_reads_host() const;
  uint64_t pass_contiguous();
  bool continues() const;

  Cursor<Piece> to_{std::span<const Piece>()};
  std::vector<Cursor<ConstPiece>> from_;
  uint64_t element_bytes_ = 1;
  // The present run.
  std::byte* destination_ = nullptr;
  std::vector<const std::byte*> sources_;
  uint64_t bytes_ = 0;
  bool writes_host_ = false;
  bool reads_host_ = false;
};

}  // namespace trestle
