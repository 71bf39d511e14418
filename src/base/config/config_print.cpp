// The configuration as text: docs/environment.md and `trestle env`.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/config/config_fields.h"
#include "base/config/config_nccl.h"
#include "base/config/config_table.h"

namespace trestle {
namespace {

constexpr const char* kIntroduction = R"(# Environment variables

<!-- Printed from src/base/config/config_table.h by `trestle env --markdown`; a test fails when this page is stale. -->

Read once, when the process first uses the library. An empty value counts as not set; a value that cannot be read is an
error of the call that makes the communicator; a `TRESTLE_` name that does not exist gets a warning with the nearest one
that does. Variables marked *agreed* must be the same on all ranks of a communicator, which is compared when it is made.

A value comes from the first of these that sets it: the config struct of the call that makes the communicator, the
environment, a configuration file, NCCL's variable (column *fallback*), the default. `trestle env` prints every value with
where it comes from, `trestle env --changed` those that are not the default, `trestle env rail` those that have to do with
rails; at INFO the log has a line for each that is not the default. Every variable that can differ between the
communicators of a process has a field in that struct; those marked *(process)* have none, because there is one log, one
set of helper threads and one configuration file per process.

Here and in all commands sizes are bytes, such as 4096, 64K, 64KiB or 1.5M, where K is 1024; a collective may be written
as `all_reduce` or as `allreduce`.

A configuration file has lines `NAME=value`; `#` at the beginning of a line or after a blank begins a comment. A name that
does not exist, a line that is none of these, a name that is set twice and a value that cannot be read are errors with
file and line. It is the file that `TRESTLE_CONF_FILE` names, else `.trestle.conf` in the home directory; what it leaves
open may be in `/etc/trestle.conf`.

NCCL's variables are read in its own grammar. `NCCL_ALGO`: `Ring` is `ring`, `Tree` is `dbtree` (for all-reduce, and for
broadcast and reduce where they are named); a list of several leaves the choice between all algorithms; the algorithms of
switches and of NVLink are not here, which is a warning. `NCCL_DEBUG_SUBSYS`: subsystems that only NCCL has are left out.
`NCCL_P2P_DISABLE`: 1 is 0 here, and 0 is 1.

Launchers: rank and number of ranks are taken from torchrun (`RANK`, `WORLD_SIZE`, `LOCAL_RANK`), else Open MPI
(`OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK`), else Hydra, that is MPICH and Intel MPI
(`PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID`), else Slurm's srun (`SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_LOCALID`), else any
launcher with `PMI_RANK` and `PMI_SIZE`; without any of them a process is rank 0 of 1. The address of rank 0 is taken from
`MASTER_ADDR` and `MASTER_PORT` (default 29500), else exchanged over the launcher's PMIx (`PMIX_NAMESPACE`, `PMIX_RANK`) or
PMI (`PMI_FD`, `PMI_PORT`), else it is 127.0.0.1 if all ranks are local, else the first node of `SLURM_STEP_NODELIST`.
[launching.md](launching.md) has a command for each.

A name that is a link has a section below the table.

| variable | values | default | agreed | config field | fallback | meaning |
|---|---|---|---|---|---|---|
)";

// A | would end the cell of the table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool has_section(const Variable& row) {
  return row.more[0] != '\0';
}

// The anchor of a heading is the heading in small letters.
std::string name_cell(const Variable& row) {
  if (!has_section(row)) return row.name;
  std::string anchor = row.name;
  for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::string("[").append(row.name).append("](#").append(anchor).append(")");
}

std::string table_line(const Variable& row) {
  const bool empty = row.fallback[0] == '\0';
  const std::string_view field = field_of(row.name);
  std::string line = "| " + name_cell(row) + " | " + cell(allowed_values(row)) + " | ";
  line.append(empty ? "" : "`").append(row.fallback).append(empty ? "" : "`").append(" | ");
  line.append(row.scope == Scope::kAgreed ? "agreed" : "").append(" | ");
  line.append(field.empty() ? "(process)" : field).append(" | ").append(nccl_name_of(row.name)).append(" | ");
  return line.append(cell(row.help)).append(" |\n");
}

std::string section(const Variable& row) {
  const bool list = row.more[0] == '*';  // Markdown has an empty line before a list
  return std::string("\n## ").append(row.name).append("\n\n").append(row.help).append(list ? "\n\n" : " ") + row.more +
         "\n";
}

}  // namespace

std::string source_text(const Config::Value& value) {
  switch (value.source) {
    case ConfigSource::kNccl:
    case ConfigSource::kFile:
      return value.place;
    case ConfigSource::kEnvironment:
      return "environment";
    case ConfigSource::kStruct:
      return "config struct";
    case ConfigSource::kDefault:
      break;
  }
  return "default";
}

std::string config_markdown() {
  std::string page = kIntroduction;
  for (const Variable& row : kVariables) page += table_line(row);
  for (const Variable& row : kVariables) page += has_section(row) ? section(row) : "";
  return page;
}

std::vector<ShownVariable> shown_variables(const Config& config, const std::string& word, bool changed) {
  const auto holds = [&word](const std::string& text) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end() || word.empty();
  };
  std::vector<ShownVariable> shown;
  for (size_t i = 0; i < config.values.size(); ++i) {
    const Variable& row = kVariables[i];
    const ShownVariable each{config.values[i], canonical_text(row, row.fallback), row.help, allowed_values(row)};
    if (changed && each.value.text == each.fallback) continue;
    if (holds(row.name) || holds(each.meaning) || holds(each.value.text)) shown.push_back(each);
  }
  return shown;
}

std::string config_text(const std::vector<ShownVariable>& variables) {
  size_t width = 0;
  for (const ShownVariable& each : variables) width = std::max(width, std::string_view(each.value.name).size());
  std::string text;
  for (const auto& [value, fallback, meaning, allowed] : variables) {
    std::string line(value.name);
    line.resize(width, ' ');
    line.append(" = ").append(value.text.empty() ? "(empty)" : value.text);
    line.append("  [").append(source_text(value)).append("]").append(value.agreed ? " [agreed]" : "");
    text.append(line).append("\n    ").append(meaning).append(" (").append(allowed).append(")\n");
  }
  return text;
}

}  // namespace trestle
