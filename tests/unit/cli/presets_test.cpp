// `trestle train --preset`: the papers' tables and figures hold the known numbers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/train/presets/presets.h"
#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

PresetReport report_of(const char* name) {
  Result<PresetReport> report = find_preset(name).value()->run();
  EXPECT_TRUE(report.ok()) << report.error().message;
  return std::move(report).value();
}

const PresetRow& row_of(const PresetTable& table, const std::string& label) {
  static const PresetRow none;
  for (const PresetRow& row : table.rows) {
    if (row.label == label) return row;
  }
  ADD_FAILURE() << "no row " << label << " in " << table.title;
  return none;
}

double ours(const PresetTable& table, const std::string& label, size_t column) {
  return row_of(table, label).cells.at(column).ours.number.value();
}

// Every number that is known is met within `within`. Counts them.
size_t expect_known(const PresetTable& table, double within) {
  size_t known = 0;
  for (const PresetRow& row : table.rows) {
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const PresetCell& cell = row.cells[c];
      if (!cell.reference.number) continue;
      ++known;
      EXPECT_NEAR(*cell.ours.number, *cell.reference.number, within * std::fabs(*cell.reference.number))
          << table.title << ": " << row.label << ", " << table.columns[c];
    }
  }
  return known;
}

TEST(Presets, AreCompleteAsTextAndAsJson) {
  EXPECT_EQ(presets().size(), 10u);
  for (const Preset& preset : presets()) {
    TrainOptions options;
    options.preset = preset.name;
    const std::string text = train(options).value();
    EXPECT_NE(text.find(preset.source), std::string::npos);
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    options.json = true;
    const JsonValue json = read_json(train(options).value());
    EXPECT_EQ(keys_of(json), (std::set<std::string>{"preset", "title", "source", "conditions", "tables", "findings"}));
    EXPECT_FALSE(member(json, "findings").items.empty()) << preset.name << " says nothing of the paper";
    for (const JsonValue& table : member(json, "tables").items) {
      for (const JsonValue& row : member(table, "rows").items) {
        EXPECT_EQ(member(row, "cells").items.size(), member(table, "columns").items.size());
      }
    }
  }
}

TEST(Presets, OfMgwfbpCrossNear16Workers) {
  const PresetReport ring = report_of("mgwfbp_fig10");
  EXPECT_EQ(expect_known(ring.tables[0], 1e-4), 8u);
  const PresetTable& seen = ring.tables[1];
  const double crossing = seen.rows[0].cells[0].ours.number.value();
  EXPECT_GE(crossing, 12);
  EXPECT_LE(crossing, 20);
  EXPECT_NEAR(seen.rows[1].cells[0].ours.number.value(), 3.4, 0.05);
  EXPECT_NEAR(seen.rows[2].cells[0].ours.number.value(), 1.28, 0.01);
  EXPECT_NEAR(seen.rows[3].cells[0].ours.number.value(), 1.15, 0.01);
  // Algorithm 1 is not above WFBP and SyncEASGD up to 64 workers, and the optimum is nowhere above it.
  for (const PresetRow& row : ring.tables[0].rows) {
    const auto ms = [&](size_t column) { return row.cells[column].ours.number.value(); };
    if (row.label.size() <= std::string("64 workers").size()) {
      EXPECT_LE(ms(2), std::min(ms(0), ms(1)) * (1 + 1e-12)) << row.label;
    }
    EXPECT_LE(ms(4), ms(2) * (1 + 1e-12)) << row.label;
  }
}

TEST(Presets, OfMgwfbpKeepSingleTensorsAheadWithTheDoubleTree) {
  const PresetReport tree = report_of("mgwfbp_fig11");
  ASSERT_EQ(tree.tables[0].rows.size(), 10u);
  for (const PresetRow& row : tree.tables[0].rows) {
    EXPECT_LT(row.cells[0].ours.number.value(), row.cells[1].ours.number.value()) << row.label;
  }
  EXPECT_NEAR(tree.tables[1].rows[0].cells[0].ours.number.value(), 1.11, 0.01);
  EXPECT_GT(tree.tables[1].rows[1].cells[0].ours.number.value(), 1);
}

TEST(Presets, OfDearHaveTheSpeedUpsOfTheLinksThatTheyImply) {
  const PresetReport report = report_of("dear_table2");
  const PresetTable& table = report.tables[0];
  for (const auto& [label, printed] : {std::pair("ResNet-50", 61.6), std::pair("Inception-v4", 59.8),
                                       std::pair("BERT-Base", 25.5), std::pair("BERT-Large", 12.1)}) {
    EXPECT_NEAR(ours(table, label, 0), printed, 0.05) << label;
  }
  EXPECT_NEAR(ours(table, "BERT-Large", 1), 64.0, 0.05) << "at 100 Gb/s";
  EXPECT_NEAR(ours(table, "BERT-Large", 2), 51.8, 0.05) << "at 46.5 Gb/s";
  EXPECT_NE(report.findings[0].find("would reach 64.0 there. The printed 51.8 needs 46.5 Gb/s."), std::string::npos)
      << report.findings[0];
}

TEST(Presets, OfDearHaveTheGainsWithinHalfAPercent) {
  const PresetReport report = report_of("dear_fig7");
  EXPECT_EQ(expect_known(report.tables[0], 0.005), 6u * 7 + 3);
  EXPECT_EQ(expect_known(report.tables[1], 0.005), 6u);
  EXPECT_LE(report.tables[0].worst(), 0.005);
  // With lookahead DeAR loses to a buffer of all-reduces on all convolutional networks.
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<PresetCell>& cells = report.tables[0].rows[row].cells;
    EXPECT_GT(cells[3].ours.number.value(), cells[0].ours.number.value());
  }
}

TEST(Presets, OfDeftFindTheMisprint) {
  const PresetReport report = report_of("deft_table2");
  const PresetTable& table = report.tables[0];
  EXPECT_EQ(row_of(table, "bucket 4").cells[2].reference.number, 178643.0);
  EXPECT_EQ(ours(table, "bucket 4", 2), 188643);
  EXPECT_EQ(ours(table, "bucket 4", 3), 9);
  EXPECT_EQ(ours(table, "bucket 5", 3), 2);
  EXPECT_EQ(ours(table, "sum", 3), 15);
  EXPECT_EQ(ours(table, "sum", 2), 257725);
  EXPECT_NE(report.findings[0].find("add up to 247725 "), std::string::npos) << report.findings[0];
  EXPECT_NE(report.findings[0].find("predicts 188401 "), std::string::npos) << report.findings[0];
}

TEST(Presets, OfDeftHaveTheRatiosOfThePreserver) {
  const PresetReport report = report_of("deft_table5");
  EXPECT_NEAR(ours(report.tables[0], "O_B: four updates", 0), 0.1922, 0.00005);
  EXPECT_NEAR(ours(report.tables[0], "O_D: batches 2, 1, 1, summed", 1), 1.000, 0.0005);
  EXPECT_NEAR(ours(report.tables[0], "O_D: batches 2, 1, 1, averaged", 1), 0.977, 0.0005);
  EXPECT_EQ(expect_known(report.tables[1], 0), 4u);
  EXPECT_NE(report.findings[0].find("= 0.9933."), std::string::npos) << report.findings[0];
  EXPECT_NE(report.findings[1].find("A drift of 1.71 times"), std::string::npos) << report.findings[1];
}

TEST(Presets, OfDeftHaveTheTimesAndSpeedUpsOfItsNetworks) {
  const PresetReport report = report_of("deft_fig10");
  const PresetTable& steps = report.tables[0];
  EXPECT_EQ(expect_known(steps, 0.001), 13u);
  EXPECT_NEAR(ours(report.tables[1], "VGG-19", 1), 0.748, 0.0006);
  EXPECT_NEAR(ours(report.tables[1], "VGG-19", 0), 0.43, 0.005);
  EXPECT_NEAR(ours(report.tables[1], "ResNet-101", 1), 0.83, 0.005);
  EXPECT_NEAR(ours(report.tables[1], "GPT-2", 1), 1.0, 0.005);
  for (const PresetRow& row : report.tables[2].rows) {
    for (const PresetCell& cell : row.cells)
      EXPECT_NEAR(*cell.ours.number, *cell.reference.number, 0.0055) << row.label;
  }
  EXPECT_EQ(row_of(report.tables[3], "VGG-19").cells[0].reference.number, 2.15);
  EXPECT_EQ(row_of(report.tables[3], "GPT-2").cells[1].reference.number, 1.29);
  EXPECT_NE(report.findings[1].find("1, 1, 2 batches with two links and 2, 2, 3 with one"), std::string::npos)
      << report.findings[1];
  // No bubble.
  for (const PresetRow& row : steps.rows) {
    EXPECT_EQ(row.cells[3].ours.number, row.cells[0].ours.number) << row.label;
    EXPECT_EQ(row.cells[4].ours.number, row.cells[0].ours.number) << row.label;
  }
}

// The figures whose numbers are not known are those of figure 10 where nothing differs.
TEST(Presets, OfDeftsSweepsMeetTheMeasuredPoint) {
  const PresetTable known = report_of("deft_fig10").tables[0];
  for (const auto& [name, label] : {std::pair("deft_fig14", "x 1"), std::pair("deft_fig15", "16 workers")}) {
    const PresetReport report = report_of(name);
    ASSERT_EQ(report.tables.size(), 3u);
    for (size_t model = 0; model < 3; ++model) {
      EXPECT_EQ(report.tables[model].reference, "") << "nothing is known";
      for (size_t c = 0; c < known.columns.size(); ++c) {
        EXPECT_EQ(ours(report.tables[model], label, c), *known.rows[model].cells[c].ours.number);
      }
      for (const PresetRow& row : report.tables[model].rows) {
        EXPECT_EQ(row.cells[4].ours.number, row.cells[0].ours.number) << "compute never waits";
        EXPECT_GE(*row.cells[6].ours.number, *row.cells[5].ours.number) << "a further link";
      }
    }
  }
}

TEST(Presets, OfArTopkHave36Of36FastestCollectives) {
  const PresetReport report = report_of("artopk_table6");
  const PresetTable& table = report.tables[0];
  ASSERT_EQ(table.rows.size(), 36u);
  int agree = 0;
  std::map<std::string, int> wins;
  for (const PresetRow& row : table.rows) {
    const PresetCell& fastest = row.cells.back();
    EXPECT_EQ(fastest.ours.word, fastest.reference.word) << row.label;
    agree += fastest.ours.word == fastest.reference.word;
    ++wins[fastest.reference.word];
  }
  EXPECT_EQ(agree, 36);
  EXPECT_EQ(wins, (std::map<std::string, int>{{"ring", 22}, {"all-gather", 13}, {"tree", 1}}));
  EXPECT_EQ(row_of(table, "ResNet-50, 5 Gb/s, 0.01").cells[3].ours.word, "tree");
  EXPECT_EQ(expect_known(report.tables[1], 0), 4u);
  EXPECT_NE(report.findings[1].find("in 7 rows"), std::string::npos) << report.findings[1];
  EXPECT_NE(report.findings[2].find("for 2 models"), std::string::npos) << report.findings[2];
}

TEST(Presets, AreListed) {
  TrainOptions options;
  options.list = true;
  const std::string text = train(options).value();
  for (const Preset& preset : presets()) EXPECT_NE(text.find(preset.name), std::string::npos) << preset.name;
}

TEST(Presets, DrawWhatHasCurves) {
  TrainOptions options;
  options.preset = "mgwfbp_fig10";
  options.plot = testing::TempDir() + "trestle_preset_" + std::to_string(::getpid()) + ".svg";
  ASSERT_TRUE(train(options).ok());
  std::ifstream file(options.plot);
  const std::string svg((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(options.plot);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("mgwfbp_paper, 128 workers: 810."), std::string::npos);
  options.preset = "dear_table2";
  EXPECT_EQ(train(options).error().message, "--plot: dear_table2 has no picture");
}

TEST(Presets, NameWhatIsWrong) {
  TrainOptions options;
  options.preset = "dear_table3";
  EXPECT_EQ(train(options).error().message,
            "--preset: \"dear_table3\" is no preset; there are mgwfbp_fig10, mgwfbp_fig11, dear_table2, dear_fig7, "
            "deft_table2, deft_table5, deft_fig10, deft_fig14, deft_fig15, artopk_table6");
  options.preset = "dear_table2";
  options.network = "1,1,1,4,ring";
  EXPECT_EQ(train(options).error().message, "--preset: goes with --json and --plot alone");
}

}  // namespace
}  // namespace trestle
