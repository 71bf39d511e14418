#include "cli/run/line_prefix.h"

namespace trestle {
namespace {

constexpr size_t kLongestLine = 1 << 20;

}  // namespace

void LinePrefix::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    partial_.append(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end == std::string_view::npos && partial_.size() < kLongestLine) return;
    put(partial_);
    partial_.clear();
  }
}

void LinePrefix::end() {
  if (!partial_.empty()) put(partial_);
  partial_.clear();
}

void LinePrefix::put(std::string_view line) {
  std::string text = prefix_;
  text.append(line).push_back('\n');
  to_->add(text);
}

}  // namespace trestle
