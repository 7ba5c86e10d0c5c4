#pragma once

#include "services/worker/model/experts.h"

/// Rows travel to the places of their experts and back. A row goes to a place once, however many of its experts are
/// there. With one place nothing moves and nothing is copied.
namespace ganymede::worker::model {

/// Which rows went where.
struct Dispatch {
  std::vector<std::int64_t> sent;      // rows sent to each place
  std::vector<std::int64_t> received;  // rows received from each place
  std::vector<std::int32_t> token;     // of each sent row, in order of place, then of token
};

/// The experts' input at this place for rows [T, H] with their indices and weights [T, K].
ExpertInput dispatch(ExpertExchange& exchange, std::int64_t first_expert, std::int64_t local_experts,
                     const at::Tensor& rows, const at::Tensor& indices, const at::Tensor& weights, Dispatch& plan);

/// Sends rows [T, C] to where their tokens went: [n, C].
at::Tensor send_again(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows);

/// Takes one row back for each row that came here ([n, C]) and sums over the places in their order: [T, C], plus
/// `base` if it is defined.
at::Tensor combine(ExpertExchange& exchange, const Dispatch& plan, std::int64_t tokens, const at::Tensor& rows,
                   const at::Tensor& base);

}  // namespace ganymede::worker::model
