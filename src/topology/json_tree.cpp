#include "topology/json_tree.h"

#include <algorithm>
#include <iterator>

#include "base/text/json.h"

namespace trestle {
namespace {

// The parser's position. The parser looks at most one character ahead, and the character that ends a line belongs to
// that line. So the line of the last character read is the line of the current token.
struct Cursor {
  const char* last = nullptr;
  int lines_ended = 0;  // before `last`
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  char operator*() const {
    if (cursor_->last != at_) {
      if (cursor_->last != nullptr && *cursor_->last == '\n') ++cursor_->lines_ended;
      cursor_->last = at_;
    }
    return *at_;
  }
  CountingIterator& operator++() {
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++at_;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Cursor* cursor_;
};

// Receives the parser's events and builds the tree; `failure_` is set when an event returned false.
class TreeBuilder {
 public:
  using Kind = JsonValue::Kind;
  TreeBuilder(const Cursor& cursor, const std::string& source, size_t bytes)
      : cursor_(cursor), source_(source), bytes_(bytes) {}

  bool null() { return add(Kind::kNull) != nullptr; }
  bool boolean(bool value) {
    add(Kind::kBoolean)->whole = value ? 1 : 0;
    return true;
  }
  // The parser calls this for negative numbers only.
  bool number_integer(int64_t value) { return number(Kind::kReal, static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) {
    JsonValue* added = add(Kind::kWhole);
    added->whole = value;
    added->number = static_cast<double>(value);
    return true;
  }
  bool number_float(double value, const std::string&) { return number(Kind::kReal, value); }
  bool string(std::string& value) {
    add(Kind::kString)->text = value;
    return true;
  }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return open(Kind::kObject); }
  bool start_array(size_t) { return open(Kind::kArray); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = name;
    key_line_ = line();
    const auto& keys = open_.back()->keys;
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return fail(name, "is given twice");
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    static constexpr int kOutOfRange = 406;  // nlohmann-json's code for a number out of range
    if (position > bytes_ || cursor_.last == nullptr) return fail(key_, "the text ends too early");
    if (error.id == kOutOfRange) return fail(key_, "a number is too large");
    const char last = *cursor_.last;
    if (last > ' ' && last <= '~') return fail(key_, std::string("bad syntax at '") + last + "'");
    return fail(key_, "bad syntax at byte " + std::to_string(static_cast<unsigned char>(last)));
  }

  JsonValue root;
  std::string failure;

 private:
  int line() const { return cursor_.lines_ended + 1; }
  JsonValue* add(Kind kind) {
    JsonValue* added = &root;
    int at = line();
    if (!open_.empty()) {
      JsonValue& parent = *open_.back();
      if (parent.kind == Kind::kObject) {
        parent.keys.push_back(key_);
        at = key_line_;
      }
      added = &parent.items.emplace_back();
    }
    added->kind = kind;
    added->line = at;
    return added;
  }
  bool number(Kind kind, double value) {
    add(kind)->number = value;
    return true;
  }
  bool open(Kind kind) {
    static constexpr size_t kMostLevels = 8;
    if (open_.size() == kMostLevels) return fail(key_, "has more than 8 levels");
    open_.push_back(add(kind));  // stays where it is: its parent gets no other item before it is closed
    return true;
  }
  bool close() {
    open_.pop_back();
    key_.clear();
    return true;
  }
  bool fail(const std::string& field, const std::string& what) {
    failure = source_ + ":" + std::to_string(line()) + ": " + (field.empty() ? "" : field + ": ") + what;
    return false;
  }

  const Cursor& cursor_;
  const std::string& source_;
  const size_t bytes_;
  std::vector<JsonValue*> open_;
  std::string key_;
  int key_line_ = 1;
};

}  // namespace

const char* to_string(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBoolean:
      return "a boolean";
    case JsonValue::Kind::kWhole:
    case JsonValue::Kind::kReal:
      return "a number";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "a list";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "invalid";
}

Result<JsonValue> parse_json(const std::string& json, const std::string& source) {
  Cursor cursor;
  TreeBuilder builder(cursor, source, json.size());
  const char* const end = json.data() + json.size();
  if (!nlohmann::json::sax_parse(CountingIterator(json.data(), &cursor), CountingIterator(end, &cursor), &builder)) {
    return Error{Code::kInvalidArgument, std::move(builder.failure)};
  }
  return std::move(builder.root);
}

}  // namespace trestle
