#include "services/worker/model/row_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "services/worker/model/row_kernels.cpp"
#include <hwy/foreach_target.h>

#include "services/worker/model/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ganymede::worker::model::kernels::HWY_NAMESPACE {

/// Calls f with the row pointers' element type.
template <class F>
HWY_INLINE auto with(Element element, F f) {
  return element == Element::fp32 ? f(static_cast<float*>(nullptr)) : f(static_cast<Bf16*>(nullptr));
}

template <class T>
float inverse_rms(const T* x, std::size_t n, float eps) {
  auto squares = hn::Zero(Tag());
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto v = load(x + i, n - i);
    squares = hn::MulAdd(v, v, squares);
  }
  return 1.0f / std::sqrt(sum(squares) / static_cast<float>(n) + eps);
}

template <class T>
void rms_norm_as(const T* x, const T* weight, T* y, std::size_t n, float eps) {
  const auto inverse = constant(inverse_rms(x, n, eps));
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto normal = round_like(x, hn::Mul(load(x + i, n - i), inverse));
    store(hn::Mul(load(weight + i, n - i), normal), y + i, n - i);
  }
}

template <class T>
void rms_norm_backward_as(const T* x, const T* weight, const T* grad_y, const T* residual, T* grad_x,
                          float* grad_weight, std::size_t n, float eps) {
  const auto inverse = constant(inverse_rms(x, n, eps));
  auto total = hn::Zero(Tag());
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto normal = hn::Mul(load(x + i, n - i), inverse);
    const auto grad = load(grad_y + i, n - i);
    total = hn::MulAdd(hn::Mul(load(weight + i, n - i), grad), normal, total);
    store(hn::MulAdd(grad, round_like(x, normal), load(grad_weight + i, n - i)), grad_weight + i, n - i);
  }
  const auto mean = constant(sum(total) / static_cast<float>(n));
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto normal = hn::Mul(load(x + i, n - i), inverse);
    const auto scaled = hn::Mul(load(weight + i, n - i), load(grad_y + i, n - i));
    auto grad = hn::Mul(inverse, hn::NegMulAdd(normal, mean, scaled));
    if (residual != nullptr) grad = hn::Add(load(residual + i, n - i), grad);
    store(grad, grad_x + i, n - i);
  }
}

template <class T>
void swiglu_as(const T* gate, const T* up, T* hidden, std::size_t n) {
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto g = load(gate + i, n - i);
    store(hn::Mul(hn::Mul(g, logistic(g)), load(up + i, n - i)), hidden + i, n - i);
  }
}

template <class T>
float swiglu_backward_as(T* gate, T* up, T* grad, float weight, std::size_t n) {
  const auto w = constant(weight);
  const auto one = constant(1.0f);
  auto total = hn::Zero(Tag());
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto g = load(gate + i, n - i);
    const auto u = load(up + i, n - i);
    const auto unweighted = load(grad + i, n - i);
    const auto s = logistic(g);
    const auto silu = hn::Mul(g, s);
    const auto hidden = hn::Mul(silu, u);
    total = hn::MulAdd(unweighted, hidden, total);
    const auto d = hn::Mul(w, unweighted);
    const auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
    store(hn::Mul(hn::Mul(d, u), slope), gate + i, n - i);
    store(hn::Mul(d, silu), up + i, n - i);
    store(hn::Mul(w, hidden), grad + i, n - i);
  }
  return sum(total);
}

template <class T>
void sum_rows_as(const T* base, const void* const* rows, const float* weights, std::size_t count, T* out,
                 std::size_t n) {
  for (std::size_t i = 0; i < n; i += lanes()) {
    auto total = hn::Zero(Tag());
    for (std::size_t k = 0; k < count; ++k) {
      const auto value = load(static_cast<const T*>(rows[k]) + i, n - i);
      total = weights != nullptr ? hn::MulAdd(constant(weights[k]), value, total) : hn::Add(value, total);
    }
    if (base != nullptr) total = hn::Add(load(base + i, n - i), total);
    store(total, out + i, n - i);
  }
}

template <class T>
void add_fp32_as(const T* base, const float* sum, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += lanes()) {
    auto total = hn::Add(load(sum + i, n - i), hn::Zero(Tag()));  // -0 becomes 0, as in sum_rows
    if (base != nullptr) total = hn::Add(load(base + i, n - i), total);
    store(total, out + i, n - i);
  }
}

template <class From, class To>
void convert_as(const From* x, To* out, std::size_t n, float scale) {
  const auto factor = constant(scale);
  for (std::size_t i = 0; i < n; i += lanes()) store(hn::Mul(load(x + i, n - i), factor), out + i, n - i);
}

template <class T>
void to_fp32_as(const T* x, float* out, std::size_t n, bool add) {
  for (std::size_t i = 0; i < n; i += lanes()) {
    const auto v = load(x + i, n - i);
    store(add ? hn::Add(load(out + i, n - i), v) : v, out + i, n - i);
  }
}

template <class From, class To>
void rotate_as(const From* x, To* out, const float* cos, const float* sin, float direction, std::size_t half,
               std::size_t n) {
  for (std::size_t i = 0; i < half; i += lanes()) {
    const std::size_t left = half - i;
    const auto c = load(cos + i, left);
    const auto s = hn::Mul(load(sin + i, left), constant(direction));
    const auto first = load(x + i, left);
    const auto second = load(x + half + i, left);
    store(hn::Sub(hn::Mul(first, c), hn::Mul(second, s)), out + i, left);
    store(hn::MulAdd(first, s, hn::Mul(second, c)), out + half + i, left);
  }
  const std::size_t rest = 2 * half;
  for (std::size_t i = rest; i < n; i += lanes()) store(load(x + i, n - i), out + i, n - i);
}

template <class T>
float dot_as(const T* a, const T* b, std::size_t n) {
  auto total = hn::Zero(Tag());
  for (std::size_t i = 0; i < n; i += lanes()) total = hn::MulAdd(load(a + i, n - i), load(b + i, n - i), total);
  return sum(total);
}

void RmsNorm(const void* x, const void* weight, void* y, std::size_t n, float eps, Element element) {
  with(element, [&]<class T>(T*) {
    rms_norm_as(static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<T*>(y), n, eps);
  });
}

void RmsNormBackward(const void* x, const void* weight, const void* grad_y, const void* residual, void* grad_x,
                     float* grad_weight, std::size_t n, float eps, Element element) {
  with(element, [&]<class T>(T*) {
    rms_norm_backward_as(static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<const T*>(grad_y),
                         static_cast<const T*>(residual), static_cast<T*>(grad_x), grad_weight, n, eps);
  });
}

void Swiglu(const void* gate, const void* up, void* hidden, std::size_t n, Element element) {
  with(element, [&]<class T>(T*) {
    swiglu_as(static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(hidden), n);
  });
}

float SwigluBackward(void* gate, void* up, void* grad, float weight, std::size_t n, Element element) {
  return with(element, [&]<class T>(T*) {
    return swiglu_backward_as(static_cast<T*>(gate), static_cast<T*>(up), static_cast<T*>(grad), weight, n);
  });
}

void SumRows(const void* base, const void* const* rows, const float* weights, std::size_t count, void* out,
             std::size_t n, Element element) {
  with(element,
       [&]<class T>(T*) { sum_rows_as(static_cast<const T*>(base), rows, weights, count, static_cast<T*>(out), n); });
}

void AddFp32(const void* base, const float* sum, void* out, std::size_t n, Element element) {
  with(element, [&]<class T>(T*) { add_fp32_as(static_cast<const T*>(base), sum, static_cast<T*>(out), n); });
}

void ToFp32(const void* x, float* out, std::size_t n, bool add, Element element) {
  with(element, [&]<class T>(T*) { to_fp32_as(static_cast<const T*>(x), out, n, add); });
}

void FromFp32(const float* x, void* out, std::size_t n, float scale, Element element) {
  with(element, [&]<class T>(T*) { convert_as(x, static_cast<T*>(out), n, scale); });
}

void ScaledToFp32(const void* x, float* out, std::size_t n, float scale, Element element) {
  with(element, [&]<class T>(T*) { convert_as(static_cast<const T*>(x), out, n, scale); });
}

void Rotate(const void* x, float* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
            Element element) {
  with(element, [&]<class T>(T*) { rotate_as(static_cast<const T*>(x), out, cos, sin, 1.0f, half, n); });
}

void RotateBack(const float* x, void* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
                Element element) {
  with(element, [&]<class T>(T*) { rotate_as(x, static_cast<T*>(out), cos, sin, -1.0f, half, n); });
}

void Sigmoid(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; i += lanes()) store(logistic(load(x + i, n - i)), x + i, n - i);
}

float Dot(const void* a, const void* b, std::size_t n, Element element) {
  return with(element, [&]<class T>(T*) { return dot_as(static_cast<const T*>(a), static_cast<const T*>(b), n); });
}

}  // namespace ganymede::worker::model::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ganymede::worker::model::kernels {

HWY_EXPORT(RmsNorm);
HWY_EXPORT(RmsNormBackward);
HWY_EXPORT(Swiglu);
HWY_EXPORT(SwigluBackward);
HWY_EXPORT(SumRows);
HWY_EXPORT(AddFp32);
HWY_EXPORT(ToFp32);
HWY_EXPORT(FromFp32);
HWY_EXPORT(ScaledToFp32);
HWY_EXPORT(Rotate);
HWY_EXPORT(RotateBack);
HWY_EXPORT(Sigmoid);
HWY_EXPORT(Dot);

void rms_norm(const void* x, const void* weight, void* y, std::size_t n, float eps, Element element) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, weight, y, n, eps, element);
}
void rms_norm_backward(const void* x, const void* weight, const void* grad_y, const void* residual, void* grad_x,
                       float* grad_weight, std::size_t n, float eps, Element element) {
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(x, weight, grad_y, residual, grad_x, grad_weight, n, eps, element);
}
void swiglu(const void* gate, const void* up, void* hidden, std::size_t n, Element element) {
  HWY_DYNAMIC_DISPATCH(Swiglu)(gate, up, hidden, n, element);
}
float swiglu_backward(void* gate, void* up, void* grad, float weight, std::size_t n, Element element) {
  return HWY_DYNAMIC_DISPATCH(SwigluBackward)(gate, up, grad, weight, n, element);
}
void sum_rows(const void* base, const void* const* rows, const float* weights, std::size_t count, void* out,
              std::size_t n, Element element) {
  HWY_DYNAMIC_DISPATCH(SumRows)(base, rows, weights, count, out, n, element);
}
void add_fp32(const void* base, const float* sum, void* out, std::size_t n, Element element) {
  HWY_DYNAMIC_DISPATCH(AddFp32)(base, sum, out, n, element);
}
void to_fp32(const void* x, float* out, std::size_t n, bool add, Element element) {
  HWY_DYNAMIC_DISPATCH(ToFp32)(x, out, n, add, element);
}
void from_fp32(const float* x, void* out, std::size_t n, float scale, Element element) {
  HWY_DYNAMIC_DISPATCH(FromFp32)(x, out, n, scale, element);
}
void scaled_to_fp32(const void* x, float* out, std::size_t n, float scale, Element element) {
  HWY_DYNAMIC_DISPATCH(ScaledToFp32)(x, out, n, scale, element);
}
void rotate(const void* x, float* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
            Element element) {
  HWY_DYNAMIC_DISPATCH(Rotate)(x, out, cos, sin, half, n, element);
}
void rotate_back(const float* x, void* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
                 Element element) {
  HWY_DYNAMIC_DISPATCH(RotateBack)(x, out, cos, sin, half, n, element);
}
void sigmoid(float* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(Sigmoid)(x, n); }
float dot(const void* a, const void* b, std::size_t n, Element element) {
  return HWY_DYNAMIC_DISPATCH(Dot)(a, b, n, element);
}

}  // namespace ganymede::worker::model::kernels
#endif
