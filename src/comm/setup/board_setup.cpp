#include "comm/setup/board_setup.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/config/config.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mutex.h"
#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

// 64 KiB are two units for each of the threads of so many blocks.
constexpr uint32_t kMostBlocks = 16;
// Kernels of other communicators, and of the program, run there too.
constexpr uint32_t kCapacityShare = 2;
// The call that proves a board takes microseconds, or milliseconds where processes take turns on a device. A path that
// is broken may never answer.
constexpr int64_t kProofNs = 2'000'000'000;

// What the ranks of this process have brought, by job and rank.
struct Brought {
  Mutex mutex;
  std::map<std::pair<std::string, int32_t>, std::weak_ptr<BoardMemory>> memory TRESTLE_GUARDED_BY(mutex);

  static Brought& process() {
    static constinit PerProcess<Brought> brought;
    return brought.get();
  }
};

// Memory for the ranks of this process. A board whose kernel has not run keeps it beyond the last communicator.
struct BlocksHere {
  BlocksHere(Device& on, const std::shared_ptr<DeviceUse>& of) : device(on), use(of) {}
  BlocksHere(const BlocksHere&) = delete;
  BlocksHere& operator=(const BlocksHere&) = delete;
  ~BlocksHere() {
    if (const auto others = use.lock()) {
      others->keep(SharedPlace::kDevice, std::move(lines));
      others->keep(SharedPlace::kHost, std::move(page));
      return;
    }
    // A device that fails here has failed its users already.
    [[maybe_unused]] Status freed;
    for (const DeviceUse::Block& block : lines) freed = device.free(block.memory);
    for (const DeviceUse::Block& block : page) freed = device.free_pinned(block.memory);
  }

  Device& device;
  const std::weak_ptr<DeviceUse> use;
  DeviceUse::Blocks lines;  // one
  DeviceUse::Blocks page;   // one
};

Result<std::shared_ptr<BoardMemory>> memory_here(OpenedDevice& opened, int32_t ranks, uint64_t most_bytes) {
  const uint64_t bytes = kernels::board_bytes(most_bytes, static_cast<uint64_t>(ranks));
  const std::shared_ptr<DeviceUse> use = opened.use();
  auto blocks = std::make_shared<BlocksHere>(opened.device(), use);
  blocks->lines = TRY(use->take(SharedPlace::kDevice, bytes));
  blocks->page = TRY(use->take(SharedPlace::kHost, sizeof(BoardPage)));
  return BoardMemory::create(opened.device(), blocks->lines.front().memory, bytes, blocks->page.front().memory, blocks);
}

using Proof = std::array<unsigned char, BoardPage::kProofBytes>;

// What a rank sends: other bytes in every communicator.
Proof proof_of(const std::string& job, int32_t rank) {
  Hasher hasher;
  const uint64_t seed = hasher.string(job).integer(static_cast<uint64_t>(rank)).digest();
  Proof proof;
  for (size_t i = 0; i < proof.size(); ++i) proof[i] = static_cast<unsigned char>(splitmix64_mix(seed + i) >> 56);
  return proof;
}

bool is_proof(const BoardPage::Proof& bytes, const std::string& job, int32_t rank) {
  return std::memcmp(bytes, proof_of(job, rank).data(), sizeof bytes) == 0;
}

void say_why_not(int32_t rank, const std::string& why) {
  LOG(kInfo, kInit, "rank %d: small collectives on memory of devices go as messages: %s", rank, why.c_str());
}

std::string untrue(const std::string& name) {
  return "a device has received other bytes than that of " + name + " wrote";
}

}  // namespace

// Without a board nobody writes to anybody.
BoardSetup::~BoardSetup() {
  for (int32_t r = 0; r < static_cast<int32_t>(ranks_.size()); ++r) {
    if (memory_ != nullptr && !others_may_write_) memory_->leave(r);
    if (static_cast<size_t>(r) < opened_.size()) opened_[static_cast<size_t>(r)]->leave(rank_);
  }
}

bool BoardSetup::is_possible(const RankNames& names) const {
  const size_t ranks = ranks_.size();
  if (ranks < 2 || most_bytes_ == 0) return false;
  if (ranks > kernels::kMostBoardRanks) {
    say_why_not(rank_, "the communicator has more than " + std::to_string(kernels::kMostBoardRanks) + " ranks");
    return false;
  }
  for (size_t r = 0; r < ranks; ++r) {
    const BoardRank& one = ranks_[r];
    if (!one.is_reached) {
      say_why_not(rank_, "this device does not reach that of " + names[r]);
      return false;
    }
    // A device whose address is not known may be any.
    const auto shares_device = [&](const BoardRank& other) {
      return other.process != one.process && (one.pci.empty() || other.pci == one.pci);
    };
    if (!shares_ && std::ranges::any_of(ranks_, shares_device)) {
      say_why_not(rank_, "the device of " + names[r] + " is also that of another process");
      return false;
    }
  }
  // Then a launch waits for the kernel's end, and so for the other ranks.
  const Environment environment = process_environment();
  if (const auto found = environment.find("CUDA_LAUNCH_BLOCKING"); found != environment.end() && found->second == "1") {
    say_why_not(rank_, "CUDA_LAUNCH_BLOCKING=1");
    return false;
  }
  const auto opened = OpenedDevices::process().open(device_);
  if (opened.ok() && opened.value()->links().waits_for_words()) return true;
  say_why_not(rank_, "the driver's streams do not wait for words");
  return false;
}

uint32_t BoardSetup::others() const {
  uint32_t others = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].device < 0) others |= 1u << r;
  }
  return others;
}

Result<std::string> BoardSetup::try_to_bring(SharedBy by) {
  OpenedDevice* const opened = TRY(OpenedDevices::process().open(device_));
  const auto ranks = static_cast<int32_t>(ranks_.size());
  std::string address;
  if (others() == 0) {
    memory_ = TRY(memory_here(*opened, ranks, most_bytes_));
  } else {
    BoardStore::Lent lent = TRY(opened->boards().lend(ranks, most_bytes_, others(), by));
    memory_ = std::move(lent.memory);
    descriptor_ = lent.descriptor;
    address = encode(lent.address);
  }
  std::memcpy(memory_->page().sent, proof_of(job_, rank_).data(), sizeof(BoardPage::Proof));
  Brought& brought = Brought::process();
  const MutexLock lock(brought.mutex);
  std::erase_if(brought.memory, [](const auto& one) { return one.second.expired(); });
  brought.memory[{job_, rank_}] = memory_;
  return address;
}

std::optional<std::string> BoardSetup::bring(SharedBy by) {
  Result<std::string> brought = try_to_bring(by);
  if (brought.ok()) return std::move(brought).value();
  say_why_not(rank_, brought.error().message);
  return std::nullopt;
}

Result<std::shared_ptr<BoardMemory>> BoardSetup::find_here(int32_t rank) const {
  Brought& brought = Brought::process();
  const MutexLock lock(brought.mutex);
  const auto found = brought.memory.find({job_, rank});
  auto memory = found == brought.memory.end() ? nullptr : found->second.lock();
  if (memory != nullptr) return memory;
  return Error{Code::kRemoteError, "rank " + std::to_string(rank) + " has given up while the communicator was made"};
}

// Another process than the peer may answer to its number, as in two containers with process numbers of their own. Its
// memory has another proof.
Result<std::shared_ptr<BoardMemory>> BoardSetup::open_there(int32_t rank, const std::string& brought,
                                                            const UniqueFd& passed) const {
  const BoardAddress address = TRY(decode_board_address(brought));
  if (address.memory.bytes < kernels::board_bytes(most_bytes_, ranks_.size()))
    return Error{Code::kRemoteError, "its memory is too short"};
  OpenedDevice* const opened = TRY(OpenedDevices::process().open(device_));
  std::shared_ptr<BoardMemory> memory = TRY(open_board(*opened->use(), address, passed));
  if (is_proof(memory->page().sent, job_, rank)) return memory;
  return Error{Code::kRemoteError, "its process number means another process here"};
}

// Processes that take turns on the device are counted too: where they do not (CUDA's MPS), their kernels run together.
Result<BoardSetup::Opened> BoardSetup::blocks_of_rank() const {
  const auto kernels = TRY(TRY(OpenedDevices::process().open(device_))->kernels());
  const std::string& pci = ranks_[static_cast<size_t>(rank_)].pci;
  const auto is_here = [&](const BoardRank& one) { return one.device == device_ || (!pci.empty() && one.pci == pci); };
  const auto ranks_of_device = static_cast<uint32_t>(std::ranges::count_if(ranks_, is_here));
  const uint32_t blocks = std::min(kMostBlocks, kernels->board_capacity() / kCapacityShare / ranks_of_device);
  return Opened{blocks, blocks == 0 ? "a device has too many ranks" : ""};
}

Result<BoardSetup::Opened> BoardSetup::open(const std::vector<std::string>& brought, const std::vector<bool>& has_path,
                                            const std::vector<UniqueFd>& passed, const RankNames& names) {
  for (int32_t r = 0; r < static_cast<int32_t>(ranks_.size()); ++r) {
    const auto at = static_cast<size_t>(r);
    if (ranks_[at].device >= 0) {
      opened_.push_back(TRY(find_here(r)));
      continue;
    }
    Result<std::shared_ptr<BoardMemory>> opened =
        has_path[at] ? open_there(r, brought[at], passed[at])
                     : Error{Code::kSystemError, "the devices do not read each other's memory"};
    if (!opened.ok()) return Opened{0, "memory of " + names[at] + " cannot be opened: " + opened.error().message};
    opened_.push_back(std::move(opened).value());
  }
  Opened opened = TRY(blocks_of_rank());
  others_may_write_ = opened.blocks != 0;
  return opened;
}

Status BoardSetup::make(uint32_t blocks, DevicePlace& place) {
  OpenedDevice* const opened = TRY(OpenedDevices::process().open(device_));
  DeviceBoardConfig config;
  config.rank = rank_;
  config.memory = opened_;
  config.most_bytes = most_bytes_;
  config.most_blocks = blocks;
  config.calls = place.calls;
  config.keep = [opened](std::shared_ptr<const void> kept) { opened->keep(std::move(kept)); };
  config.let_go = [opened](const std::shared_ptr<const void>& kept) { opened->let_go(kept); };
  place.board = TRY(DeviceBoard::create(opened->device(), TRY(opened->kernels()), std::move(config)));
  opened_.clear();
  return {};
}

Result<std::string> BoardSetup::try_to_prove(DeviceBoard& board, const RankNames& names) {
  BoardPage& page = memory_->page();
  ExpressCall call;
  call.collective = Collective::kAllGather;
  call.spec.type = DataType::kUint8;
  call.send = reinterpret_cast<const std::byte*>(page.sent);
  call.recv = reinterpret_cast<std::byte*>(page.received);
  call.elements = call.bytes = std::min<uint64_t>(BoardPage::kProofBytes, most_bytes_);
  call.sequence = board.next_sequence();
  const auto name = [&](int32_t rank) { return names[static_cast<size_t>(rank)]; };
  const int64_t give_up_ns = monotonic_clock().now_ns() + kProofNs;
  while (!TRY(board.poll(call))) {
    if (call.dissenter >= 0) return untrue(name(call.dissenter));
    if (monotonic_clock().now_ns() > give_up_ns) {
      const int32_t awaited = board.awaited_rank(call);
      return awaited < 0 ? "lines of other ranks did not arrive in time" : name(awaited) + " did not come in time";
    }
    ::sched_yield();
  }
  for (int32_t r = 0; r < static_cast<int32_t>(ranks_.size()); ++r) {
    const unsigned char* const received = page.received + static_cast<size_t>(r) * call.bytes;
    if (std::memcmp(received, proof_of(job_, r).data(), call.bytes) != 0) return untrue(name(r));
  }
  return std::string();
}

// The others learn of it in an exchange, which may have to wait for what this rank's kernel keeps from running.
std::string BoardSetup::prove(DevicePlace& place, const RankNames& names) {
  Result<std::string> untrue = try_to_prove(*place.board, names);
  std::string why = untrue.ok() ? std::move(untrue).value() : untrue.error().message;
  if (!why.empty()) drop(place);
  return why;
}

void BoardSetup::drop(DevicePlace& place) {
  if (place.board == nullptr) return;
  if (place.board->close(monotonic_clock().now_ns() + kProofNs)) {
    place.board.reset();
    return;
  }
  const auto opened = OpenedDevices::process().open(device_);
  CHECK(opened.ok(), "a device was opened, and is no more");
  opened.value()->keep(std::shared_ptr<const DeviceBoard>(std::move(place.board)));
}

}  // namespace trestle
