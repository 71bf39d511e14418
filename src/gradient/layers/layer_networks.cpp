#include "gradient/layers/layer_networks.h"

namespace trestle {
namespace {

// He et al., "Deep Residual Learning for Image Recognition" (CVPR 2016), table 1, with the stride in the 3x3
// convolution as in torchvision. Activations: the elements that each convolution reads and writes, and the shortcut.
constexpr WorkloadLayer kResNet152[] = {
    {"stem", 1, 9'536, 118'013'952, 953'344},         {"stage 1, first block", 1, 75'008, 231'211'008, 3'612'672},
    {"stage 1", 2, 70'400, 218'365'952, 3'211'264},   {"stage 2, first block", 1, 379'392, 372'506'624, 3'813'376},
    {"stage 2", 7, 280'064, 218'365'952, 1'605'632},  {"stage 3, first block", 1, 1'512'448, 372'506'624, 1'906'688},
    {"stage 3", 35, 1'117'184, 218'365'952, 802'816}, {"stage 4, first block", 1, 6'039'552, 372'506'624, 953'344},
    {"stage 4", 2, 4'462'592, 218'365'952, 401'408},  {"classifier", 1, 2'049'000, 2'048'000, 3'048},
};

constexpr uint64_t kHidden = 1024;
constexpr uint64_t kWords = 32'320;
constexpr uint64_t kTokens = 30;
constexpr uint64_t lstm_parameters(uint64_t inputs) {
  return 4 * (inputs * kHidden + kHidden * kHidden + 2 * kHidden);
}
// Uses every weight once per token. Activations: input, output and the four gates.
constexpr WorkloadLayer lstm(std::string_view name, uint64_t repeat, uint64_t inputs, uint64_t cells = 1,
                             uint64_t attention = 0) {
  const uint64_t parameters = cells * lstm_parameters(inputs) + attention;
  return {name, repeat, parameters, kTokens * parameters, kTokens * cells * (inputs + 5 * kHidden)};
}
constexpr uint64_t kAttention = 2 * kHidden * kHidden + 2 * kHidden + 1;

constexpr WorkloadLayer kGnmt[] = {
    {"embedding", 1, kWords* kHidden, 0, 4 * kTokens* kHidden},
    lstm("encoder 1, both directions", 1, kHidden, 2),
    lstm("encoder 2", 1, 2 * kHidden),
    lstm("encoder 3, 4", 2, kHidden),
    lstm("decoder 1 and attention", 1, kHidden, 1, kAttention),
    lstm("decoder 2 to 4", 3, 2 * kHidden),
    {"classifier", 1, (kHidden + 1) * kWords, kTokens* kHidden* kWords, kTokens*(kHidden + kWords)},
};

constexpr WorkloadLayer dense(std::string_view name, uint64_t repeat, uint64_t inputs, uint64_t outputs) {
  return {name, repeat, inputs * outputs, inputs * outputs, inputs + outputs};
}

constexpr WorkloadLayer kDlrm[] = {
    dense("bottom 1", 1, 1600, 1024), dense("bottom 2 to 6", 5, 1024, 1024), dense("bottom 7", 1, 1024, 64),
    dense("top 1", 1, 4160, 2048),    dense("top 2 to 11", 10, 2048, 2048),  dense("top 12", 1, 2048, 1),
};

constexpr uint64_t kWidth = 25'600;
constexpr uint64_t kSequence = 2'048;
constexpr uint64_t kVocabulary = 51'200;

// A layer multiplies by 12 h^2 weights. Its attention adds two products of the sequence with itself.
constexpr WorkloadLayer kTransformer1T[] = {
    {"embedding", 1, (kVocabulary + kSequence) * kWidth, 0, 2 * kSequence* kWidth},
    {"layer", 128, 12 * kWidth* kWidth + 13 * kWidth,
     kSequence * 12 * kWidth* kWidth + 2 * kSequence* kSequence* kWidth, 16 * kSequence* kWidth},
    {"head", 1, 2 * kWidth, kSequence* kVocabulary* kWidth, kSequence*(kWidth + kVocabulary)},
};

constexpr std::string_view kResNetAssumptions[] = {
    "batch 1 per rank (1024 on 1024 ranks): our choice, the whole number whose share of communication is closest to "
    "that of the paper's ideal speed-up",
    "each convolution reads its input and writes its output once; norms and activations are fused into it: our "
    "assumption",
};
constexpr std::string_view kGnmtAssumptions[] = {
    "the variant of GNMT: 4 encoder and 4 decoder layers, width 1024, 32320 words, embedding shared by both "
    "languages: our choice",
    "batch 32 sentence pairs per rank, 30 tokens each: our choice, the power of two whose share of communication is "
    "closest to that of the paper's ideal speed-up",
    "recurrent weights are read from memory once per pass: our assumption",
};
constexpr std::string_view kDlrmAssumptions[] = {
    "layer sizes: derived from a public table of the paper's authors for another study, which gives 114,823,168 "
    "bytes of gradients and 4 MiB per all-to-all; 512 samples per rank and 64 tables of width 64 follow from it",
    "100 lookups per table and sample, at the speed of memory; their update belongs to the optimiser: our assumption",
    "the forward all-to-all overlaps the bottom layers, the backward one their backward pass: our assumption",
    "the all-to-all takes the same time under every policy and in the ideal network: our assumption; per dimension a "
    "rank sends (P-1)/P of its data (ring: floor(P^2/4)/P, it forwards), all dimensions at the same time",
};
constexpr std::string_view kTransformerAssumptions[] = {
    "the variant of the model: 128 layers of width 25600, sequences of 2048 tokens, 51200 words: our choice",
    "the inner 128 ranks share a model, as in a public table of the paper's authors for another study; a dimension "
    "that they fill only in part is cut in two of the same bandwidth",
    "16 sequences per model: our choice, with little effect, because activations and compute grow alike",
    "two all-reduces of activations per layer and pass, nothing overlaps them; activations are kept, not computed "
    "again; no pipeline: our assumption",
    "gradients: one all-reduce per model part over the other ranks: our assumption",
};
constexpr std::string_view kCommonAssumptions[] = {
    "half precision, 2 bytes per weight, activation and gradient: our assumption",
    "compute: per layer the longer of operations / speed and bytes / memory bandwidth (roofline); backward takes twice "
    "of both: our assumption",
    "gradients are all-reduced as one piece after the backward pass, unless --overlap is given: our assumption (the "
    "paper's speed-ups are too large for an overlap of all of it)",
    "no optimiser, no input, no stragglers: our assumption",
    "collectives in the paper's model, 64 chunks, links serve the smallest chunk first (baseline: first in, first out)",
    "ideal: every link of the participating ranks is always busy, no latency",
};

constexpr Workload kWorkloads[] = {
    {.name = "ResNet-152",
     .summary = "images, data parallel",
     .layers = kResNet152,
     .samples = 1,
     .paper = {1.49, 2.25, 1.54},
     .source = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1; sizes of torchvision",
     .assumptions = kResNetAssumptions},
    {.name = "GNMT",
     .summary = "translation, data parallel",
     .layers = kGnmt,
     .samples = 32,
     .paper = {1.30, 1.78, 1.32},
     .source = "Wu et al., Google's Neural Machine Translation System, arXiv 1609.08144; layers as in the benchmark of "
               "MLPerf Training 0.7",
     .assumptions = kGnmtAssumptions},
    {.name = "DLRM",
     .summary = "recommendation, tables spread over all ranks, layers data parallel",
     .parallelism = Parallelism::kTablesAndData,
     .layers = kDlrm,
     .samples = 512,
     .exchange_before = 3,
     .elements_exchanged = 64 * 64,
     .elements_looked_up = 100 * 64 * 64,
     .paper = {1.30, 1.77, 1.33},
     .source =
         "Naumov et al., Deep Learning Recommendation Model, arXiv 1906.00091; sizes: github.com/astra-sim/libra, "
         "inputs/workload/DLRM.txt",
     .assumptions = kDlrmAssumptions},
    {.name = "Transformer-1T",
     .summary = "language, a model per 128 inner ranks, data parallel over the others",
     .parallelism = Parallelism::kModelAndData,
     .layers = kTransformer1T,
     .samples = 16,
     .model_ranks = 128,
     .activations_reduced = kSequence * kWidth,
     .reductions_per_layer = 2,
     .reduced_layer = "layer",
     .paper = {1.25, 1.53, 1.26},
     .source = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021, table 1 "
               "(1008 billion parameters); 128 ranks: github.com/astra-sim/libra, inputs/communicator/MSFT_1T_4d.yml",
     .assumptions = kTransformerAssumptions},
};

}  // namespace

std::span<const Workload> workloads() {
  return kWorkloads;
}

uint64_t parameters(const Workload& workload) {
  uint64_t sum = 0;
  for (const WorkloadLayer& layer : workload.layers) sum += layer.repeat * layer.parameters;
  return sum;
}

std::span<const std::string_view> common_assumptions() {
  return kCommonAssumptions;
}

}  // namespace trestle
