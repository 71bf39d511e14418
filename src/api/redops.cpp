// The C API: user-defined reduction operators, and how an operator's number leads to its function.
#include "api/redops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>

#include "api/background.h"
#include "api/collectives.h"
#include "api/cuda.h"
#include "api/user_code.h"

using namespace trestle;

namespace {

// ---- calling the user's function

Error reduction_failed(std::string why) {
  return {Code::kReductionFailed, "the user-defined reduction " + std::move(why)};
}

// Calls the user's function and catches what it throws.
struct UserFunction {
  trestleReduceFunction_t function = nullptr;
  void* context = nullptr;

  Status operator()(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, DataType type) const;

 private:
  Status call(void* dst, std::span<const void* const> sources, size_t elements, DataType type) const;
  Status call_aligned(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, DataType type) const;
};

Status UserFunction::call(void* dst, std::span<const void* const> sources, size_t elements, DataType type) const {
  int result = 0;
  try {
    const InUserCode now(UserCode::kReduction);
    result = function(dst, sources.data(), static_cast<int>(sources.size()), elements,
                      static_cast<trestleDataType_t>(type), context);
  } catch (const std::exception& exception) {
    return reduction_failed(std::string("threw an exception (") + exception.what() + ")");
  } catch (...) {
    return reduction_failed("threw an exception that is not a std::exception");
  }
  if (result == 0) return {};
  return reduction_failed("gave up (it returned " + std::to_string(result) + ")");
}

// Messages and user buffers may be unaligned: the data goes through aligned memory, piece by piece.
Status UserFunction::call_aligned(std::byte* dst, std::span<const std::byte* const> sources, size_t elements,
                                  DataType type) const {
  constexpr size_t kPieceBytes = 4096;
  const size_t element_bytes = size_of(type);
  const size_t piece = kPieceBytes / element_bytes;
  std::vector<uint64_t> copies(kPieceBytes / sizeof(uint64_t) * sources.size());
  std::vector<const void*> aligned(sources.size());
  for (size_t begin = 0; begin < elements; begin += piece) {
    const size_t count = std::min(piece, elements - begin);
    for (size_t s = 0; s < sources.size(); ++s) {
      uint64_t* const copy = copies.data() + s * (kPieceBytes / sizeof(uint64_t));
      std::memcpy(copy, sources[s] + begin * element_bytes, count * element_bytes);
      aligned[s] = copy;
    }
    TRY(call(copies.data(), aligned, count, type));
    std::memcpy(dst + begin * element_bytes, copies.data(), count * element_bytes);
  }
  return {};
}

Status UserFunction::operator()(std::byte* dst, std::span<const std::byte* const> sources, size_t elements,
                                DataType type) const {
  const uintptr_t misaligned = size_of(type) - 1;
  uintptr_t bits = reinterpret_cast<uintptr_t>(dst);
  for (const std::byte* source : sources) bits |= reinterpret_cast<uintptr_t>(source);
  if ((bits & misaligned) != 0) return call_aligned(dst, sources, elements, type);
  constexpr size_t kFew = 64;
  std::array<const void*, kFew> few;
  std::vector<const void*> many;
  std::span<const void*> list(few.data(), std::min(kFew, sources.size()));
  if (sources.size() > kFew) {
    many.resize(sources.size());
    list = many;
  }
  std::copy(sources.begin(), sources.end(), list.begin());
  return call(dst, list, elements, type);
}

// ---- numbers

std::string op_text(const char* function, int op) {
  return std::string(function) + ": operator " + std::to_string(op);
}

Error unknown_op(const char* function, int op) {
  if (op < 0) return invalid_argument(std::string(function) + ": unknown operator " + std::to_string(op));
  return invalid_argument(
      op_text(function, op) +
      " does not belong to this communicator: it was destroyed, or made for another one, or never made");
}

// No number is used twice in a process, so that an operator of another communicator is recognised.
int64_t next_number() {
  static std::atomic<int64_t> next{trestleNumOps};
  return next.fetch_add(1, std::memory_order_relaxed);
}

template <class F>
trestleResult_t create(const char* function, trestleRedOp_t* op, trestleComm_t comm, F&& make) {
  return guarded([&]() -> Status {
    const std::string in = std::string(function) + ": ";
    if (op == nullptr) return invalid_argument(in + "op is NULL");
    if (comm == nullptr) return invalid_argument(in + "comm is NULL");
    Use use(comm);
    TRY(check_ready(use, function));
    TRY(use.object()->check_open());
    auto made = std::make_shared<CustomOp>();
    TRY(make(*made, *use.object()));
    const int64_t number = next_number();
    if (number > trestleMaxRedOp) return invalid_usage(in + "this process has made as many operators as there are");
    use.object()->calls().custom_ops().add(static_cast<int32_t>(number), std::move(made));
    *op = static_cast<trestleRedOp_t>(number);
    return {};
  });
}

}  // namespace

namespace trestle {

Status set_op(const Communicator& communicator, const char* function, int op, PrepareRequest& request) {
  if (op >= 0 && op < trestleNumOps) {
    request.op = static_cast<ReduceOp>(op);
    return {};
  }
  SharedOp custom = communicator.calls().custom_ops().find(op);
  if (custom == nullptr) return unknown_op(function, op);
  if (custom->kind == kPreMulSum && custom->type != request.type) {
    return invalid_argument(op_text(function, op) + " multiplies " + to_string(custom->type) + " and not " +
                            to_string(request.type));
  }
  request.op = custom->kind;
  request.custom = std::move(custom);
  return {};
}

}  // namespace trestle

extern "C" {

trestleResult_t trestleRedOpCreatePreMulSum(trestleRedOp_t* op, void* scalar, trestleDataType_t type,
                                            trestleScalarResidence_t residence, trestleComm_t comm) {
  return create("RedOpCreatePreMulSum", op, comm, [&](CustomOp& made, const Communicator& communicator) -> Status {
    if (scalar == nullptr) return invalid_argument("RedOpCreatePreMulSum: scalar is NULL");
    TRY(check_scalar(communicator, "RedOpCreatePreMulSum", scalar));
    made.type = TRY(checked_type("RedOpCreatePreMulSum", static_cast<int>(type)));
    switch (static_cast<int>(residence)) {
      case trestleScalarHostImmediate:
        std::memcpy(made.immediate.data(), scalar, size_of(made.type));
        return {};
      case trestleScalarDevice:
        made.deferred = scalar;
        return {};
      default:
        return invalid_argument("RedOpCreatePreMulSum: unknown residence " +
                                std::to_string(static_cast<int>(residence)));
    }
  });
}

trestleResult_t trestleRedOpCreate(trestleRedOp_t* op, trestleReduceFunction_t function, void* context, int commutative,
                                   trestleComm_t comm) {
  return create("RedOpCreate", op, comm, [&](CustomOp& made, const Communicator&) -> Status {
    if (function == nullptr) return invalid_argument("RedOpCreate: function is NULL");
    if (commutative != 0 && commutative != 1) {
      return invalid_argument("RedOpCreate: commutative is " + std::to_string(commutative) + ": 0 or 1");
    }
    made.kind = commutative == 1 ? kUserCommutative : kUserInOrder;
    made.fold = UserFunction{function, context};
    return {};
  });
}

trestleResult_t trestleRedOpDestroy(trestleRedOp_t op, trestleComm_t comm) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument("RedOpDestroy: comm is NULL");
    const int number = static_cast<int>(op);
    if (number >= 0 && number < trestleNumOps) {
      return invalid_argument("RedOpDestroy: " + std::string(to_string(static_cast<ReduceOp>(number))) +
                              " is built in and cannot be destroyed");
    }
    Use use(comm);
    TRY(check_ready(use, "RedOpDestroy"));
    const SharedOp taken = use.object()->calls().custom_ops().take(number);
    if (taken == nullptr) return unknown_op("RedOpDestroy", number);
    use.object()->calls().planner().forget_op(taken.get());
    return {};
  });
}

}  // extern "C"
