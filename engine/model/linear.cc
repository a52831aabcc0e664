// SPDX-License-Identifier: Apache-2.0
//
// The two precisions of a linear layer, side by side.
#include "engine/model/linear.h"

namespace lockstep::engine {

using audit::Precision;
using kernels::Out;
using kernels::Plain;
using kernels::Transposed;

LinearInput LinearInput::Carve(Carver& carver, Precision precision, int64_t tokens,
                               int64_t inputs) {
  LinearInput input;
  if (precision == Precision::kInt8) {
    input.q = carver.Take<int8_t>(tokens * inputs);
    input.step = carver.Take<float>(1);
  } else {
    input.x = carver.Take<BFloat16>(tokens * inputs);
  }
  return input;
}

void Linear::Carve(Carver& carver) {
  if (precision_ != Precision::kInt8) return;
  q_ = carver.Take<int8_t>(outputs_ * inputs_);
  step_ = carver.Take<float>(outputs_);
  clipped_ = carver.Take<int32_t>(outputs_);
  q_rotated_ = carver.Take<int8_t>(outputs_ * inputs_);
  scale_rotated_ = carver.Take<float>(inputs_);
}

void Linear::Prepare(Backend& backend, const ParametersView& parameters) const {
  if (precision_ != Precision::kInt8) return;
  backend.Run(kernels::PrepareLinearI8Args{.q = q_,
                                           .step = step_,
                                           .clipped = clipped_,
                                           .q_rotated = q_rotated_,
                                           .scale_rotated = scale_rotated_,
                                           .w = parameters[tensor_],
                                           .outputs = outputs_,
                                           .inputs = inputs_});
}

void Linear::TakeInput(Backend& backend, const LinearInput& input, const BFloat16* x,
                       int64_t tokens) const {
  if (precision_ != Precision::kInt8) return;
  backend.Run(kernels::QuantizeTensorArgs{
      .q = input.q, .step = input.step, .x = x, .count = tokens * inputs_});
}

void Linear::Forward(Backend& backend, const ParametersView& parameters, BFloat16* y,
                     const LinearInput& input, int64_t tokens) const {
  if (precision_ == Precision::kInt8) {
    backend.Run(kernels::LinearI8Args{.y = y,
                                      .xq = input.q,
                                      .x_step = input.step,
                                      .q = q_,
                                      .step = step_,
                                      .tokens = tokens,
                                      .outputs = outputs_,
                                      .inputs = inputs_});
    return;
  }
  backend.Run(kernels::GemmF32Args{.c = Out(y, outputs_),
                                   .a = Plain(input.x, inputs_),
                                   .b = Transposed(parameters[tensor_], inputs_),
                                   .m = tokens,
                                   .n = outputs_,
                                   .k = inputs_});
}

void Linear::InputGradient(Backend& backend, const ParametersView& parameters, BFloat16* dx,
                           const BFloat16* dy, int64_t tokens) const {
  if (precision_ == Precision::kInt8) {
    backend.Run(kernels::LinearI8InputGradientArgs{.dx = dx,
                                                   .dy = dy,
                                                   .q_rotated = q_rotated_,
                                                   .scale_rotated = scale_rotated_,
                                                   .tokens = tokens,
                                                   .outputs = outputs_,
                                                   .inputs = inputs_});
    return;
  }
  backend.Run(kernels::GemmF32Args{.c = Out(dx, inputs_),
                                   .a = Plain(dy, outputs_),
                                   .b = Plain(parameters[tensor_], inputs_),
                                   .m = tokens,
                                   .n = inputs_,
                                   .k = outputs_});
}

void Linear::WeightGradient(Backend& backend, const ParametersView& parameters, float* dw,
                            const BFloat16* dy, const LinearInput& input, int64_t tokens) const {
  if (precision_ == Precision::kInt8) {
    backend.Run(kernels::LinearI8WeightGradientArgs{.dw = dw,
                                                    .dy = dy,
                                                    .xq = input.q,
                                                    .x_step = input.step,
                                                    .w = parameters[tensor_],
                                                    .step = step_,
                                                    .clipped = clipped_,
                                                    .tokens = tokens,
                                                    .outputs = outputs_,
                                                    .inputs = inputs_});
    return;
  }
  backend.Run(kernels::GemmF32Args{.c = Out(dw, inputs_),
                                   .a = Transposed(dy, outputs_),
                                   .b = Plain(input.x, inputs_),
                                   .m = outputs_,
                                   .n = inputs_,
                                   .k = tokens});
}

}  // namespace lockstep::engine
