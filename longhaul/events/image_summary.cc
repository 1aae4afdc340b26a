#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "longhaul/events/summary.h"
#include "longhaul/events/summary_internal.h"
#include "longhaul/media/image.h"

namespace longhaul {
namespace {

using summary_internal::refuse;

template <typename T>
using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A value becomes the byte value * scale + offset.
template <typename Number>
struct Affine {
  Number scale, offset;
};

template <typename Number>
Affine<Number> affine_of(Number min, Number max) {
  constexpr Number kNothing = 1e-6f;  // not worth showing
  const bool is_signed = min < 0;
  const Number most = is_signed ? std::max(-min, max) : max;
  const Number range = is_signed ? 127 : 255;
  return {most < kNothing ? 0 : range / most, is_signed ? Number{128} : Number{0}};
}

// An image of floats, a pixel after the other.
template <typename T>
class FloatImage {
 public:
  FloatImage(const T* values, int64_t pixels, int64_t channels)
      : values_(values), pixels_(pixels), channels_(channels) {}

  void normalize(std::span<const uint8_t> bad_color, uint8_t* out) const {
    const auto [scale, offset] = find_affine();
    for (int64_t pixel = 0; pixel < pixels_; ++pixel, out += channels_) {
      if (!is_finite(pixel)) {
        std::copy_n(bad_color.begin(), channels_, out);
        continue;
      }
      for (int64_t c = 0; c < channels_; ++c) out[c] = static_cast<uint8_t>(at(pixel, c) * scale + offset);
    }
  }

 private:
  using Number = Real<T>;

  Number at(int64_t pixel, int64_t channel) const { return static_cast<Number>(values_[pixel * channels_ + channel]); }

  bool is_finite(int64_t pixel) const {
    bool finite = true;
    for (int64_t c = 0; c < channels_; ++c) finite &= std::isfinite(at(pixel, c));
    return finite;
  }

  Affine<Number> find_affine() const {
    Number min = std::numeric_limits<Number>::infinity(), max = -min;
    for (int64_t pixel = 0; pixel < pixels_; ++pixel) {
      if (!is_finite(pixel)) continue;
      for (int64_t c = 0; c < channels_; ++c) {
        min = std::min(min, at(pixel, c));
        max = std::max(max, at(pixel, c));
      }
    }
    return affine_of(min, max);
  }

  const T* values_;
  const int64_t pixels_, channels_;
};

// A batch [images, height, width, channels].
class Images {
 public:
  Images(std::string_view tag, const Tensor& batch, std::span<const uint8_t> bad_color)
      : batch_(batch), bad_color_(bad_color) {
    check(tag);
    const auto& dims = batch.shape().dims();
    shape_ = Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
  }

  int64_t count() const { return batch_.shape().dim(0); }
  const Shape& shape() const { return shape_; }  // of one

  Tensor as_bytes(int64_t i) const {
    switch (batch_.dtype()) {
      case kFloat: return normalized<float>(i);
      case kDouble: return normalized<double>(i);
      case kHalf: return normalized<Half>(i);
      default: return Tensor::wrap(kUInt8, shape_, start<uint8_t>(i), batch_.owner());
    }
  }

 private:
  void check(std::string_view tag) const {
    const Shape& shape = batch_.shape();
    const bool is_batch = shape.rank() == 4 && (shape.dim(3) == 1 || shape.dim(3) == 3 || shape.dim(3) == 4);
    if (!is_batch) {
      refuse(tag, "images: Tensor must be 4-D with last dim 1, 3, or 4, not " + shape.to_string());
    }
    if (shape.dim(1) == 0 || shape.dim(2) == 0) refuse(tag, "the images have no pixels: " + shape.to_string());
    const DType dtype = batch_.dtype();
    if (dtype != kUInt8 && dtype != kFloat && dtype != kDouble && dtype != kHalf) {
      refuse(tag, fmt::format("images must be uint8, float, half or double, not {}", dtype_name(dtype)));
    }
    if (bad_color_.size() < static_cast<size_t>(shape.dim(3))) {
      refuse(tag, fmt::format("bad_color has {} values for images with {} channels", bad_color_.size(), shape.dim(3)));
    }
  }

  template <typename T>
  const T* start(int64_t i) const {
    return batch_.flat<T>().data() + i * shape_.num_elements();
  }

  template <typename T>
  Tensor normalized(int64_t i) const {
    Tensor image(kUInt8, shape_);
    const int64_t channels = shape_.dim(2);
    FloatImage<T>(start<T>(i), shape_.num_elements() / channels, channels)
        .normalize(bad_color_, image.mutable_flat<uint8_t>().data());
    return image;
  }

  const Tensor& batch_;
  const std::span<const uint8_t> bad_color_;
  Shape shape_;
};

}  // namespace

proto::Summary image_summary(std::string_view tag, const Tensor& images, int64_t max_outputs,
                             std::span<const uint8_t> bad_color) {
  summary_internal::check_max_outputs(tag, max_outputs);
  const Images batch(tag, images, bad_color);
  proto::Summary summary;
  for (int64_t i = 0; i < std::min(batch.count(), max_outputs); ++i) {
    const std::string output = summary_internal::output_tag(tag, "image", i, max_outputs);
    auto* image = summary_internal::add_value(summary, output)->mutable_image();
    image->set_height(static_cast<int32_t>(batch.shape().dim(0)));
    image->set_width(static_cast<int32_t>(batch.shape().dim(1)));
    image->set_colorspace(static_cast<int32_t>(batch.shape().dim(2)));
    image->set_encoded_image_string(encode_png(batch.as_bytes(i)));
  }
  return summary;
}

}  // namespace longhaul
