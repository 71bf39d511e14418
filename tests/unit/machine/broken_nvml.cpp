// A library in place of libnvidia-ml.so.1 that lacks all functions but one.
extern "C" __attribute__((visibility("default"))) int nvmlInit_v2() {
  return 0;
}
