#include "perf/driver/collective.h"

#include <algorithm>

#include "perf/driver/pattern.h"
#include "perf/driver/types.h"

namespace trestle::perf {

Shape whole_shape(size_t elements, size_t, int) {
  return {elements, elements, elements};
}

size_t block_count(size_t elements, size_t element_bytes, int nranks) {
  const size_t step = 16 / element_bytes;
  return elements / static_cast<size_t>(nranks) / step * step;
}

Shape gathering_shape(size_t elements, size_t element_bytes, int nranks) {
  const size_t count = block_count(elements, element_bytes, nranks);
  return {count, count, count * static_cast<size_t>(nranks)};
}

Shape scattering_shape(size_t elements, size_t element_bytes, int nranks) {
  const size_t count = block_count(elements, element_bytes, nranks);
  return {count, count * static_cast<size_t>(nranks), count};
}

double factor_one(int) {
  return 1;
}

double factor_blocks(int nranks) {
  return static_cast<double>(nranks - 1) / nranks;
}

void fill_reduction_send(const Case& c, size_t elements, void* send) {
  fill_contribution({c.type, c.op, c.nranks, c.seed}, c.rank, 0, elements, send);
}

void fill_reduction_expected(const Case& c, size_t first, size_t count, void* out) {
  fill_reduced({c.type, c.op, c.nranks, c.seed}, first, count, out);
}

void fill_copy_send(const Case& c, size_t elements, void* send) {
  fill_copied(c.type, c.seed, c.rank, 0, elements, send);
}

void fill_own_send(const Case& c, void* send) {
  fill_copy_send(c, c.count, send);
}

void fill_copy_expected(const Case& c, int source, size_t first, size_t count, void* out) {
  fill_copied(c.type, c.seed, source, first, count, out);
}

void fill_blocks_expected(const Case& c, size_t start, size_t first, size_t count, void* out) {
  const size_t element_bytes = type_info(c.type).bytes;
  while (count > 0) {
    const size_t block = first / c.count, inside = first % c.count;
    const size_t part = std::min(count, c.count - inside);
    fill_copied(c.type, c.seed, static_cast<int>(block), start + inside, part, out);
    out = static_cast<char*>(out) + part * element_bytes;
    first += part;
    count -= part;
  }
}

void fill_gathered_expected(const Case& c, size_t first, size_t count, void* out) {
  fill_blocks_expected(c, 0, first, count, out);
}

}  // namespace trestle::perf
