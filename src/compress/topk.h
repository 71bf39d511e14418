// The largest gradients of a vector of float32 or float64: exact top-k, and MSTopk, which finds them with few passes
// but not exactly. Pure, any thread. Equal input gives equal output on every host.
//
// Magnitudes are compared. Ties go to the lower index. A NaN counts as larger than all numbers. So it is sent, and
// spoils the sum as in a plain all-reduce. It does not hide in a residual. NaNs are counted, so that the caller can
// leave the step out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trestle {

template <class T>
struct SparseVectorOf {
  std::vector<uint32_t> indices;  // ascending
  std::vector<T> values;          // of these indices
  size_t nans = 0;                // in the whole vector
};
using SparseVector = SparseVectorOf<float>;

// How many of n elements are sent: ceil(ratio * n), at least 1 and at most n; none of none. A ratio that is not a
// number counts as 0.
size_t top_k_count(double ratio, size_t elements);

// |values|^2, added in doubles, in the order of kernels/sparse.h.
double square_norm(std::span<const float> values);
double square_norm(std::span<const double> values);

// Of two square norms, |sent|^2 / |gradient|^2; 1 for a gradient of zeros, of which nothing is lost.
double compression_gain(double sent, double gradient);

// Exactly the k elements of the largest magnitudes; all of them if there are fewer. At most 2^32 elements (CHECKed).
// Reads the vector once, unless its order hides its magnitudes from a sample. Needs memory for twice k in most cases.
SparseVector top_k(std::span<const float> vector, size_t k);
SparseVectorOf<double> top_k(std::span<const double> vector, size_t k);

// How many elements layerwise_top_k() takes.
size_t layerwise_count(std::span<const size_t> lengths, double ratio);

// LWTopk: the top k of each layer, k from the layer's length. Indices count in the whole vector. lengths: of the layers
// in order, whose sum is the vector's length (CHECKed).
SparseVector layerwise_top_k(std::span<const float> vector, std::span<const size_t> lengths, double ratio);
SparseVectorOf<double> layerwise_top_k(std::span<const double> vector, std::span<const size_t> lengths, double ratio);

// MSTopk (Shi et al., "Towards Scalable Distributed Training of Deep Learning on Public Cloud Clusters", MLSys 2021):
// 25 bisections of the threshold between the mean magnitude and the largest. Keeps all elements that reach the lowest
// threshold that at most k reach. Fills up to k with elements between it and the highest threshold that more than k
// reach, in the order of indices (the authors: a random slice). Infinities count like NaN, because no threshold divides
// them. Made for accelerators. A CPU reads the vector about five times, because most bisections concern few elements;
// top_k reads it once.
SparseVector ms_top_k(std::span<const float> vector, size_t k);
SparseVectorOf<double> ms_top_k(std::span<const double> vector, size_t k);

}  // namespace trestle
