/* A pipeline of computing and all-reduces that never waits inside the library: as soon as a layer's gradient is
 * computed its all-reduce is issued, the library goes on with it by itself, and a function of ours hears when it is
 * complete. Meanwhile this thread computes the next layer, and updates the layers whose sums have come, in whatever
 * order.
 *
 *   trestle run -n 2 -- ./pipeline
 */
#include <pthread.h>

#include "must.h"

enum { kLayers = 12, kCount = 50000, kSteps = 3 };

/* Which layers are reduced; what the library's thread and ours share. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int layers[kLayers];
  int count;
  int failed;
} reduced = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};

/* Called by the library's helper thread: it notes what happened and returns. */
static void layer_is_reduced(void* layer, trestleResult_t result) {
  if (result != trestleSuccess) fprintf(stderr, "layer %d: %s\n", *(int*)layer, trestleGetLastError(NULL));
  pthread_mutex_lock(&reduced.mutex);
  if (result != trestleSuccess) reduced.failed = 1;
  reduced.layers[reduced.count++] = *(int*)layer;
  pthread_cond_signal(&reduced.changed);
  pthread_mutex_unlock(&reduced.mutex);
}

/* The next layer that is reduced; -1: none yet. `last` 1: waits for it, outside of the library. */
static int next_reduced(int last) {
  int layer = -1;
  pthread_mutex_lock(&reduced.mutex);
  while (last && reduced.count == 0) pthread_cond_wait(&reduced.changed, &reduced.mutex);
  if (reduced.failed) exit(1);
  if (reduced.count > 0) layer = reduced.layers[--reduced.count];
  pthread_mutex_unlock(&reduced.mutex);
  return layer;
}

static float gradients[kLayers][kCount], weights[kLayers][kCount];

static void compute(int layer, int rank) {
  for (int i = 0; i < kCount; ++i) gradients[layer][i] = (float)(rank + layer + 1);
}

static void update(int layer) {
  for (int i = 0; i < kCount; ++i) weights[layer][i] -= gradients[layer][i];
}

int main(void) {
  static int layers[kLayers];
  trestleEvent_t events[kLayers];
  trestleStream_t stream;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  MUST(trestleStreamCreate(&stream), NULL);
  for (int l = 0; l < kLayers; ++l) {
    layers[l] = l;
    MUST(trestleEventCreate(&events[l]), NULL);
  }
  for (int step = 0; step < kSteps; ++step) {
    int updated = 0;
    for (int l = kLayers - 1; l >= 0; --l) {
      compute(l, rank);
      MUST(trestleAllReduce(gradients[l], gradients[l], kCount, trestleFloat32, trestleSum, comm, stream), comm);
      MUST(trestleEventRecord(events[l], stream), NULL);
      MUST(trestleEventNotify(events[l], layer_is_reduced, &layers[l]), NULL);
      for (int done; (done = next_reduced(0)) >= 0; ++updated) update(done);
    }
    for (; updated < kLayers; ++updated) update(next_reduced(1));
  }

  for (int l = 0; l < kLayers; ++l) {
    const float sum = (float)(nranks * (nranks - 1) / 2 + nranks * (l + 1));
    for (int i = 0; i < kCount; ++i) EXPECT(weights[l][i] == -kSteps * sum);
    MUST(trestleEventDestroy(events[l]), NULL);
  }
  printf("rank %d: %d steps of %d layers are done\n", rank, kSteps, kLayers);
  MUST(trestleStreamDestroy(stream), NULL);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
