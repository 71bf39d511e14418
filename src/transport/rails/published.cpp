#include "transport/rails/published.h"

#include <algorithm>
#include <charconv>

#include "base/text/value_text.h"
#include "transport/rails/rails_text.h"

namespace trestle {
namespace {

constexpr int kMostPlace = 1000;
constexpr size_t kMostQuoted = 80;

// Bytes of a stranger: nothing but printable ones, and not many.
std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, kMostQuoted)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > kMostQuoted ? "...'" : "'");
}

Error bad(std::string_view item, const std::string& why) {
  return Error{Code::kRemoteError, quoted(item) + " is not a rail: " + why};
}

// A number without sign and leading zeros, so that every list has one text.
bool read_number(std::string_view text, int least, int most, int& value) {
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
}

// Cuts `text` at `mark` and returns what is behind it.
std::string_view cut(std::string_view& text, char mark, bool& found) {
  const size_t at = text.find(mark);
  found = at != std::string_view::npos;
  if (!found) return {};
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

Result<PublishedRail> parse_rail(std::string_view item) {
  bool has_fabric = false;
  bool has_place = false;
  bool has_rate = false;
  std::string_view address = item;
  std::string_view prefix = cut(address, '/', has_fabric);
  const std::string_view rate = cut(prefix, '@', has_rate);
  const std::string_view place = cut(prefix, '#', has_place);
  auto at = parse_address(address);
  if (!at.ok()) return bad(item, "its address is none");
  if (is_link_local_v6(at.value())) return bad(item, "its address means nothing on another host");
  if (format_address(at.value()) != address) return bad(item, "its address is not in its usual form");
  PublishedRail rail{at.value(), {}, 0};
  if (!has_fabric) return rail;
  int bits = 0;
  if (!read_number(prefix, 0, address_bits(rail.address.family()), bits))
    return bad(item, quoted(prefix) + " is not the length of a network's prefix");
  rail.fabric = fabric_of(rail.address, bits);
  if (has_place && !read_number(place, 2, kMostPlace, rail.fabric.place))
    return bad(item, quoted(place) + " is not a place from 2 to " + std::to_string(kMostPlace));
  if (!has_rate) return rail;
  const auto read = parse_rate_bps(rate, item);
  if (!read.ok()) return bad(item, quoted(rate) + " is not a rate");
  rail.rate_bps = read.value();
  return rail;
}

Status check_new(const std::vector<PublishedRail>& rails, const PublishedRail& rail, std::string_view item) {
  for (const PublishedRail& other : rails) {
    if (other.address == rail.address) return bad(item, "another rail has the same address");
    if (other.fabric == rail.fabric) return bad(item, "another rail is on the same fabric, " + rail.fabric.text());
  }
  return {};
}

}  // namespace

Result<std::string> publish(const std::vector<PublishedRail>& rails) {
  std::string text;
  for (const PublishedRail& rail : rails) {
    text += (text.empty() ? "" : ",") + format_address(rail.address);
    if (!rail.fabric.is_known()) continue;
    text += "/" + std::to_string(rail.fabric.prefix);
    if (rail.fabric.place > 1) text += "#" + std::to_string(rail.fabric.place);
    if (rail.rate_bps != 0) text += "@" + rate_text(rail.rate_bps);
  }
  if (rails.size() <= kMostRails && text.size() <= kMostPublishedBytes) return text;
  return Error{Code::kInvalidArgument,
               std::to_string(rails.size()) + " rails need " + std::to_string(text.size()) +
                   " bytes to tell other ranks of; there can be at most " + std::to_string(kMostRails) + " rails and " +
                   std::to_string(kMostPublishedBytes) + " bytes: please name fewer interfaces in TRESTLE_RAILS"};
}

Result<std::vector<PublishedRail>> parse_published(std::string_view text) {
  if (text.empty()) return bad(text, "it is empty");
  if (text.size() > kMostPublishedBytes)
    return bad(text, "it is longer than " + std::to_string(kMostPublishedBytes) + " bytes");
  const std::vector<std::string> items = split(text, ',');
  if (items.size() > kMostRails) return bad(text, "it has more than " + std::to_string(kMostRails) + " rails");
  std::vector<PublishedRail> rails;
  for (const std::string& item : items) {
    PublishedRail rail = TRY(parse_rail(item));
    if (!rail.fabric.is_known() && items.size() > 1)
      return bad(item, "its fabric is missing, and it is not the only one");
    TRY(check_new(rails, rail, item));
    rails.push_back(rail);
  }
  return rails;
}

}  // namespace trestle
