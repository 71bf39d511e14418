// Kept calibrations: the jobs that they are valid for, writing and reading the file, and errors about bad files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "topology/calibration_file.h"

namespace trestle {
namespace calibration_file_test {
namespace {

Topology asked() {
  Topology topology;
  for (const int32_t size : {4, 2}) topology.dimensions.emplace_back().size = size;
  topology.dimensions[0].transport = TransportKind::kShm;
  topology.dimensions[1].transport = TransportKind::kTcp;
  topology.dimensions[1].interface = "eth1";
  return topology;
}

Topology measured() {
  Topology topology = asked();
  topology.dimensions[0].bandwidth_mbps = 71'234;
  topology.dimensions[0].latency_ns = 0;
  topology.dimensions[1].bandwidth_mbps = 1;
  topology.dimensions[1].latency_ns = 51'000;
  for (Dimension& dimension : topology.dimensions) dimension.shared_resource = "calibrated";
  topology.dimensions[0].shared_ps_per_byte = 100;
  topology.dimensions[1].shared_ps_per_byte = 7'000'000;
  return topology;
}

std::vector<RankPlace> places() {
  std::vector<RankPlace> places;
  for (int r = 0; r < 8; ++r) {
    const std::string host = r < 4 ? "a" : "b";
    places.push_back({host, host + "/boot/1", static_cast<uint64_t>(r)});
  }
  return places;
}

CalibrationOrigin origin() {
  CalibrationOrigin origin = calibration_origin(places(), 10203);
  origin.made_s = 1'795'868'444;
  return origin;
}

class CalibrationFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TRESTLE_TOPOLOGY_FILES) GTEST_SKIP() << "topology files are not built in";
    ASSERT_NE(mkdtemp(folder_), nullptr);
    path_ = calibration_path(std::string(folder_) + "/deep/er", kKey);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  // The lines that people read.
  std::string header() const {
    const std::string all = text();
    return all.substr(all.find("made "), all.find("host-ids ") - all.find("made "));
  }
  // The error for a file with this content.
  std::string refusal(const std::string& content) const {
    std::ofstream(path_) << content;
    const auto result = read_calibration(path_, kKey, asked(), origin());
    return result.ok() ? "taken" : result.error().message;
  }

  static constexpr uint64_t kKey = 0x0123456789abcdef;
  std::string path_;

 private:
  char folder_[64] = "/tmp/trestle-test-XXXXXX";
};

TEST(CalibrationKey, IsOfHostsInOrderAndOfDimensions) {
  const uint64_t key = calibration_key(asked(), places());
  EXPECT_EQ(key, calibration_key(asked(), places()));
  EXPECT_EQ(key, calibration_key(measured(), places())) << "what is measured is no part of for whom";
  std::vector<RankPlace> other = places();
  std::swap(other[0], other[7]);
  EXPECT_NE(key, calibration_key(asked(), other));
  other = places();
  for (RankPlace& place : other) place.process_id += 100;
  EXPECT_EQ(key, calibration_key(asked(), other)) << "another run of the job";
  for (RankPlace& place : other) place.host_id += "2";
  EXPECT_EQ(key, calibration_key(asked(), other)) << "restarted, so that a new calibration replaces the old one";
  other[3].host_id = "c/boot/1";
  EXPECT_NE(key, calibration_key(asked(), other)) << "one more host, of an equal name";
  const auto differs = [&](auto change) {
    Topology topology = asked();
    change(topology.dimensions);
    EXPECT_NE(key, calibration_key(topology, places()));
  };
  differs([](auto& dimensions) { std::swap(dimensions[0], dimensions[1]); });
  differs([](auto& dimensions) { dimensions[0].transport = TransportKind::kTcp; });
  differs([](auto& dimensions) { dimensions[1].interface = "eth2"; });
  differs([](auto& dimensions) { dimensions[0].rails = {{"eth2", 0}}; });
  differs([](auto& dimensions) { dimensions[1].kind = DimensionKind::kRing; });
}

TEST(CalibrationFill, ConfiguredNumbersWin) {
  Topology topology = asked();
  EXPECT_TRUE(has_nominal(topology));
  fill_nominal(topology, measured());
  EXPECT_EQ(topology.dimensions, measured().dimensions);
  EXPECT_FALSE(has_nominal(topology));

  topology = asked();
  topology.dimensions[1].bandwidth_mbps = 40'000;
  fill_nominal(topology, measured());
  EXPECT_EQ(topology.dimensions[0].bandwidth_mbps, 71'234u);
  EXPECT_EQ(topology.dimensions[1].bandwidth_mbps, 40'000u);
  EXPECT_EQ(topology.dimensions[1].latency_ns, 51'000u);
  EXPECT_EQ(topology.dimensions[0].shared_resource, "") << "its costs belong to measured bandwidths";

  topology = asked();
  topology.dimensions[0].shared_resource = "nic";
  topology.dimensions[0].shared_ps_per_byte = 5;
  fill_nominal(topology, measured());
  EXPECT_EQ(topology.dimensions[0].shared_resource, "nic");
  EXPECT_EQ(topology.dimensions[1].shared_resource, "");
}

TEST_F(CalibrationFile, ThereAndBack) {
  const auto absent = read_calibration(path_, kKey, asked(), origin());
  ASSERT_TRUE(absent.ok());
  EXPECT_FALSE(absent.value().has_value());
  ASSERT_TRUE(write_calibration(path_, kKey, origin(), measured()).ok());
  ASSERT_TRUE(write_calibration(path_, kKey, origin(), measured()).ok()) << "over an old one";
  const auto kept = read_calibration(path_, kKey, asked(), origin());
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  ASSERT_TRUE(kept.value().has_value());
  EXPECT_EQ(kept.value()->measured.dimensions, measured().dimensions);
  EXPECT_EQ(kept.value()->unfit, "");
  EXPECT_EQ(header(), "made 2026-11-28T12:20:44Z\nhosts a b\n");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
    EXPECT_EQ(entry.path().string(), path_);
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(CalibrationFile, BadOnesAreSaidWithFileAndLine) {
  ASSERT_TRUE(write_calibration(path_, kKey, origin(), measured()).ok());
  const std::string good = text();
  const size_t end = good.find('\n') + 1;
  const std::string first = good.substr(0, good.find('{'));  // all lines of the origin
  const auto expect = [&](const std::string& content, const std::string& fact) {
    const std::string said = refusal(content);
    EXPECT_NE(said.find(path_ + ":"), std::string::npos) << said;
    EXPECT_NE(said.find(fact), std::string::npos) << said << "\nfor " << content;
  };
  expect("", ":1: is not a calibration of these");
  expect("nonsense", ":1: is not a calibration of these");
  expect(good.substr(end), ":1: is not a calibration of these");
  std::string other = good;
  other[end - 2] = '0';
  expect(other, ":1: is not a calibration of these");
  expect(first, "too early");
  expect(good.substr(0, end), ":2: the date is missing");
  expect(good.substr(0, end) + "made yesterday\n", ":2: the date is missing");
  expect(good.substr(0, end) + "made 2026-02-31T00:00:00Z\n", ":2: the date is missing");
  expect(good.substr(0, good.size() - 8), ":9: ps_per_byte: the text ends too early");
  expect(first + R"({"dimensions":[{"size":4,"bandwidth_gbps":NaN,"latency_ns":1}]})", ":7: ");
  expect(first + R"({"dimensions":[{"size":4,"bandwidth_gbps":0,"latency_ns":1}]})", "bandwidth_gbps: must be above 0");
  expect(first + R"({"dimensions":[{"size":4,"bandwidth_gbps":-1,"latency_ns":1}]})", "bandwidth_gbps");
  expect(first + R"({"dimensions":[{"size":4,"bandwidth_gbps":1,"latency_ns":1}]})", "1 dimensions");
  expect(first + R"({"dimensions":[{"size":2,"bandwidth_gbps":1,"latency_ns":1},
    {"size":4,"bandwidth_gbps":1,"latency_ns":1}]})",
         "dimension 1: size 2");
  expect(first + R"({"dimensions":[{"size":4,"latency_ns":1},{"size":2,"bandwidth_gbps":1,"latency_ns":1}]})",
         "dimension 1: bandwidth_gbps: is missing");
  expect(first + R"({"dimensions":[{"size":4,"bandwidth_gbps":1,"latency_ns":1},{"size":2,"bandwidth_gbps":1}]})",
         "dimension 2: latency_ns: is missing");
  for (size_t cut = 0; cut + 3 < good.size(); ++cut) EXPECT_NE(refusal(good.substr(0, cut)), "taken") << cut;
}

// As another container leaves it, whose process of this number writes at this time or was killed while it wrote.
TEST_F(CalibrationFile, AnotherWriterOfThisProcessNumberDoesNotMatter) {
  std::filesystem::create_directories(path_ + "." + std::to_string(getpid()) + ".new");
  const Status written = write_calibration(path_, kKey, origin(), measured());
  EXPECT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0644));
}

TEST_F(CalibrationFile, BelowAFileThereIsNone) {
  const auto absent = read_calibration("/dev/null/trestle/file", kKey, asked(), origin());
  ASSERT_TRUE(absent.ok()) << absent.error().message;
  EXPECT_FALSE(absent.value().has_value());
}

TEST_F(CalibrationFile, WhereNothingCanBeWritten) {
  EXPECT_FALSE(write_calibration("/dev/null/folder/file", kKey, origin(), measured()).ok());
}

// Whoever measured them, figures count for the same hosts, kernel and version, and for thirty days.
TEST_F(CalibrationFile, UnfitOnesGiveTheirReasonAndNoFigures) {
  ASSERT_TRUE(write_calibration(path_, kKey, origin(), measured()).ok());
  const auto reason = [&](auto change) {
    CalibrationOrigin now = origin();
    change(now);
    const auto kept = read_calibration(path_, kKey, asked(), now);
    EXPECT_TRUE(kept.ok() && kept.value().has_value());
    EXPECT_TRUE(kept.value()->unfit.empty() || kept.value()->measured.dimensions.empty());
    return kept.value()->unfit;
  };
  constexpr int64_t kDay_s = 86'400;
  EXPECT_EQ(reason([](auto& now) { now.made_s += kCalibrationDays * kDay_s - 1; }), "");
  EXPECT_EQ(reason([](auto& now) { now.made_s += 30 * kDay_s; }), "it is 30 days old, and counts for 30");
  EXPECT_EQ(reason([](auto& now) { now.made_s -= kDay_s; }), "");
  EXPECT_EQ(reason([](auto& now) { now.made_s -= kDay_s + 1; }),
            "it is dated 2026-11-28T12:20:44Z, which is still to come");
  EXPECT_EQ(reason([](auto& now) { now.version = "1.2.4"; }), "it is of version 1.2.3, and this one is 1.2.4");
  EXPECT_EQ(reason([](auto& now) { now.kernel = "7.0"; }),
            "it was made under kernel " + origin().kernel + ", and this one is 7.0");
  std::vector<RankPlace> restarted = places();
  for (RankPlace& place : restarted) place.host_id += "2";
  EXPECT_EQ(reason([&](auto& now) { now.host_ids = calibration_origin(restarted, 1).host_ids; }),
            "its hosts have been restarted since, or others have their names");
}

TEST_F(CalibrationFile, OriginsAreReadWithoutControlCharactersAndCut) {
  CalibrationOrigin strange = origin();
  strange.hosts = "a \x1b[2Jb";
  strange.kernel = std::string(5000, 'k');
  strange.version = "1\r\xc2\x9b";
  ASSERT_TRUE(write_calibration(path_, kKey, strange, measured()).ok());
  const auto any = read_any_calibration(path_);
  ASSERT_TRUE(any.ok()) << any.error().message;
  EXPECT_EQ(any.value().origin.hosts, "a ?[2Jb");
  EXPECT_EQ(any.value().origin.kernel, std::string(1024, 'k'));
  EXPECT_EQ(any.value().origin.version, "1???");
}

TEST_F(CalibrationFile, ListedAndForgotten) {
  const std::string folder = std::filesystem::path(path_).parent_path();
  EXPECT_TRUE(calibrations_in(folder).value().empty()) << "the folder is not there yet";
  ASSERT_TRUE(write_calibration(path_, kKey, origin(), measured()).ok());
  std::ofstream(folder + "/other.txt") << "of the user";
  EXPECT_EQ(calibrations_in(folder).value(), std::vector<std::string>{path_});
  const auto any = read_any_calibration(path_);
  ASSERT_TRUE(any.ok()) << any.error().message;
  EXPECT_EQ(any.value().measured.dimensions, measured().dimensions);
  EXPECT_EQ(any.value().origin.made_s, origin().made_s);
  EXPECT_TRUE(forget_calibration(path_, origin().made_s + 1).ok());
  EXPECT_TRUE(std::filesystem::exists(path_)) << "another one, made since";
  EXPECT_TRUE(forget_calibration(path_, origin().made_s).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(forget_calibration(path_, 0).ok()) << "gone already";
}

}  // namespace
}  // namespace calibration_file_test
}  // namespace trestle
