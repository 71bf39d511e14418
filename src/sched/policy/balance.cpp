#include "sched/policy/balance.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {
namespace {

constexpr int kPoint = 30;  // fixed point: 2^30 is one
constexpr int64_t kOne = int64_t{1} << kPoint;
// Larger entries are cut: a column that is hundreds of times worse than the best one hardly matters.
constexpr int64_t kMostEntry = kOne << 8;
constexpr int64_t kMostValue = int64_t{1} << 60;
constexpr int64_t kNothing = 1 << 6;  // values below are rounding errors of zero
constexpr int kPivotsByCoefficient = 64;
constexpr int kMostPivots = 256;
using SignedWide = __int128;

// Maximises sum y subject to columns * y <= 1, y >= 0. The shares are y / sum y, the weights the reduced costs of the
// slacks.
class Tableau {
 public:
  Tableau(std::span<const Loads> columns, size_t rows) : rows_(rows), columns_(columns.size()) {
    uint64_t best = UINT64_MAX;
    for (const Loads& column : columns) best = std::min(best, *std::max_element(&column[0], &column[0] + rows));
    cells_.resize((rows + 1) * width());
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns_; ++c) {
        const auto scaled = (static_cast<unsigned __int128>(columns[c][r]) << kPoint) / best;
        cell(r, c) = static_cast<int64_t>(std::min<unsigned __int128>(scaled, kMostEntry));
      }
      cell(r, columns_ + r) = kOne;
      cell(r, columns_ + rows) = kOne;
      basis_.push_back(columns_ + r);
    }
    for (size_t c = 0; c < columns_; ++c) cell(rows, c) = -kOne;
  }

  void solve() {
    for (int pivots = 0; pivots < kMostPivots; ++pivots) {
      const size_t column = entering(pivots >= kPivotsByCoefficient);
      if (column == width()) return;
      const size_t row = leaving(column);
      if (row == rows_ || !pivot(row, column)) return;
    }
  }

  int64_t value(size_t column) const {
    for (size_t r = 0; r < rows_; ++r) {
      if (basis_[r] == column) return std::max<int64_t>(0, cells_[r * width() + columns_ + rows_]);
    }
    return 0;
  }
  int64_t weight(size_t row) const { return std::max<int64_t>(0, cells_[rows_ * width() + columns_ + row]); }

 private:
  size_t width() const { return columns_ + rows_ + 1; }
  int64_t& cell(size_t r, size_t c) { return cells_[r * width() + c]; }

  size_t entering(bool first) {
    size_t best = width();
    int64_t lowest = -kNothing;
    for (size_t c = 0; c + 1 < width(); ++c) {
      if (cell(rows_, c) >= lowest) continue;
      best = c;
      lowest = cell(rows_, c);
      if (first) break;
    }
    return best;
  }

  size_t leaving(size_t column) {
    const size_t right = columns_ + rows_;
    size_t best = rows_;
    for (size_t r = 0; r < rows_; ++r) {
      if (cell(r, column) <= kNothing) continue;
      if (best == rows_) {
        best = r;
        continue;
      }
      const SignedWide mine = SignedWide{cell(r, right)} * cell(best, column);
      const SignedWide others = SignedWide{cell(best, right)} * cell(r, column);
      if (mine < others || (mine == others && basis_[r] < basis_[best])) best = r;
    }
    return best;
  }

  // Returns false and changes nothing if a value would not fit.
  bool pivot(size_t row, size_t column) {
    const int64_t divisor = cell(row, column);
    std::vector<int64_t> next(cells_.size());
    const auto set = [&](size_t r, size_t c, SignedWide value) {
      next[r * width() + c] = static_cast<int64_t>(value);
      return value < kMostValue && value > -kMostValue;
    };
    for (size_t c = 0; c < width(); ++c) {
      if (!set(row, c, (SignedWide{cell(row, c)} << kPoint) / divisor)) return false;
    }
    for (size_t r = 0; r <= rows_; ++r) {
      if (r == row) continue;
      for (size_t c = 0; c < width(); ++c) {
        const SignedWide change = SignedWide{cell(r, column)} * next[row * width() + c] / kOne;
        if (!set(r, c, c == column ? SignedWide{0} : cell(r, c) - change)) return false;
      }
    }
    cells_ = std::move(next);
    basis_[row] = column;
    return true;
  }

  size_t rows_;
  size_t columns_;
  // The rows of constraints, then the row of reduced costs. The last column is the right-hand side.
  std::vector<int64_t> cells_;
  std::vector<size_t> basis_;
};

}  // namespace

Balance balance(std::span<const Loads> columns, size_t rows) {
  CHECK(!columns.empty() && rows > 0 && rows <= kMostRows, "nothing to balance");
  Balance result;
  result.shares.resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    // A column without load has nothing to balance and is no column of a game.
    if (std::any_of(&columns[c][0], &columns[c][0] + rows, [](uint64_t load) { return load != 0; })) continue;
    result.shares[c] = kWhole;
    return result;
  }
  Tableau tableau(columns, rows);
  tableau.solve();
  SignedWide sum = 0;
  for (size_t c = 0; c < columns.size(); ++c) sum += tableau.value(c);
  uint64_t given = 0;
  size_t largest = 0;
  for (size_t c = 0; c < columns.size() && sum > 0; ++c) {
    result.shares[c] = static_cast<uint64_t>(SignedWide{tableau.value(c)} * SignedWide{kWhole} / sum);
    given += result.shares[c];
    if (result.shares[c] > result.shares[largest]) largest = c;
  }
  result.shares[largest] += kWhole - given;
  SignedWide weights = 0;
  for (size_t r = 0; r < rows; ++r) weights += tableau.weight(r);
  for (size_t r = 0; r < rows; ++r) {
    result.weights[r] =
        weights > 0 ? static_cast<uint64_t>(SignedWide{tableau.weight(r)} * SignedWide{kWhole} / weights) : 0;
  }
  return result;
}

uint64_t heaviest(std::span<const Loads> columns, std::span<const uint64_t> shares, size_t rows) {
  uint64_t most = 0;
  for (size_t r = 0; r < rows; ++r) {
    unsigned __int128 sum = 0;
    for (size_t c = 0; c < columns.size(); ++c) sum += static_cast<unsigned __int128>(columns[c][r]) * shares[c];
    most = std::max(most, static_cast<uint64_t>((sum + kWhole - 1) / kWhole));
  }
  return most;
}

}  // namespace trestle
