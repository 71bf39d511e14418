#include "engine/work/device_board.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "express/stamp.h"

namespace trestle {

namespace {

using kernels::CudaBoardCall;

constexpr uint32_t kLooksPerQuestion = 1024;  // as for a mark (device/gate.cpp)
// A device that is alive does it in microseconds. Where streams share a queue of the driver, it may stand behind one
// that is held.
constexpr int64_t kStopNs = 200'000'000;
// A stream holds about a thousand launches, and the driver blocks the caller when it is full.
constexpr int32_t kMostUnderWay = 256;
// A stamp has fewer bits, so it is never 0.
constexpr uint64_t kIsStamp = uint64_t{1} << 63;
static_assert(kStampBits < 63);

uint32_t word_of(uint64_t sequence) {
  return static_cast<uint32_t>(sequence);
}

// Kernels write these words beside the host.
std::atomic_ref<uint32_t> shared(uint32_t& word) {
  return std::atomic_ref<uint32_t>(word);
}

bool is_past(uint32_t word, uint64_t sequence) {
  return static_cast<int32_t>(word - word_of(sequence)) >= 0;
}

uint32_t bit(int32_t rank) {
  return 1u << rank;
}

}  // namespace

// What kernels need that a stream comes to after the end of the board.
struct DeviceBoard::Kept {
  std::shared_ptr<DeviceKernels> kernels;
  std::vector<std::shared_ptr<BoardMemory>> memory;
};

Result<std::unique_ptr<DeviceBoard>> DeviceBoard::create(Device& device, std::shared_ptr<DeviceKernels> kernels,
                                                         DeviceBoardConfig config) {
  CHECK(config.memory.size() <= kernels::kMostBoardRanks, "too many ranks for the board of devices");
  std::unique_ptr<DeviceBoard> board(new DeviceBoard(device, std::move(kernels), std::move(config)));
  TRY(board->timer_.open());
  board->stream_ = TRY(device.make_stream(true));
  ++board->streams_;
  board->stop_stream_ = TRY(device.make_stream(true));
  ++board->streams_;
  board->kept_ = std::make_shared<Kept>(Kept{board->kernels_, board->config_.memory});
  board->config_.keep(board->kept_);
  return board;
}

DeviceBoard::DeviceBoard(Device& device, std::shared_ptr<DeviceKernels> kernels, DeviceBoardConfig config)
    : device_(device),
      kernels_(std::move(kernels)),
      config_(std::move(config)),
      next_sequence_(config_.first_sequence),
      launched_(config_.first_sequence - 1),
      ended_seen_(word_of(config_.first_sequence - 1)) {
  // No call was made, so nobody reads them yet.
  for (uint32_t* const word : {&control().begun, &control().ended, &control().chain})
    shared(*word).store(ended_seen_, std::memory_order_release);
}

DeviceBoard::~DeviceBoard() {
  close(INT64_MAX);
  if (kept_ != nullptr && launched_.load(std::memory_order_acquire) == ended_at_close_) config_.let_go(kept_);
  // A device that fails has failed its users already.
  [[maybe_unused]] Status destroyed;
  if (streams_ > 0) destroyed = device_.destroy_stream(stream_);
  if (streams_ > 1) destroyed = device_.destroy_stream(stop_stream_);
}

bool DeviceBoard::serves(Collective collective, uint64_t count_bytes, bool half) const {
  return row_of(collective).over_board && !half && count_bytes <= config_.most_bytes;
}

// ---- launching

void DeviceBoard::describe_sums(const ExpressCall& call, CudaBoardCall& work) const {
  const CollectiveRow& row = row_of(call.collective);
  const uint32_t all = bit(ranks()) - 1;
  work.elements = call.elements;
  work.send_to = row.received.at_root_only ? bit(call.root) : all;
  work.recv_from = row.received.at_root_only && config_.rank != call.root ? 0 : all;
  work.average_over = call.spec.average_over;
  if (call.factor != nullptr) {
    work.is_scaled = 1;
    std::memcpy(work.factor, call.factor, size_of(call.spec.type));
  }
  const uint64_t addresses = reinterpret_cast<uintptr_t>(call.send) | reinterpret_cast<uintptr_t>(call.recv);
  work.elements_are_aligned = addresses % size_of(call.spec.type) == 0;
}

void DeviceBoard::describe_copies(const ExpressCall& call, CudaBoardCall& work) const {
  const CollectiveRow& row = row_of(call.collective);
  const uint32_t all = bit(ranks()) - 1;
  const bool is_root = config_.rank == call.root;
  work.elements = call.bytes;
  if (!row.sent.at_root_only || is_root) work.send_to = row.received.at_root_only ? bit(call.root) : all;
  if (!row.received.at_root_only || is_root) work.recv_from = row.sent.at_root_only ? bit(call.root) : all;
  work.recv_stride = row.received.extent == BufferExtent::kCountPerRank ? call.bytes : 0;
  work.elements_are_aligned = 1;
}

CudaBoardCall DeviceBoard::describe(const ExpressCall& call) const {
  CudaBoardCall work;
  work.send = call.send;
  work.recv = call.recv;
  work.rank = static_cast<uint32_t>(config_.rank);
  work.ranks = static_cast<uint32_t>(ranks());
  work.sequence = word_of(call.sequence);
  work.flag = kernels::board_flag(call.sequence);
  work.half = static_cast<uint32_t>(call.sequence % kernels::kBoardHalves);
  work.clears = kernels::board_clears(call.sequence);
  work.stamp = stamp_of(call) | kIsStamp;
  work.lines_per_rank = kernels::board_lines(config_.most_bytes);
  work.control = &control();
  for (int32_t r = 0; r < ranks(); ++r) work.lines[r] = config_.memory[static_cast<size_t>(r)]->lines();
  work.words = config_.memory[static_cast<size_t>(config_.rank)]->words();
  if (call.bytes == 0 || !moves_data(call.collective)) return work;  // headers only
  const CollectiveRow& row = row_of(call.collective);
  work.send_stride = row.sent.extent == BufferExtent::kCountPerRank ? call.bytes : 0;
  if (row.reduces) {
    describe_sums(call, work);
  } else {
    describe_copies(call, work);
  }
  return work;
}

Status DeviceBoard::launch(const OuterPlace& place, ExpressCall& call) {
  CHECK(call.bytes <= config_.most_bytes, "a call has more bytes than the board has lines for");
  CudaBoardCall work = describe(call);
  work.mark_word = place.mark_word;
  work.mark = place.mark;
  if (last_place_ != place.id && !has_ended(call.sequence - 1))
    TRY(device_.wait_for_word(place.stream, &control().chain, word_of(call.sequence - 1)));
  std::optional<ReduceOp> op;
  if (row_of(call.collective).reduces) op = call.spec.op == kPreMulSum ? ReduceOp::kSum : call.spec.op;
  TRY(kernels_->board(work, call.spec.type, op, kernels::board_blocks(call.bytes, config_.most_blocks), place.stream));
  last_place_ = place.id;
  call.published = true;
  launched_.store(call.sequence, std::memory_order_release);
  return {};
}

Status DeviceBoard::launch_on(const OuterPlace& place, ExpressCall& call) {
  CHECK(is_next(call), "a call of the board of devices is launched out of turn");
  only_own_stream_ = false;
  return launch(place, call);
}

bool DeviceBoard::has_room() const {
  const uint32_t ended = shared(control().ended).load(std::memory_order_acquire);
  return static_cast<int32_t>(word_of(launched_.load(std::memory_order_relaxed)) - ended) < kMostUnderWay;
}

// ---- ending

bool DeviceBoard::has_ended(uint64_t sequence) const {
  return is_past(shared(control().ended).load(std::memory_order_acquire), sequence);
}

// A device that fails writes no word, but its answer tells.
Status DeviceBoard::ask_device() {
  if (++vain_looks_ % kLooksPerQuestion != 0) return {};
  TRY(device_.is_idle(stream_));
  return {};
}

Result<bool> DeviceBoard::poll(ExpressCall& call) {
  const DriverCalls::Inside inside(*config_.calls);
  waits_ = true;
  if (!call.published) {
    if (!is_next(call) || !has_room()) return false;
    TRY(launch({stream_, 0, nullptr, 0}, call));
    timer_.begin_beside_sleeper();
  }
  if (std::exchange(seen_, std::max(seen_, call.sequence)) < call.sequence) timer_.moved();
  if (has_ended(call.sequence)) return true;
  find_dissenter(call);
  TRY(ask_device());
  return false;
}

// A stamp that differs belongs to the call whose kernel runs.
void DeviceBoard::find_dissenter(ExpressCall& call) const {
  if (!has_ended(call.sequence - 1)) return;
  for (int32_t r = 0; r < ranks() && call.dissenter < 0; ++r) {
    const std::atomic_ref<uint64_t> stamp(control().other_stamps[r]);
    if (stamp.load(std::memory_order_acquire) != 0) call.dissenter = r;
  }
}

int32_t DeviceBoard::awaited_rank(const ExpressCall& call) const {
  if (!call.published) return -1;
  for (int32_t r = 0; r < ranks(); ++r) {
    kernels::BoardControl& theirs = config_.memory[static_cast<size_t>(r)]->control();
    const uint32_t begun = shared(theirs.begun).load(std::memory_order_acquire);
    if (r != config_.rank && !is_past(begun, call.sequence)) return r;
  }
  return -1;
}

Express::Other DeviceBoard::run_by_dissenter(const ExpressCall& call) const {
  const std::atomic_ref<uint64_t> stamp(control().other_stamps[call.dissenter]);
  return other_by_stamp(call, stamp.load(std::memory_order_relaxed));
}

bool DeviceBoard::poll() {
  waits_ = false;
  const uint32_t ended = shared(control().ended).load(std::memory_order_relaxed);
  if (std::exchange(ended_seen_, ended) != ended) timer_.moved();
  return false;  // the calls themselves are asked
}

// ---- sleeping

bool DeviceBoard::prepare_sleep() {
  const bool waits = waits_ && !closed_;
  if (waits && (!timer_.may_sleep() || shared(control().ended).load(std::memory_order_acquire) != ended_seen_))
    return false;
  timer_.prepare(waits);
  return true;
}

// ---- the end

// The caller lets streams go on afterwards, in which work may be left out that a kernel counts on.
Result<bool> DeviceBoard::stop_later_kernels() {
  const DriverCalls::Inside inside(*config_.calls);
  auto* const words = config_.memory[static_cast<size_t>(config_.rank)]->words();
  TRY(device_.write_word(stop_stream_, &words->stopped, 1));
  const int64_t give_up_ns = monotonic_clock().now_ns() + kStopNs;
  while (!TRY(device_.is_idle(stop_stream_))) {
    if (monotonic_clock().now_ns() > give_up_ns) {
      LOG(kWarn, kColl, "device %d has not stopped the small collectives of a communicator in time",
          device_.info().index);
      return false;
    }
    ::sched_yield();
  }
  return true;
}

// Ranks of other processes lend their memory to other boards then.
void DeviceBoard::leave() {
  for (int32_t r = 0; r < ranks(); ++r) {
    if (r != config_.rank) config_.memory[static_cast<size_t>(r)]->leave(config_.rank);
  }
}

void DeviceBoard::abort_kernels() {
  shared(control().abort).store(1, std::memory_order_seq_cst);
}

bool DeviceBoard::is_broken() {
  const DriverCalls::Inside inside(*config_.calls);
  return !device_.is_idle(stream_).ok();
}

bool DeviceBoard::close(int64_t give_up_ns) {
  if (closed_) return true;
  // A kernel stores `begun` and then loads `abort`; this does it the other way round (kernels/cuda/board_body.h).
  abort_kernels();
  // A broken device runs nothing.
  const Result<bool> stopped = streams_ > 1 ? stop_later_kernels() : Result<bool>(false);
  const uint32_t begun = shared(control().begun).load(std::memory_order_seq_cst);
  // The board's own stream comes to its kernels soon, and they end at once. A stream of the caller's may never come.
  const int64_t stop_ns = only_own_stream_ ? monotonic_clock().now_ns() + kStopNs : 0;
  while (!is_past(shared(control().ended).load(std::memory_order_acquire), begun) ||
         (monotonic_clock().now_ns() < stop_ns && !has_ended(launched_.load(std::memory_order_acquire)))) {
    if (monotonic_clock().now_ns() >= give_up_ns) return false;
    if (is_broken()) break;  // a broken device runs nothing
    ::poll(nullptr, 0, 1);
  }
  const uint64_t launched = launched_.load(std::memory_order_acquire);
  if (has_ended(launched)) {
    ended_at_close_ = launched;
    // A thread may be about to launch one more. That sends nothing if it finds the word.
    if (stopped.ok() && stopped.value()) leave();
  }
  // Streams may wait for a kernel that does nothing any more. From here on kernels end in any order.
  constexpr uint32_t kFarAhead = 1u << 30;
  shared(control().chain).store(word_of(launched) + kFarAhead, std::memory_order_release);
  closed_ = true;
  return true;
}

}  // namespace trestle
