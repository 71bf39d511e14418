#include "perf/driver/flags.h"

#include <algorithm>

namespace trestle::perf {
namespace {

constexpr int kFirstLong = 1000;  // getopt's value of the first flag without a letter

}  // namespace

std::string program_name(int argc, char* const* argv, const char* if_unknown) {
  const std::string path = argc > 0 ? argv[0] : if_unknown;
  return path.substr(path.rfind('/') + 1);
}

std::string set_either(bool& member, const char* yes, const char* no, const std::string& text) {
  if (text != yes && text != no) {
    const std::string both = *yes == '1' ? "0 or 1" : std::string(yes) + " or " + no;
    return "takes " + both + ", not '" + text + "'";
  }
  member = text == yes;
  return "";
}

std::string read_words(int argc, char* const* argv, const std::vector<FlagName>& flags, std::vector<GivenFlag>& given) {
  std::string letters = ":";  // distinguishes a missing value from an unknown flag
  std::vector<option> names;
  for (const FlagName& flag : flags) {
    if (flag.letter != 0) letters.append(1, flag.letter).append(flag.value != nullptr ? ":" : "");
    const int value = flag.letter != 0 ? flag.letter : kFirstLong + static_cast<int>(names.size());
    names.push_back({flag.name, flag.value != nullptr ? required_argument : no_argument, nullptr, value});
  }
  names.push_back({nullptr, 0, nullptr, 0});
  optind = 0;  // starts again, also in a process that has parsed before
  opterr = 0;
  for (;;) {
    const int index = optind < 1 ? 1 : optind;
    const int flag = getopt_long(argc, argv, letters.c_str(), names.data(), nullptr);
    if (flag == -1) break;
    const std::string word = index < argc ? argv[index] : "";
    if (flag == ':') return word + " needs a value";
    if (flag == '?') {
      const bool letter = optopt > 0 && optopt < 256;
      return "there is no flag " + (letter ? std::string("-") + static_cast<char>(optopt) : "'" + word + "'");
    }
    const auto found = std::ranges::find(names, flag, &option::val);
    given.push_back({static_cast<size_t>(found - names.begin()), optarg != nullptr ? optarg : ""});
  }
  return optind < argc ? "unexpected argument '" + std::string(argv[optind]) + "'" : "";
}

std::string usage_line(const FlagName& flag, const std::string& help) {
  constexpr size_t kWidth = 30;
  std::string words = flag.letter != 0 ? std::string("-") + flag.letter + ", " : "";
  words.append("--").append(flag.name);
  if (flag.value != nullptr && *flag.value != 0) words.append(" ").append(flag.value);
  return "  " + words + std::string(words.size() < kWidth ? kWidth - words.size() : 1, ' ') + help + "\n";
}

}  // namespace trestle::perf
