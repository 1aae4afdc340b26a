#include "longhaul/host/queues/stored_element.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "longhaul/host/queues/rows.h"

namespace longhaul {
namespace {

using Sizes = std::span<const int64_t>;

size_t count_of(Sizes sizes) {
  return static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
}

// A box into the corner of a larger one of the same rank.
void copy_box(DType dtype, const char* from, Sizes own, char* to, Sizes sizes) {
  const size_t count = count_of(own), unit = element_bytes(dtype);
  if (count == 0) return;
  const size_t run = static_cast<size_t>(own.back());
  std::vector<int64_t> index(own.size(), 0);
  for (size_t runs = count / run; runs > 0; --runs) {
    size_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      offset = offset * static_cast<size_t>(sizes[d]) + static_cast<size_t>(index[d]);
    copy_elements(dtype, from, to + offset * unit, run);
    from += run * unit;
    for (size_t d = own.size() - 1; d-- > 0;) {
      if (++index[d] < own[d]) break;
      index[d] = 0;
    }
  }
}

// What a row of all of them is.
Shape largest(std::span<const StoredElement> elements, size_t component, const Shape& declared) {
  if (declared.fully_defined()) return declared;
  std::vector<int64_t> sizes(declared.dims().size(), 0);
  for (const StoredElement& element : elements) {
    const Sizes own = element.dims(component);
    for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::max(sizes[d], own[d]);
  }
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::max(sizes[d], declared.dims()[d]);
  return Shape(std::move(sizes));
}

// How many elements at the front are rows of one batch, one behind the other; of the other kind, one.
size_t run_length(std::span<const StoredElement> elements) {
  size_t length = 1;
  if (elements[0].batch() == nullptr) return length;
  while (length < elements.size() && elements[length].batch() == elements[0].batch() &&
         elements[length].row() == elements[length - 1].row() + 1) {
    ++length;
  }
  return length;
}

bool is_whole_batch(std::span<const StoredElement> elements) {
  return !elements.empty() && elements[0].batch() != nullptr && elements[0].row() == 0 &&
         (*elements[0].batch())[0].shape().dim(0) == static_cast<int64_t>(elements.size()) &&
         run_length(elements) == elements.size();
}

}  // namespace

const void* StoredElement::data(size_t i) const {
  if (!batch_) return own_[i].data();
  const Tensor& rows = (*batch_)[i];
  return static_cast<const char*>(rows.data()) +
         static_cast<size_t>(row_) * count_of(dims(i)) * element_bytes(rows.dtype());
}

std::span<const int64_t> StoredElement::dims(size_t i) const {
  return batch_ ? Sizes((*batch_)[i].shape().dims()).subspan(1) : Sizes(own_[i].shape().dims());
}

Tensor StoredElement::component(size_t i) const {
  if (!batch_) return own_[i];
  const Sizes sizes = dims(i);
  return Tensor::wrap((*batch_)[i].dtype(), Shape(std::vector<int64_t>(sizes.begin(), sizes.end())), data(i),
                      (*batch_)[i].owner());
}

std::vector<Tensor> StoredElement::components() && {
  if (!batch_) return std::move(own_);
  std::vector<Tensor> rows;
  rows.reserve(batch_->size());
  for (size_t i = 0; i < batch_->size(); ++i) rows.push_back(component(i));
  return rows;
}

Tensor stack_component(std::span<const StoredElement> elements, size_t i, DType dtype, const Shape& declared) {
  if (is_whole_batch(elements)) return (*elements[0].batch())[i];
  const Shape shape = largest(elements, i, declared);
  std::vector<int64_t> dims{static_cast<int64_t>(elements.size())};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  Tensor stacked(dtype, Shape(std::move(dims)));
  if (!declared.fully_defined() && stacked.size_bytes() > 0)
    std::memset(stacked.mutable_data(), 0, stacked.size_bytes());
  const size_t count = count_of(shape.dims());
  char* to = static_cast<char*>(stacked.mutable_data());
  while (!elements.empty()) {
    const size_t run = run_length(elements);
    const Sizes own = elements[0].dims(i);
    const char* from = static_cast<const char*>(elements[0].data(i));
    if (std::equal(own.begin(), own.end(), shape.dims().begin(), shape.dims().end())) {
      copy_elements(dtype, from, to, run * count);
      to += run * count * element_bytes(dtype);
    } else {
      for (size_t row = 0; row < run; ++row, to += count * element_bytes(dtype)) {
        copy_box(dtype, static_cast<const char*>(elements[row].data(i)), own, to, shape.dims());
      }
    }
    elements = elements.subspan(run);
  }
  return stacked;
}

}  // namespace longhaul
