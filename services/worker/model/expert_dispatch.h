#pragma once

#include "services/worker/model/expert_exchange.h"

/// Rows travel to the places of their experts and back, a row to a place once, however many of its experts are there.
/// T = tokens of a row of text, C = columns, S = rows that a place sends, N = rows that it receives, itself among the
/// places. The form of the exchange changes no bit. The calling thread computes alone: others compute beside it.
namespace ganymede::worker::model {

/// Which rows went where. Even: all tokens to all places.
struct Dispatch {
  bool even = false;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> sent;      // rows sent to each place
  std::vector<std::int64_t> received;  // rows received from each place
  std::vector<std::int32_t> token;     // uneven: of each sent row, in order of place, then of token

  std::int64_t sent_rows() const;
  std::int64_t received_rows() const;
};

/// What travels with the rows: int32 [T, 2K], the experts of a token and the bits of their weights.
void pack_choices(const at::Tensor& indices, const at::Tensor& weights, const at::Tensor& choices);
/// The two halves, copied: int32 [n, K] and fp32 [n, K].
at::Tensor indices_of(const at::Tensor& choices);
at::Tensor routing_of(const at::Tensor& choices);

/// Where the tokens with these choices of a layer's `experts` go; places are asked for what they send unless the form
/// is even.
Dispatch plan_dispatch(ExpertExchange& exchange, const at::Tensor& choices, int experts, bool even);

/// Sends rows [T, C] to where their tokens go, into `to` [N, C] there. Uneven: by way of `staged` ([≥ S, C]).
void send(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows, const at::Tensor& staged,
          const at::Tensor& to);

/// Takes one row back for each row that came here (`rows` [N, C]); `out` [T, C] becomes their sum over the places in
/// order, made in fp32, plus `base` if it is defined. By way of `returned`: uneven [≥ S, C]; even fp32 [T, C].
void bring_back(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows, const at::Tensor& returned,
                const at::Tensor& base, const at::Tensor& out);

}  // namespace ganymede::worker::model
