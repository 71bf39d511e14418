// Runs a libFuzzer target without libFuzzer: first the corpus, then seeded mutations of it. One thread.
//
// Takes those arguments of libFuzzer that make sense here: -runs=N, -seed=S, -first=K (the number of the first
// mutation, which a failure prints), -max_len=BYTES, and files or folders of the corpus. Other flags are ignored. An
// input depends only on corpus, seed and number, so every failure can be repeated.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using trestle::Rng;
namespace fs = std::filesystem;

struct Options {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  uint64_t first = 0;
  size_t max_len = 4096;
  std::vector<fs::path> corpus;
};

// The present input, for the crash handler.
char g_running[512] = "nothing yet\n";

void tell_what_ran(int signal) {
  [[maybe_unused]] const ssize_t written = ::write(2, g_running, std::char_traits<char>::length(g_running));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool take(const std::string& argument, const std::string& flag, uint64_t& value) {
  if (argument.compare(0, flag.size(), flag) != 0) return false;
  value = std::strtoull(argument.c_str() + flag.size(), nullptr, 10);
  return true;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    uint64_t max_len = options.max_len;
    if (take(argument, "-runs=", options.runs) || take(argument, "-seed=", options.seed) ||
        take(argument, "-first=", options.first)) {
      continue;
    }
    if (take(argument, "-max_len=", max_len)) {
      options.max_len = std::max<uint64_t>(1, max_len);
    } else if (argument.empty() || argument[0] != '-') {
      options.corpus.emplace_back(argument);
    }
  }
  return options;
}

std::vector<fs::path> corpus_files(const std::vector<fs::path>& places) {
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place)) files.push_back(place);
    if (!fs::is_directory(place)) continue;
    for (const auto& entry : fs::directory_iterator(place)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

using Input = std::vector<uint8_t>;

Input read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Returns a character that parsers treat specially.
uint8_t telling_byte(Rng& rng) {
  static constexpr char kTelling[] = "0123456789-+.,;:=^xX{}[]\"\\ \n\t\0\xff\x7f\x80";
  return rng.below(2) == 0 ? static_cast<uint8_t>(kTelling[rng.below(sizeof kTelling)])
                           : static_cast<uint8_t>(rng.next());
}

void change(Input& input, const std::vector<Input>& corpus, Rng& rng) {
  const size_t at = rng.below(input.size() + 1);
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (rng.below(7)) {
    case 0:  // inserts a byte
      input.insert(place, telling_byte(rng));
      return;
    case 1:  // replaces a byte
      if (at < input.size()) *place = telling_byte(rng);
      return;
    case 2:  // flips a bit
      if (at < input.size()) *place ^= static_cast<uint8_t>(1u << rng.below(8));
      return;
    case 3: {  // removes a part
      const size_t count = std::min<size_t>(rng.below(9), input.size() - at);
      input.erase(place, place + static_cast<std::ptrdiff_t>(count));
      return;
    }
    case 4:  // cuts the end
      input.resize(at);
      return;
    case 5: {  // repeats a part
      const Input part(place, place + static_cast<std::ptrdiff_t>(std::min<size_t>(rng.below(33), input.size() - at)));
      input.insert(place, part.begin(), part.end());
      return;
    }
    default: {  // inserts a part of another input
      if (corpus.empty()) return;
      const Input& other = corpus[rng.below(corpus.size())];
      const size_t from = rng.below(other.size() + 1);
      const size_t count = rng.below(other.size() - from + 1);
      const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
      input.insert(place, begin, begin + static_cast<std::ptrdiff_t>(count));
    }
  }
}

Input mutation(const std::vector<Input>& corpus, const Options& options, uint64_t number) {
  Rng rng(options.seed * 0x9e3779b97f4a7c15u + number);
  Input input;
  if (!corpus.empty() && rng.below(16) != 0) {
    input = corpus[rng.below(corpus.size())];
  } else {
    input.resize(rng.below(65));
    for (uint8_t& byte : input) byte = telling_byte(rng);
  }
  for (uint64_t left = 1 + rng.below(8); left > 0; --left) change(input, corpus, rng);
  if (input.size() > options.max_len) input.resize(options.max_len);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
    const auto before = std::signal(signal, tell_what_ran);
    if (before != SIG_DFL) std::signal(signal, before);  // a sanitizer reports more
  }
  std::vector<Input> corpus;
  for (const fs::path& file : corpus_files(options.corpus)) {
    corpus.push_back(read_file(file));
    std::snprintf(g_running, sizeof g_running, "\nfailed on %s\n", file.c_str());
    LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
  }
  for (uint64_t run = options.first; run < options.first + options.runs; ++run) {
    const Input input = mutation(corpus, options, run);
    std::snprintf(g_running, sizeof g_running, "\nfailed; to repeat it: %s -seed=%llu -first=%llu -runs=1 CORPUS\n",
                  argv[0], static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(run));
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu files, %llu mutations\n", corpus.size(), static_cast<unsigned long long>(options.runs));
  return 0;
}
