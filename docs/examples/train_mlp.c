/* Data-parallel training of a small network under policies that send its gradients in different ways, each from the
 * same parameters on the same data:
 *
 *   dense                 one all-reduce of all gradients after each backward pass: what the others are compared with
 *   wfbp                  the scheduler: each gradient as soon as it is ready
 *   split_optimal:shared  the scheduler: merged at best. Each rank updates its shard between the two halves
 *   deft:1K               the scheduler: gradients may travel in later steps, so updates are older and fewer
 *   topk:0.1              the scheduler: the largest tenth of each tensor, chosen by one rank, the rest in later steps
 *   ar_topk:0.1           an all-reduce of the program's own: the largest tenth of all gradients together
 *
 * --policy names another policy of the scheduler in the place of topk:0.1.
 *
 *   trestle run -n 4 -- ./train_mlp [--csv FILE] [--plot FILE] [--policy POLICY]
 *
 * Rank 0 prints a line for each. The files get the losses over the steps.
 */
#include <string.h>
#include <trestle/compress.h>
#include <trestle/gradient.h>

#include "loss_curves.h"
#include "mlp.h"
#include "must.h"

enum { kSteps = 600, kEvery = 20, kPoints = kSteps / kEvery + 1, kPolicies = 6, kOwnPolicy = 4 };
static const float kRate = 0.1f;
static const double kRatio = 0.1; /* of ar_topk */

typedef struct {
  const char* policy;
  trestleComm_t comm;
  int rank;
  double losses[kPoints];     /* over all samples of all ranks, every kEvery steps and at the end */
  float trained[kParameters]; /* the parameters at the end */
  char note[100];
} Training;

/* Gradient descent on some elements. `gradient` sums the means over the ranks of `batches` steps. */
static void descend(void* context, int tensor, size_t offset, size_t count, const void* gradient, void* parameter,
                    int batches, int age) {
  const float* g = gradient;
  float* w = parameter;
  (void)context, (void)tensor, (void)offset, (void)batches, (void)age;
  for (size_t i = 0; i < count; ++i) w[i] -= kRate * g[i];
}

static void steps(Training* t, const Hooks* hooks, void (*end_step)(void* context), void* context) {
  start(t->rank);
  for (int step = 0; step < kSteps; ++step) {
    if (step % kEvery == 0) t->losses[step / kEvery] = forward(0, kSamples, hooks);
    forward(step * kBatch % kSamples, kBatch, hooks);
    backward(kBatch, hooks);
    end_step(context);
  }
}

/* The parameters must be complete, and the communicator free. */
static void finish(Training* t) {
  const Hooks none = {NULL, NULL, NULL};
  t->losses[kPoints - 1] = forward(0, kSamples, &none);
  memcpy(t->trained, parameters, sizeof parameters);
  MUST(trestleAllReduce(t->losses, t->losses, kPoints, trestleFloat64, trestleAvg, t->comm, NULL), t->comm);
  MUST(trestleCommSynchronize(t->comm), t->comm);
}

/* ---- The scheduler of gradients ---------------------------------------------------------------------------------- */

typedef struct {
  trestleGrad_t grad;
  trestleComm_t comm;
  int first; /* step: nothing to wait for */
} Scheduled;

static void wait_for_layer(void* context, int layer) {
  const Scheduled* s = context;
  for (int t = 2 * layer; !s->first && t < 2 * layer + 2; ++t) MUST(trestleGradWaitParam(s->grad, t), s->comm);
}

static void layer_is_ready(void* context, int layer) {
  const Scheduled* s = context;
  for (int t = 2 * layer + 1; t >= 2 * layer; --t) MUST(trestleGradReady(s->grad, t, NULL), s->comm);
}

static void end_scheduled_step(void* context) {
  Scheduled* s = context;
  MUST(trestleGradStepEnd(s->grad), s->comm);
  s->first = 0;
}

/* All ranks refuse the same, so one tells why. */
static void refuse(int rank, const char* option, const char* why) {
  if (rank == 0) fprintf(stderr, "train_mlp: %s: %s\n", option, why);
  exit(2);
}

/* Returns a scheduler with the plan of the policy. Times and costs are those of a network on which messages take longer
 * than compute; trestleGradProfileBegin and trestleGradProfileEnd would measure them. */
static trestleGrad_t planned(const Training* t) {
  static const double passes[2][kTensors] = {{1e-3, 0, 2e-3, 0, 1e-3, 0}, {2e-3, 0, 4e-3, 0, 2e-3, 0}};
  static const trestleGradCost_t whole = {1e-3, 2e-6}, half = {5e-4, 1e-6};
  trestleGrad_t grad = NULL;
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.op = trestleAvg;
  config.allow = trestleGradAllowStale | trestleGradAllowCompression; /* for deft and topk */
  config.updateMerged = descend;
  MUST(trestleGradCreate(&grad, &t->comm, 1, &config), t->comm);
  for (int tensor = 0, number; tensor < kTensors; ++tensor) {
    const size_t at = offset_of(tensor);
    MUST(trestleGradRegister(grad, names[tensor], count_of(tensor), trestleFloat32, gradients + at, parameters + at,
                             &number),
         t->comm);
  }
  MUST(trestleGradSetTimes(grad, passes[0], passes[1], &whole, &half, &half), t->comm);
  if (trestleGradPlan(grad, t->policy) != trestleSuccess) refuse(t->rank, "--policy", trestleGetLastError(NULL));
  return grad;
}

/* Writes the first and last tensor of each message of the plan. Returns the number of messages. */
static int groups_of(trestleGrad_t grad, trestleComm_t comm, int groups[kTensors][2]) {
  char json[4096];
  size_t size = sizeof json;
  int count = 0, length = 0;
  MUST(trestleGradPlanJson(grad, json, &size), comm);
  const char* at = strstr(json, "\"groups\":[");
  EXPECT(at != NULL);
  at += strlen("\"groups\":[");
  while (count < kTensors && sscanf(at, "[%d,%d]%n", &groups[count][0], &groups[count][1], &length) == 2) {
    at += length + (at[length] == ',');
    ++count;
  }
  return count;
}

/* Trains, and brings in what a policy has delayed. groups may be NULL. */
static int train_scheduled(Training* t, int groups[kTensors][2]) {
  Scheduled s = {planned(t), t->comm, 1};
  const Hooks hooks = {wait_for_layer, layer_is_ready, &s};
  trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
  const int count = groups != NULL ? groups_of(s.grad, t->comm, groups) : 0;
  int batches = 0;
  steps(t, &hooks, end_scheduled_step, &s);
  MUST(trestleGradSynchronize(s.grad), t->comm);
  MUST(trestleGradDrain(s.grad, &batches), t->comm);
  MUST(trestleGradGetStats(s.grad, &stats), t->comm);
  MUST(trestleGradDestroy(s.grad), t->comm);
  finish(t);
  if (stats.delayedUpdates > 0) {
    snprintf(t->note, sizeof t->note, "%d updates, of gradients up to %d steps old", (int)stats.delayedUpdates,
             (int)stats.oldestAge);
    EXPECT(stats.delayedBatches == kSteps && stats.pendingBatches == 0); /* each gradient is in one update */
  }
  if (stats.compressedElements > 0) {
    snprintf(t->note, sizeof t->note, "%d of %d elements travel in each step", (int)(stats.sentElements / kSteps),
             kParameters);
  }
  return count;
}

/* ---- Exchanges of the program's own ------------------------------------------------------------------------------ */

typedef struct {
  trestleComm_t comm;
  int groups[kTensors][2]; /* first and last tensor of each message */
  int count;
  trestleTopK_t topk;
  float residual[kParameters];
} Exchange;

static void update_all(void) {
  descend(NULL, 0, 0, kParameters, gradients, parameters, 1, 0);
}

static void exchange_whole(void* context) {
  const Exchange* e = context;
  MUST(trestleAllReduce(gradients, gradients, kParameters, trestleFloat32, trestleAvg, e->comm, NULL), e->comm);
  MUST(trestleCommSynchronize(e->comm), e->comm);
  update_all();
}

/* One all-reduce for each group, in two halves without anything between them. */
static void exchange_groups(void* context) {
  const Exchange* e = context;
  for (int g = e->count - 1; g >= 0; --g) {
    float* const from = gradients + offset_of(e->groups[g][0]);
    const size_t count = offset_of(e->groups[g][1] + 1) - offset_of(e->groups[g][0]);
    trestleRequest_t request = NULL;
    MUST(trestleAllReduceStart(from, from, count, trestleFloat32, trestleAvg, e->comm, NULL, &request), e->comm);
    MUST(trestleAllReduceFinish(request, NULL), e->comm);
    MUST(trestleRequestWait(request), e->comm);
    MUST(trestleRequestFree(request), e->comm);
  }
  update_all();
}

static void exchange_largest(void* context) {
  Exchange* e = context;
  MUST(trestleAllReduceTopK(gradients, e->residual, gradients, e->topk), e->comm);
  update_all();
}

static void train_by(Training* t, void (*exchange)(void* context), Exchange* context) {
  const Hooks none = {NULL, NULL, NULL};
  context->comm = t->comm;
  steps(t, &none, exchange, context);
  finish(t);
}

/* AR-Topk: the ranks take turns to choose the elements that all send. */
static void train_by_largest(Training* t) {
  static Exchange context; /* the residual begins with zeros */
  trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
  config.ratio = kRatio;
  config.method = trestleTopKStar;
  MUST(trestleTopKCreate(&context.topk, t->comm, kParameters, &config), t->comm);
  train_by(t, exchange_largest, &context);
  MUST(trestleTopKGetStats(context.topk, &stats), t->comm);
  MUST(trestleTopKDestroy(context.topk), t->comm);
  snprintf(t->note, sizeof t->note, "%d of %d elements travel in each step", (int)stats.elements, kParameters);
}

/* Plain all-reduces by the same plan over the same buffers must give equal parameters, bit by bit. */
static void compare_with_plain(Training* split, Exchange* context) {
  static Training plain;
  plain = *split;
  train_by(&plain, exchange_groups, context);
  EXPECT(memcmp(plain.trained, split->trained, sizeof plain.trained) == 0);
  snprintf(split->note, sizeof split->note, "bit-equal to plain all-reduces of the same %d buffers", context->count);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static void train_all(Training* all) {
  static Exchange context;
  train_scheduled(&all[kOwnPolicy], NULL); /* first, because it may be refused */
  train_by(&all[0], exchange_whole, &context);
  train_scheduled(&all[1], NULL);
  context.count = train_scheduled(&all[2], context.groups);
  compare_with_plain(&all[2], &context);
  train_scheduled(&all[3], NULL);
  train_by_largest(&all[5]);
}

static void print_line(const Training* t, double dense) {
  const double last = t->losses[kPoints - 1];
  printf("%-22s loss %.5f, %+.3f %% to dense%s%s\n", t->policy, last, 100 * (last / dense - 1),
         t->note[0] != '\0' ? "; " : "", t->note);
}

static void write_file(const char* path, const Curve* curves,
                       void (*write)(FILE*, const Curve*, int count, int points, int every)) {
  FILE* const file = fopen(path, "w");
  EXPECT(file != NULL);
  write(file, curves, kPolicies, kPoints, kEvery);
  EXPECT(fclose(file) == 0);
}

int main(int argc, char** argv) {
  const char* policies[kPolicies] = {"dense", "wfbp", "split_optimal:shared", "deft:1K", "topk:0.1", "ar_topk:0.1"};
  const char *csv = NULL, *svg = NULL, *own = NULL;
  static Training all[kPolicies];
  Curve curves[kPolicies];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  for (int a = 1; a < argc; a += 2) {
    const char** const option = strcmp(argv[a], "--csv") == 0      ? &csv
                                : strcmp(argv[a], "--plot") == 0   ? &svg
                                : strcmp(argv[a], "--svg") == 0    ? &svg  // its first name
                                : strcmp(argv[a], "--policy") == 0 ? &own
                                                                   : NULL;
    if (option == NULL) refuse(rank, argv[a], "is no option; there are --csv, --plot and --policy");
    if (a + 1 == argc) refuse(rank, argv[a], "needs a value");
    *option = argv[a + 1];
  }
  if (own != NULL) policies[kOwnPolicy] = own;
  for (int p = 0; p < kPolicies; ++p) {
    all[p].policy = policies[p];
    all[p].comm = comm;
    all[p].rank = rank;
    curves[p].name = policies[p];
    curves[p].losses = all[p].losses;
  }
  train_all(all);
  if (rank == 0 && csv != NULL) write_file(csv, curves, write_csv);
  if (rank == 0 && svg != NULL) write_file(svg, curves, write_svg);
  for (int p = 0; p < kPolicies; ++p) {
    const double last = all[p].losses[kPoints - 1], dense = all[0].losses[kPoints - 1];
    if (rank == 0) print_line(&all[p], dense);
    if (p == kOwnPolicy && own != NULL) continue; /* perhaps one that trains worse */
    EXPECT(last < 0.25 * all[p].losses[0]);
    /* Without delay and compression only the rounding of sums differs. */
    EXPECT(fabs(last - dense) < (p < 3 ? 0.001 : 0.02) * dense);
  }
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
