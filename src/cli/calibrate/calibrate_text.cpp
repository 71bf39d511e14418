#include "cli/calibrate/calibrate_text.h"

#include <cstdarg>
#include <cstdio>

#include "base/text/value_text.h"

namespace trestle {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string speed(double mbps, uint64_t latency_ns) {
  return format("%.2f Gb/s %.1f us", mbps / 1000, static_cast<double>(latency_ns) / 1000);
}

std::string rate(uint64_t bytes, int64_t time_ns) {
  return format("%.2f Gb/s", static_cast<double>(bytes) * 8 / static_cast<double>(time_ns));
}

std::string table(const CalibrationReport& report) {
  std::string text = format("%-9s  %4s  %-9s  %-22s  %-10s  %-12s  %-12s  %s\n", "dimension", "size", "transport",
                            "nominal", "step", "alone", "together", "fitted");
  for (size_t d = 0; d < report.fitted.dimensions.size(); ++d) {
    const Dimension& nominal = report.nominal.dimensions[d];
    const Dimension& fitted = report.fitted.dimensions[d];
    const DimensionCalibration& measured = report.measured.dimensions[d];
    const std::string shared =
        fitted.shared_resource.empty()
            ? ""
            : format(", shared %llu ps/B", static_cast<unsigned long long>(fitted.shared_ps_per_byte));
    text += format(
        "%-9zu  %4d  %-9s  %-22s  %-10s  %-12s  %-12s  %s%s\n", d + 1, fitted.size, to_string(fitted.transport),
        speed(static_cast<double>(nominal.bandwidth_mbps), nominal.latency_ns).c_str(),
        format("%.1f us", static_cast<double>(measured.step_ns) / 1000).c_str(),
        rate(measured.bytes, measured.alone_ns).c_str(), rate(measured.bytes, report.measured.together_ns).c_str(),
        speed(static_cast<double>(fitted.bandwidth_mbps), fitted.latency_ns).c_str(), shared.c_str());
  }
  return text;
}

std::string comparison(const char* what, uint64_t predicted_ns, int64_t measured_ns) {
  const double predicted = static_cast<double>(predicted_ns);
  const double measured = static_cast<double>(measured_ns);
  return format("  %-20s predicted %9.1f us, measured %9.1f us, measured / predicted %.2f\n", what, predicted / 1000,
                measured / 1000, measured / (predicted > 0 ? predicted : 1));
}

}  // namespace

std::string to_text(const CalibrationReport& report) {
  std::string text = table(report);
  if (report.fitted.dimensions.size() > 1) {
    const int64_t together_ns = report.measured.together_ns;
    text += "all dimensions together:\n";
    text += comparison("before", predicted_together_ns(report.nominal, report.measured), together_ns);
    text += comparison("calibrated", predicted_together_ns(report.fitted, report.measured), together_ns);
  }
  text += "all-reduce of " + bytes_text(static_cast<int64_t>(report.after.bytes)) + ":\n";
  text += comparison("before", static_cast<uint64_t>(report.before.predicted_ns), report.before.measured_ns);
  text += comparison("calibrated", static_cast<uint64_t>(report.after.predicted_ns), report.after.measured_ns);
  return text;
}

}  // namespace trestle
