#include "cli/train/workload_file.h"

#include <cmath>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "topology/json_tree.h"

namespace trestle {
namespace {

using Kind = JsonValue::Kind;

constexpr size_t kMostTensors = 4096;
constexpr double kMostBytes = 1e15;
constexpr double kMostSeconds = 1e9;
constexpr const char* kKeys[] = {"name", "bytes", "forward_s", "backward_s"};

// The reader's position, for error messages.
struct Place {
  const std::string& source;
  std::string where;  // "tensor 2: " or ""

  Error error(const JsonValue& value, const std::string& field, const std::string& what) const {
    const std::string of = field.empty() ? "" : field + ": ";
    return {Code::kInvalidArgument, source + ":" + std::to_string(value.line) + ": " + where + of + what};
  }
  Error wrong_type(const JsonValue& value, const std::string& field, const char* wanted) const {
    return error(value, field, std::string("must be ") + wanted + ", not " + to_string(value.kind));
  }
};

// A number from 0 to `most`.
Result<double> amount(const Place& place, const JsonValue& value, const std::string& field, double most) {
  if (value.kind != Kind::kWhole && value.kind != Kind::kReal) return place.wrong_type(value, field, "a number");
  if (value.number < 0) return place.error(value, field, "must not be negative");
  if (!(value.number <= most)) return place.error(value, field, "is too large");
  return value.number;
}

Status set_field(const Place& place, const std::string& key, const JsonValue& value, GradientTensor& tensor) {
  if (key == "name") {
    if (value.kind != Kind::kString) return place.wrong_type(value, key, "a string");
    tensor.name = value.text;
  } else if (key == "bytes") {
    const double bytes = TRY(amount(place, value, key, kMostBytes));
    if (bytes != std::floor(bytes)) return place.error(value, key, "must be a whole number");
    tensor.bytes = static_cast<uint64_t>(bytes);
  } else if (key == "forward_s") {
    tensor.forward_s = TRY(amount(place, value, key, kMostSeconds));
  } else if (key == "backward_s") {
    tensor.backward_s = TRY(amount(place, value, key, kMostSeconds));
  } else {
    return place.error(value, "", unknown_name(key, "a field", {std::begin(kKeys), std::end(kKeys)}).message);
  }
  return {};
}

Result<GradientTensor> read_tensor(const Place& place, const JsonValue& value) {
  if (value.kind != Kind::kObject) return place.wrong_type(value, "", "an object");
  GradientTensor tensor;
  for (size_t i = 0; i < value.keys.size(); ++i) TRY(set_field(place, value.keys[i], value.items[i], tensor));
  for (const char* key : {"bytes", "forward_s", "backward_s"}) {
    bool given = false;
    for (const std::string& name : value.keys) given = given || name == key;
    if (!given) return place.error(value, key, "is missing");
  }
  return tensor;
}

}  // namespace

Result<GradientWorkload> parse_workload(const std::string& json, const std::string& source) {
  const JsonValue root = TRY(parse_json(json, source));
  const Place place{source, ""};
  if (root.kind != Kind::kObject) return place.wrong_type(root, "", "an object with the field tensors");
  GradientWorkload workload;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const JsonValue& list = root.items[i];
    if (root.keys[i] != "tensors") return place.error(list, root.keys[i], "unknown field; known is tensors");
    if (list.kind != Kind::kArray) return place.wrong_type(list, "tensors", "a list");
    if (list.items.size() > kMostTensors) return place.error(list, "tensors", "has more than 4096");
    for (size_t t = 0; t < list.items.size(); ++t) {
      const Place at{source, "tensor " + std::to_string(t) + ": "};
      workload.tensors.push_back(TRY(read_tensor(at, list.items[t])));
    }
  }
  if (workload.tensors.empty()) return place.error(root, "tensors", "must be a list of at least one");
  return workload;
}

}  // namespace trestle
