#include "perf/driver/flags.h"

namespace trestle::perf {

std::string program_name(int argc, char* const* argv, const char* if_unknown) {
  const std::string path = argc > 0 ? argv[0] : if_unknown;
  return path.substr(path.rfind('/') + 1);
}

std::string read_flags(int argc, char* const* argv, const FlagReader& reader) {
  optind = 0;  // starts again, also in a process that has parsed before
  opterr = 0;
  for (;;) {
    const int index = optind < 1 ? 1 : optind;
    const int flag = getopt_long(argc, argv, reader.letters, reader.names, nullptr);
    if (flag == -1) break;
    const std::string word = index < argc ? argv[index] : "";
    if (flag == ':') return word + " needs a value";
    if (flag == '?') return "there is no flag " + reader.unknown(optopt > 0 && optopt < 256 ? optopt : 0, word);
    std::string wrong = reader.apply(flag, optarg != nullptr ? optarg : "");
    if (!wrong.empty()) return wrong;
  }
  return optind < argc ? "unexpected argument '" + std::string(argv[optind]) + "'" : "";
}

}  // namespace trestle::perf
