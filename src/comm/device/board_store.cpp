#include "comm/device/board_store.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/text/byte_text.h"
#include "memory/mem_alloc.h"

namespace trestle {

namespace {

constexpr size_t kMostAddressBytes = 1024;

struct OpenedBoard {
  std::shared_ptr<const OpenedMemory> memory;
  Segment pages;
};

}  // namespace

std::string encode(const BoardAddress& address) {
  return ByteWriter().text(encode(address.memory)).text(encode(address.page)).integer(address.lending).take();
}

Result<BoardAddress> decode_board_address(const std::string& text) {
  ByteReader reader(text);
  const std::string memory(reader.text(kMostAddressBytes));
  const std::string page(reader.text(kMostAddressBytes));
  const auto lending = reader.integer<uint32_t>();
  if (!reader.at_end()) return Error{Code::kRemoteError, "it sent no address of a board"};
  return BoardAddress{TRY(decode_memory_address(memory)), TRY(decode_memory_address(page)), lending};
}

BoardPage& BoardStore::Page::board() const {
  return *std::launder(reinterpret_cast<BoardPage*>(segment->data() + number * sizeof(BoardPage)));
}

bool BoardStore::is_left(const Kept& kept) {
  for (uint32_t r = 0; r < kernels::kMostBoardRanks; ++r) {
    const bool is_other = (kept.others >> r & 1) != 0;
    if (is_other && kept.page.board().left[r].load(std::memory_order_acquire) != kept.lending) return false;
  }
  return true;
}

// Kernels of this device use it no more, because the communicator has given it back.
void BoardStore::free_abandoned() {
  std::list<SharedMemory> abandoned;
  {
    const MutexLock lock(mutex_);
    for (Kept& kept : kept_) {
      const bool is_freeable = kept.shared.memory != nullptr && kept.shared.by == SharedBy::kDescriptor;
      if (kept.lent || !is_freeable || is_left(kept)) continue;
      abandoned.push_back(std::exchange(kept.shared, {}));
    }
  }
  for (SharedMemory& shared : abandoned) {
    const Status freed = free_shared(device_, std::move(shared));
    if (!freed.ok()) LOG(kInfo, kAlloc, "memory of a board was not freed: %s", freed.error().message.c_str());
  }
}

// The page of memory that was freed, once nobody writes there any more.
bool BoardStore::take_page_again(Kept& kept) {
  const MutexLock lock(mutex_);
  const auto spare = std::ranges::find_if(
      kept_, [](const Kept& one) { return !one.lent && one.shared.memory == nullptr && is_left(one); });
  if (spare == kept_.end()) return false;
  kept.page = spare->page;
  kept.lending = spare->lending;
  kept_.erase(spare);
  return true;
}

BoardStore::Kept* BoardStore::take_free(uint64_t bytes, SharedBy by) {
  const MutexLock lock(mutex_);
  for (Kept& kept : kept_) {
    if (kept.lent || (by == SharedBy::kTicket && kept.shared.by != by) || kept.shared.bytes < bytes || !is_left(kept))
      continue;
    kept.lent = true;
    return &kept;
  }
  return nullptr;
}

// Threads that come at the same time may each make a segment.
Result<BoardStore::Page> BoardStore::take_page() {
  const auto take = [&]() TRESTLE_REQUIRES(mutex_) -> Page {
    Pages& pages = pages_.back();
    const size_t number = pages.used++;
    new (pages.segment.data() + number * sizeof(BoardPage)) BoardPage();
    return {&pages.segment, number};
  };
  {
    const MutexLock lock(mutex_);
    if (!pages_.empty() && pages_.back().used < kPages) return take();
  }
  Segment segment = TRY(Segment::create("trestle-board", kPages * sizeof(BoardPage), false));
  TRY(device_.pin(segment.data(), segment.bytes()));
  const MutexLock lock(mutex_);
  pages_.push_back({std::move(segment), 0});
  return take();
}

Result<BoardStore::Kept*> BoardStore::make(uint64_t bytes, SharedBy by) {
  std::list<Kept> made(1);
  Kept& kept = made.front();
  kept.shared = TRY(allocate_shared(device_, bytes, by));
  if (!take_page_again(kept)) {
    const Result<Page> page = take_page();
    if (!page.ok()) {  // nobody knows of the memory
      TRY(free_shared(device_, std::move(kept.shared)));
      return page.error();
    }
    kept.page = page.value();
  }
  kept.lent = true;
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), made);
  return &kept;
}

BoardAddress BoardStore::address_of(const Kept& kept) {
  const Segment& segment = *kept.page.segment;
  const uint64_t at = kept.page.number * sizeof(BoardPage);
  return {{kept.shared.by, kept.shared.ticket, mem_new_id(), kept.nonce, kept.shared.bytes, 0},
          {SharedBy::kTicket, ticket_of(segment), mem_new_id(), 0, kPages * sizeof(BoardPage), at},
          kept.lending};
}

void BoardStore::take_back(Kept& kept) {
  const MutexLock lock(mutex_);
  kept.lent = false;
}

// Kernels of other ranks may write as soon as these know of the memory, so it is cleared before. Words about
// an earlier lending stay in the page: a late rank may still write one.
Result<BoardStore::Lent> BoardStore::lend(int32_t ranks, uint64_t most_bytes, uint32_t others, SharedBy by) {
  const uint64_t bytes = kernels::board_bytes(most_bytes, static_cast<uint64_t>(ranks));
  free_abandoned();
  Kept* kept = take_free(bytes, by);
  if (kept == nullptr) kept = TRY(make(bytes, by));
  std::shared_ptr<const void> held(kept, [this](Kept* one) { take_back(*one); });
  BoardPage& page = kept->page.board();
  page.control = {};
  kept->others = 0;
  TRY(clear_board(device_, kept->shared.memory, bytes));
  kept->others = others;
  ++kept->lending;
  return Lent{std::make_shared<BoardMemory>(kept->shared.memory, page, kept->lending, std::move(held)),
              address_of(*kept), kept->shared.descriptor.get()};
}

Result<std::shared_ptr<BoardMemory>> open_board(DeviceUse& use, const BoardAddress& address,
                                                const UniqueFd& descriptor) {
  const MemoryAddress& at = address.page;
  if (at.bytes < sizeof(BoardPage) || at.probe > at.bytes - sizeof(BoardPage) || at.probe % alignof(BoardPage) != 0)
    return Error{Code::kRemoteError, "its page is shorter than it says"};
  auto opened = std::make_shared<OpenedBoard>();
  opened->pages = TRY(open_segment(at.ticket, at.bytes));
  opened->memory = TRY(use.open(SharedPlace::kDevice, address.memory, descriptor));
  auto* const page = std::launder(reinterpret_cast<BoardPage*>(opened->pages.data() + at.probe));
  std::byte* const memory = opened->memory->region().base;
  return std::make_shared<BoardMemory>(memory, *page, address.lending, std::move(opened));
}

}  // namespace trestle
