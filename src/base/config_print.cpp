// The configuration as text: docs/environment.md and `trestle env`.
#include <algorithm>

#include "base/config_table.h"

namespace trestle {
namespace {

// A | would end the cell of the table.
std::string cell(const char* text) {
  std::string escaped;
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == '|') escaped += '\\';
    escaped += *c;
  }
  return escaped;
}

}  // namespace

std::string config_markdown() {
  std::string page =
      "# Environment variables\n\n"
      "<!-- Printed from src/base/config_table.h by `trestle env --markdown`; a test fails when this page is stale. "
      "-->\n\n"
      "Read once, when the process first uses the library. An empty value counts as not set; a value that cannot be "
      "read is an error of "
      "the call that makes the communicator; a `TRESTLE_` name that does not exist gets a warning with the nearest one "
      "that does. "
      "Variables marked *agreed* must be the same on all ranks of a communicator, which is compared when it is "
      "made.\n\n"
      "| variable | values | default | agreed | meaning |\n|---|---|---|---|---|\n";
  for (const Variable& row : kVariables) {
    const bool empty = row.fallback[0] == '\0';
    page.append("| ").append(row.name).append(" | ").append(cell(allowed_values(row).c_str())).append(" | ");
    page.append(empty ? "" : "`").append(row.fallback).append(empty ? "" : "`").append(" | ");
    page.append(row.scope == Scope::kAgreed ? "agreed" : "").append(" | ").append(cell(row.help)).append(" |\n");
  }
  page.append(
      "\nLaunchers: rank and number of ranks are taken from torchrun (`RANK`, `WORLD_SIZE`, `LOCAL_RANK`), else Open "
      "MPI "
      "(`OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK`), else Slurm's srun "
      "(`SLURM_PROCID`, `SLURM_NTASKS`, "
      "`SLURM_LOCALID`); the address of rank 0 from `MASTER_ADDR` and `MASTER_PORT`, else 127.0.0.1 if all ranks are "
      "local, else the first "
      "node of `SLURM_STEP_NODELIST`.\n");
  return page;
}

std::string config_text(const Config& config) {
  size_t width = 0;
  for (const Config::Value& value : config.values) width = std::max(width, std::string_view(value.name).size());
  std::string text;
  for (size_t i = 0; i < config.values.size(); ++i) {
    const Config::Value& value = config.values[i];
    std::string line(value.name);
    line.resize(width, ' ');
    line.append(" = ").append(value.text.empty() ? "(empty)" : value.text);
    line.append(value.from_environment ? "  [environment]" : "  [default]").append(value.agreed ? " [agreed]" : "");
    text.append(line).append("\n    ").append(kVariables[i].help).append(" ");
    text.append("(").append(allowed_values(kVariables[i])).append(")\n");
  }
  return text;
}

}  // namespace trestle
