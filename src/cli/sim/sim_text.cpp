#include "cli/sim/sim_text.h"

#include <map>

#include "base/text/json.h"
#include "base/text/value_text.h"
#include "cli/sim/lanes_text.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

std::string order_text(const std::vector<uint8_t>& dimensions) {
  std::string text;
  for (const uint8_t d : dimensions) text += (text.empty() ? "" : " ") + std::to_string(d + 1);
  return text;
}

std::string chunk_orders(const SimView& view) {
  struct Group {
    size_t count = 0;
    double bytes = 0;
  };
  std::map<std::string, Group> groups;
  for (const SimChunkView& chunk : view.chunks) {
    const bool both = !chunk.reduce_scatter.empty() && !chunk.all_gather.empty();
    Group& group = groups[order_text(chunk.reduce_scatter) + (both ? " | " : "") + order_text(chunk.all_gather)];
    ++group.count;
    group.bytes += chunk.bytes;
  }
  std::string text = "order of dimensions per chunk, reduce-scatter | all-gather:\n";
  for (const auto& [order, group] : groups) {
    text += line("  %5zu %-7s %5.1f %% of the data:  ", group.count, group.count == 1 ? "chunk," : "chunks,",
                 100 * group.bytes / static_cast<double>(view.bytes));
    text += order + "\n";
  }
  return text;
}

Json chunk_json(const SimChunkView& chunk) {
  const auto from_one = [](uint8_t d) { return d + 1; };
  return Json::object({{"bytes", rounded(chunk.bytes)},
                       {"rs", json_list(chunk.reduce_scatter, from_one)},
                       {"ag", json_list(chunk.all_gather, from_one)}});
}

std::string rails_text(const SimView& view) {
  std::string text;
  for (const SimLane& lane : view.lanes) {
    for (const SimRailView& rail : lane.rails) {
      const std::string name =
          "dimension " + std::to_string(lane.dimension + 1) + ", " + rail.interface + line(", %g Gb/s", rail.gbps);
      const double busy = view.time_ns > 0 ? 100 * rail.busy_ns / view.time_ns : 0;
      text += line("%-46s %12.3f %7.2f %7.2f %12.3f %10.3f %5llu\n", name.c_str(), rail.busy_ns / 1000, busy,
                   100 * rail.share, rail.bytes / (1 << 20), rail.again_bytes / (1 << 20),
                   static_cast<unsigned long long>(rail.losses));
    }
  }
  if (text.empty()) return text;
  return line("\n%-46s %12s %7s %7s %12s %10s %5s\n", "rails", "busy us", "busy %", "share %", "MiB sent", "MiB again",
              "lost") +
         text;
}

Json rail_json(const SimRailView& rail) {
  return Json::object({{"interface", rail.interface},
                       {"bytes", rounded(rail.bytes)},
                       {"share", rounded(rail.share)},
                       {"busy_ns", rounded(rail.busy_ns)},
                       {"again_bytes", rounded(rail.again_bytes)},
                       {"losses", rail.losses}});
}

Json lane_json(const SimLane& lane) {
  const auto pair = [](const SimPhaseView& phase) { return Json::array({phase.id.chunk, phase.id.stage}); };
  Json members = {
      {"busy_ns", rounded(lane.busy_ns)}, {"bytes", rounded(lane.bytes)}, {"order", json_list(lane.phases, pair)}};
  if (!lane.rails.empty()) members["rails"] = json_list(lane.rails, rail_json);
  return members;
}

const char* letters_of(PhaseKind kind) {
  return kind == PhaseKind::kReduceScatter ? "RS" : kind == PhaseKind::kAllGather ? "AG" : to_string(kind);
}

Json trace_event(const SimLane& lane, const SimPhaseView& phase, uint32_t row) {
  return Json::object({{"name", "chunk " + std::to_string(phase.id.chunk) + " " + letters_of(phase.kind)},
                       {"cat", letters_of(phase.kind)},
                       {"ph", "X"},
                       {"ts", rounded(phase.start_ns / 1000)},
                       {"dur", rounded((phase.end_ns - phase.start_ns) / 1000)},
                       {"pid", lane.dimension},
                       {"tid", row},
                       {"args", Json::object({{"chunk", phase.id.chunk}, {"stage", phase.id.stage}})}});
}

}  // namespace

std::string sim_text(const SimView& view) {
  std::string text = view.collective + " of " + bytes_text(static_cast<int64_t>(view.bytes)) + " per rank, " +
                     std::to_string(view.ranks) + " ranks (" + view.sizes + "), " + std::to_string(view.chunks.size()) +
                     " chunks\nschedule " + view.sched + (view.intra.empty() ? "" : ", " + view.intra) + "; model " +
                     view.model + "\n\n";
  text += line("time          %14.3f us\n", view.time_ns / 1000);
  text += line("utilisation   %14.2f %%\n", 100 * view.utilization);
  text += line("ideal time    %14.3f us  with all links always busy\n", view.ideal_time_ns / 1000);
  text += line("fluid bound   %14.3f us  no schedule of whole phases is faster\n\n", view.fluid_bound_ns / 1000);
  text += line("%-46s %12s %7s %7s %12s\n", "", "busy us", "busy %", "idle %", "MiB sent");
  for (const SimLane& lane : view.lanes) {
    const double busy = view.time_ns > 0 ? 100 * lane.busy_ns / view.time_ns : 0;
    text += line("%-46s %12.3f %7.2f %7.2f %12.3f\n", lane.name.c_str(), lane.busy_ns / 1000, busy, 100 - busy,
                 lane.bytes / (1 << 20));
  }
  text += rails_text(view);
  text += "\n" + chunk_orders(view) + "\nchunks on the links over time (>: reduce-scatter, <: all-gather):\n";
  text += lanes_text(view.lanes, view.time_ns, kPictureWidth);
  for (const std::string& note : view.notes) text += "note: " + note + "\n";
  return text;
}

std::string sim_json(const SimView& view) {
  return json_text(Json::object({{"time_ns", rounded(view.time_ns)},
                                 {"utilization", rounded(view.utilization)},
                                 {"ideal_time_ns", rounded(view.ideal_time_ns)},
                                 {"fluid_bound_ns", rounded(view.fluid_bound_ns)},
                                 {"sched", view.sched},
                                 {"chunks", json_list(view.chunks, chunk_json)},
                                 {"dimensions", json_list(view.lanes, lane_json)}})) +
         "\n";
}

std::string sim_trace(const SimView& view) {
  Json events = Json::array();
  for (const SimLane& lane : view.lanes) {
    events.push_back(Json::object({{"name", "process_name"},
                                   {"ph", "M"},
                                   {"pid", lane.dimension},
                                   {"args", Json::object({{"name", lane.name}})}}));
    const std::vector<uint32_t> rows = rows_of(lane);
    for (size_t i = 0; i < rows.size(); ++i) events.push_back(trace_event(lane, lane.phases[i], rows[i]));
  }
  return json_text(Json::object({{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}})) + "\n";
}

}  // namespace trestle
