/* every_symbol LIBRARY SYMBOLS: loads the library as a program does that wants NCCL, with everything resolved at once,
 * and looks up every function and its twin. The process then has one libtrestle.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static int libraries(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  if (strstr(info->dlpi_name, "libtrestle.so") != NULL) ++*(int*)found;
  return 0;
}

int main(int argc, char** argv) {
  char name[64], full[80];
  int functions = 0, found = 0;
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  FILE* symbols = fopen(argv[2], "r");
  if (library == NULL || symbols == NULL) {
    fprintf(stderr, "cannot load %s: %s\n", argv[1], library == NULL ? dlerror() : "no list of symbols");
    return 1;
  }
  for (; fscanf(symbols, "%63s", name) == 1; ++functions) {
    snprintf(full, sizeof full, "pnccl%s", name);
    void* twin = dlsym(library, full);
    void* function = dlsym(library, full + 1);
    if (function == NULL || twin != function) {
      fprintf(stderr, "%s: %s\n", full + 1, function == NULL ? "missing" : "is not its twin's function");
      return 1;
    }
  }
  fclose(symbols);
  dl_iterate_phdr(libraries, &found);
  if (functions < 60 || found != 1) {
    fprintf(stderr, "%d functions in the list, %d libtrestle.so in the process\n", functions, found);
    return 1;
  }
  printf("%d functions with their twins\n", functions);
  return 0;
}
