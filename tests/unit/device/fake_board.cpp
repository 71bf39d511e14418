// The kernels of the board of devices, over the code that devices run (kernels/cuda/board_body.h). They wait for those
// of other ranks, so they run beside the streams, on threads of their own, and their stream waits for their end.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/cuda/board_body.h"
#include "unit/device/fake_state.h"

namespace trestle::fake {
namespace {

using kernels::BoardLines;
using kernels::CudaBoardCall;

constexpr uint32_t kDataThreads = 2;  // of a block
constexpr uint32_t kThreads = kDataThreads + 1;

// What the threads of a block share.
struct SharedBlock {
  struct CountVotes {
    SharedBlock& block;
    void operator()() noexcept { block.outcome = block.votes.exchange(0) != 0; }
  };
  std::barrier<CountVotes> barrier{kThreads, CountVotes{*this}};
  std::atomic<uint32_t> votes{0};
  bool outcome = false;
};

// Lines where a broken device writes other bytes, or nothing.
struct BrokenLines {
  const uint64_t* begin = nullptr;
  const uint64_t* end = nullptr;
  bool lost = false;
};

class FakeMachine {
 public:
  FakeMachine(SharedBlock& shared, const std::vector<BrokenLines>& broken, uint32_t thread, uint32_t block,
              uint32_t blocks)
      : shared_(shared), broken_(broken), thread_(thread), block_(block), blocks_(blocks) {}

  uint32_t thread() const { return thread_; }
  uint32_t threads() const { return kThreads; }
  uint32_t data_threads() const { return kDataThreads; }
  uint32_t block() const { return block_; }
  uint32_t blocks() const { return blocks_; }

  // The first line later, so that a reader sees the second one alone.
  BoardLines load_lines(const uint64_t* at) const {
    std::this_thread::yield();
    const uint64_t low = std::atomic_ref(*const_cast<uint64_t*>(at)).load();
    return {low, std::atomic_ref(*const_cast<uint64_t*>(at + 1)).load()};
  }
  void store_lines(uint64_t* at, BoardLines lines) const {
    store_line(at + 1, lines.high);
    store_line(at, lines.low);
  }
  void store_line(uint64_t* at, uint64_t line) const {
    const auto holds = [at](const BrokenLines& lines) { return at >= lines.begin && at < lines.end; };
    const auto broken = std::find_if(broken_.begin(), broken_.end(), holds);
    if (broken != broken_.end() && broken->lost) return;
    std::atomic_ref(*at).store(broken != broken_.end() ? line ^ 1 : line);
  }
  uint32_t load_word(const uint32_t* at) const { return std::atomic_ref(*const_cast<uint32_t*>(at)).load(); }
  void store_word(uint32_t* at, uint32_t word) const { std::atomic_ref(*at).store(word); }
  void fence() const {}  // every access is sequentially consistent
  void release() const {}
  void sync() const { shared_.barrier.arrive_and_wait(); }
  bool any(bool mine) const {
    if (mine) ++shared_.votes;
    shared_.barrier.arrive_and_wait();
    return shared_.outcome;
  }
  void pause() const { std::this_thread::yield(); }
  uint32_t add(uint32_t* word, uint32_t value) const { return std::atomic_ref(*word).fetch_add(value) + value; }

 private:
  SharedBlock& shared_;
  const std::vector<BrokenLines>& broken_;
  const uint32_t thread_;
  const uint32_t block_;
  const uint32_t blocks_;
};

using Body = void (*)(const FakeMachine&, const CudaBoardCall&);

template <class Data>
Body body() {
  return &kernels::run_board<FakeMachine, Data>;
}

template <DataType type>
Body sums(ReduceOp op) {
  using E = kernels::Element<type>;
  if (op == ReduceOp::kProd) return body<kernels::Sums<E, ReduceOp::kProd>>();
  if (op == ReduceOp::kMax) return body<kernels::Sums<E, ReduceOp::kMax>>();
  if (op == ReduceOp::kMin) return body<kernels::Sums<E, ReduceOp::kMin>>();
  return body<kernels::Sums<E, ReduceOp::kSum>>();
}

template <size_t... types>
Body find_sums(DataType type, ReduceOp op, std::index_sequence<types...>) {
  Body found = nullptr;
  ((static_cast<DataType>(types) == type ? void(found = sums<static_cast<DataType>(types)>(op)) : void()), ...);
  return found;
}

const std::string kBoardReduceImage = "reduce_";
const std::string kBoard = "board_";

Body body_of(const Kernel& kernel) {
  if (kernel.image == "move") return body<kernels::Copies>();
  const DataType type = parse_data_type(kernel.image.substr(kBoardReduceImage.size())).value();
  const ReduceOp op = parse_reduce_op(kernel.name.substr(kBoard.size())).value();
  return find_sums(type, op, std::make_index_sequence<kDataTypes>());
}

// What runs of one launch.
struct Launch {
  CudaBoardCall call;
  Body body = nullptr;
  uint32_t blocks = 1;
  std::deque<SharedBlock> shared;  // by block
  std::vector<BrokenLines> broken;
  std::atomic<uint32_t> running{0};
  bool begun = false;
};

void begin(const std::shared_ptr<Launch>& launch) {
  launch->begun = true;
  launch->running = launch->blocks * kThreads;
  for (uint32_t block = 0; block < launch->blocks; ++block) launch->shared.emplace_back();
  for (uint32_t i = 0; i < launch->blocks * kThreads; ++i) {
    std::thread([launch, i] {
      const uint32_t block = i / kThreads;
      const FakeMachine machine(launch->shared[block], launch->broken, i % kThreads, block, launch->blocks);
      launch->body(machine, launch->call);
      --launch->running;
    }).detach();
  }
}

}  // namespace

bool is_of_board(const Kernel& kernel) {
  return kernel.name.compare(0, kBoard.size(), kBoard) == 0;
}

Action board_action(CUcontext context, const Kernel& kernel, const void* parameters, uint32_t blocks) {
  auto launch = std::make_shared<Launch>();
  launch->call = *static_cast<const CudaBoardCall*>(parameters);
  launch->body = body_of(kernel);
  launch->blocks = blocks;
  const CudaBoardCall& call = launch->call;
  for (uint32_t r = 0; r < call.ranks; ++r) {
    const uint64_t* const end = call.lines[r] + kernels::kBoardHalves * call.ranks * call.lines_per_rank;
    const bool is_broken = state().peer_writes_broken || state().peer_writes_lost;
    if (is_elsewhere(context, call.lines[r]) && is_broken)
      launch->broken.push_back({call.lines[r], end, state().peer_writes_lost});
  }
  return [launch] {
    if (!launch->begun) begin(launch);
    return launch->running == 0;
  };
}

}  // namespace trestle::fake
