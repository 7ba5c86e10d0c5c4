#pragma once

#include <cstddef>

/// Arithmetic on single rows, in fp32, over rows stored as fp32 or bf16. Vector instructions are chosen at run time.
/// A row's result depends on nothing but that row, so splitting rows between threads never changes a bit. That does
/// not hold for ATen's exp and sigmoid, which treat the end of each thread's share with other code than the rest.
namespace ganymede::worker::model::kernels {

enum class Element { fp32, bf16 };

/// y = weight · round(x / sqrt(mean(x²) + eps)), rounded to the element type before the multiplication by the weight.
void rms_norm(const void* x, const void* weight, void* y, std::size_t n, float eps, Element element);

/// grad_x = residual (if not null) + the gradient through rms_norm of grad_y; grad_weight (fp32) is added to.
void rms_norm_backward(const void* x, const void* weight, const void* grad_y, const void* residual, void* grad_x,
                       float* grad_weight, std::size_t n, float eps, Element element);

/// hidden = silu(gate) · up.
void swiglu(const void* gate, const void* up, void* hidden, std::size_t n, Element element);

/// For loss gradient `weight · grad` of hidden: gate and up are replaced by their gradients, grad by weight · hidden.
/// Returns the sum of grad · hidden, which is the gradient of `weight`.
float swiglu_backward(void* gate, void* up, void* grad, float weight, std::size_t n, Element element);

/// out = base (if not null) + Σ weights[i] · rows[i], summed in order of i; weights null: all 1. count may be 0.
void sum_rows(const void* base, const void* const* rows, const float* weights, std::size_t count, void* out,
              std::size_t n, Element element);

/// out = base (if not null) + sum, which is fp32: what sum_rows gives when it makes the sum itself.
void add_fp32(const void* base, const float* sum, void* out, std::size_t n, Element element);

/// out = x, or out += x.
void to_fp32(const void* x, float* out, std::size_t n, bool add, Element element);
/// out = x · scale.
void from_fp32(const float* x, void* out, std::size_t n, float scale, Element element);
/// out (fp32) = x · scale.
void scaled_to_fp32(const void* x, float* out, std::size_t n, float scale, Element element);

/// Rotates pairs (i, i + half) of the first 2·half elements by the angle with cosine cos[i] and sine sin[i]; copies
/// the other elements.
void rotate(const void* x, float* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
            Element element);
/// The inverse rotation, which is also the backward of `rotate`.
void rotate_back(const float* x, void* out, const float* cos, const float* sin, std::size_t half, std::size_t n,
                 Element element);

/// x = 1 / (1 + e^-x).
void sigmoid(float* x, std::size_t n);

/// Σ a · b.
float dot(const void* a, const void* b, std::size_t n, Element element);

}  // namespace ganymede::worker::model::kernels
