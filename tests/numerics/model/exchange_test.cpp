#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <thread>

#include "common/placement/expert_range.h"
#include "services/worker/model/expert_dispatch.h"
#include "services/worker/model/layer_parts.h"
#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

/// Places of one process: what each has for the others lies here between two barriers.
struct Room {
  explicit Room(int places) : places(places), counts(places), rows(places), sync(places) {}
  const int places;
  std::vector<std::vector<std::int64_t>> counts;
  std::vector<std::vector<at::Tensor>> rows;  // by place, for each place
  std::barrier<> sync;
  std::atomic<std::int64_t> rows_sent{0};
};

class RoomExchange : public ExpertExchange {
 public:
  RoomExchange(Room& room, int place) : room_(room), place_(place) {}
  int size() const override { return room_.places; }
  int place() const override { return place_; }

  std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) override {
    room_.counts[at()] = send_counts;
    room_.sync.arrive_and_wait();
    std::vector<std::int64_t> received;
    for (const auto& from : room_.counts) received.push_back(from.at(at()));
    room_.sync.arrive_and_wait();
    return received;
  }

  void rows(const at::Tensor& from, const std::vector<std::int64_t>& send_counts, const at::Tensor& to,
            const std::vector<std::int64_t>& receive_counts, Way) override {
    EXPECT_TRUE(from.is_contiguous() && to.is_contiguous());
    room_.rows_sent += from.size(0);
    const auto received = swap(from.split_with_sizes(send_counts, 0));
    for (std::size_t p = 0; p < received.size(); ++p) EXPECT_EQ(received[p].size(0), receive_counts.at(p));
    to.copy_(at::cat(received, 0));
  }

  void gather(const at::Tensor& own, const at::Tensor& all) override {
    room_.rows_sent += own.size(0) * size();
    all.copy_(at::cat(swap(std::vector<at::Tensor>(room_.rows.size(), own)), 0));
  }

  void sum(const at::Tensor& parts, const at::Tensor& sum) override {
    room_.rows_sent += parts.size(0);
    const auto received = swap(parts.chunk(size(), 0));
    sum.copy_(received.front().to(at::kFloat));
    for (std::size_t p = 1; p < received.size(); ++p) sum.add_(received[p].to(at::kFloat));
  }

 private:
  std::size_t at() const { return static_cast<std::size_t>(place_); }
  /// Copies of what each place has for this one.
  std::vector<at::Tensor> swap(std::vector<at::Tensor> parts) {
    room_.rows[at()] = std::move(parts);
    room_.sync.arrive_and_wait();
    std::vector<at::Tensor> received;
    for (const auto& from : room_.rows) received.push_back(from.at(at()).clone());
    room_.sync.arrive_and_wait();
    return received;
  }
  Room& room_;
  int place_;
};

constexpr std::int64_t tokens = 43, hidden = 24;
constexpr int experts_in_all = 8;

/// Tokens go everywhere by the router's choice (4 groups of 2), or wherever it likes.
Shape shape(bool groups) {
  Shape s;
  s.documents = {31, 12};
  s.experts = experts_in_all;
  s.top_k = groups ? 4 : 3;
  s.groups = groups ? 4 : 1;
  return s;
}

at::Tensor input_of(int place) { return random_tensor({tokens, hidden}, 200 + static_cast<std::uint64_t>(place)); }
at::Tensor grad_of(int place) { return random_tensor({tokens, hidden}, 300 + static_cast<std::uint64_t>(place)); }

/// A layer in parts with what travels between them, with buffers that hold old values.
struct Parts {
  const LayerContext& context;
  RoomExchange& exchange;
  const LayerTensors& weights;
  bool even;
  Row row;
  std::int64_t top_k = context.spec->top_k;

  at::Tensor old(std::int64_t rows, std::int64_t columns, at::ScalarType type) const {
    return at::full({rows, columns}, 7, type);
  }

  Dispatch dispatch(const OwnRows& own, ReceivedRows& received) const {
    const std::int64_t most = tokens * exchange.size();
    auto route = plan_dispatch(exchange, own.choices, experts_in_all, even);
    received.rows = old(most, hidden, own.rows.scalar_type()).narrow(0, 0, route.received_rows());
    received.choices = old(most, 2 * top_k, at::kInt).narrow(0, 0, route.received_rows());
    send(exchange, route, own.rows, old(most, hidden, own.rows.scalar_type()), received.rows);
    send(exchange, route, own.choices, old(most, 2 * top_k, at::kInt), received.choices);
    return route;
  }

  at::Tensor back(const Dispatch& route, const at::Tensor& rows, const at::Tensor& base) const {
    const auto type = even ? at::kFloat : rows.scalar_type();
    auto out = old(tokens, rows.size(1), rows.scalar_type());
    bring_back(exchange, route, rows, old(even ? tokens : tokens * exchange.size(), rows.size(1), type), base, out);
    return out;
  }

  LayerResult run(const at::Tensor& input, const at::Tensor& grad) const {
    const auto type = input.scalar_type();
    LayerResult result;
    result.expert_counts.resize(experts_in_all);
    result.saved.input = input;
    OwnRows own{old(tokens, hidden, type), old(tokens, 2 * top_k, at::kInt)};
    ReceivedRows received;
    const auto middle = old(tokens, hidden, type);
    forward_attention(context, weights, row, input, middle, own, &result.saved, result.expert_counts.data());
    auto route = dispatch(own, received);
    forward_experts(context, weights, received, received.rows);
    result.output = back(route, received.rows, middle);

    result.gradients = filled_like(weights, 7);
    const auto recomputed = recompute_attention(context, weights, row, result.saved, own);
    route = dispatch(own, received);
    own.rows.fill_(7);  // nothing refers to it any more
    auto grad_rows = old(route.received_rows(), hidden, type),
         grad_weights = old(route.received_rows(), top_k, at::kFloat);
    send(exchange, route, grad, old(tokens * exchange.size(), hidden, type), grad_rows);
    backward_experts(context, weights, result.gradients, received, grad_rows, grad_weights, false);
    result.grad_input = backward_attention(context, weights, result.gradients, row, *recomputed, grad,
                                           back(route, grad_rows, {}), back(route, grad_weights, {}), false);
    return result;
  }
};

LayerTensors own_experts(LayerTensors weights, const placement::ExpertRange& own) {
  const auto cut = [&](std::vector<at::Tensor>& experts) {
    experts = std::vector<at::Tensor>(experts.begin() + own.first, experts.begin() + own.first + own.count);
  };
  cut(weights.expert_gate_up);
  cut(weights.expert_down);
  return weights;
}

/// `even`: the form of the exchange; it needs the groups.
std::vector<LayerResult> run_places(int places, const LayerTensors& weights, Room& room, bool groups, bool even,
                                    at::ScalarType type = at::kFloat) {
  std::vector<LayerResult> results(static_cast<std::size_t>(places));
  std::vector<std::thread> threads;
  for (int place = 0; place < places; ++place) {
    threads.emplace_back([&, place] {
      const auto range = placement::experts_of_place(experts_in_all, places, place);
      Layer layer(shape(groups));
      RoomExchange exchange(room, place);
      layer.context.first_expert = range.first;
      layer.context.local_experts = range.count;
      const auto own = converted(own_experts(weights, range), type);
      const Parts parts{layer.context, exchange, own, even, row_of(shape(groups).documents, 64)};
      results[static_cast<std::size_t>(place)] = parts.run(input_of(place).to(type), grad_of(place).to(type));
    });
  }
  for (auto& thread : threads) thread.join();
  return results;
}

struct Form {
  int places;
  bool groups, even;
};

class Exchange : public ::testing::TestWithParam<Form> {};

TEST_P(Exchange, PlacesTogetherGiveWhatOnePlaceGives) {
  const auto [places, groups, even] = GetParam();
  const auto weights = weights_of(shape(groups));
  Room room(places);
  const auto results = run_places(places, weights, room, groups, even);
  const Layer layer(shape(groups));
  std::vector<LayerResult> alone;
  for (int place = 0; place < places; ++place) {
    const auto row = row_of(shape(groups).documents, 64);
    alone.push_back(run_layer(layer.context, weights, row, input_of(place), grad_of(place)));
    const auto& result = results[static_cast<std::size_t>(place)];
    EXPECT_LE(relative_error(result.output, alone.back().output), 1e-6);
    EXPECT_LE(relative_error(result.grad_input, alone.back().grad_input), 1e-6);
    EXPECT_LE(relative_error(result.gradients.router, alone.back().gradients.router), 1e-6);
    EXPECT_LE(relative_error(result.gradients.q_proj, alone.back().gradients.q_proj), 1e-6);
    EXPECT_EQ(result.expert_counts, alone.back().expert_counts);
  }
  for (int expert = 0; expert < experts_in_all; ++expert) {
    const int place = placement::place_of_expert(experts_in_all, places, expert);
    const auto e = static_cast<std::size_t>(expert);
    const auto own = e - static_cast<std::size_t>(placement::experts_of_place(experts_in_all, places, place).first);
    auto gate_up = at::zeros_like(alone[0].gradients.expert_gate_up[e]);
    auto down = at::zeros_like(alone[0].gradients.expert_down[e]);
    for (const auto& result : alone) {
      gate_up.add_(result.gradients.expert_gate_up[e]);
      down.add_(result.gradients.expert_down[e]);
    }
    const auto& at_place = results[static_cast<std::size_t>(place)].gradients;
    EXPECT_LE(relative_error(at_place.expert_gate_up[own], gate_up), 1e-6) << expert;
    EXPECT_LE(relative_error(at_place.expert_down[own], down), 1e-6) << expert;
  }
}

void expect_same_bits(const std::vector<LayerResult>& a, const std::vector<LayerResult>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t place = 0; place < a.size(); ++place) {
    EXPECT_TRUE(same_bits(a[place].output, b[place].output));
    EXPECT_TRUE(same_bits(a[place].grad_input, b[place].grad_input));
    EXPECT_EQ(different_bits(a[place].gradients, b[place].gradients), "");
  }
}

TEST_P(Exchange, TwoRunsHaveTheSameBits) {
  const auto [places, groups, even] = GetParam();
  const auto weights = weights_of(shape(groups));
  Room first(places), second(places);
  expect_same_bits(run_places(places, weights, first, groups, even), run_places(places, weights, second, groups, even));
}

TEST_P(Exchange, TokenIsSentToAPlaceOnceHoweverManyOfItsExpertsAreThere) {
  const auto [places, groups, even] = GetParam();
  Room room(places);
  const auto results = run_places(places, weights_of(shape(groups)), room, groups, even);
  std::int64_t pairs = 0;
  for (const auto& result : results) {
    const auto& indices = result.saved.expert_indices;
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::set<int> to;
      for (std::int64_t k = 0; k < indices.size(1); ++k)
        to.insert(placement::place_of_expert(experts_in_all, places, indices[t][k].item<int>()));
      pairs += static_cast<std::int64_t>(to.size());
    }
  }
  // Forward: rows and choices out, rows back. Recomputation: rows and choices out. Backward: gradients out; gradients
  // of rows and of weights back.
  EXPECT_EQ(room.rows_sent, pairs * 8);
}

INSTANTIATE_TEST_SUITE_P(Forms, Exchange,
                         ::testing::Values(Form{2, false, false}, Form{4, false, false}, Form{3, false, false},
                                           Form{5, false, false}, Form{3, true, false}, Form{2, true, false},
                                           Form{2, true, true}, Form{4, true, true}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.places) + (tested.param.groups ? "Groups" : "") +
                                  (tested.param.even ? "Even" : "Uneven");
                         });

TEST(ExchangeForms, GiveTheSameBitsForTheSameRoutes) {
  const auto weights = weights_of(shape(true));
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int places : {1, 2, 4}) {
      Room even(places), uneven(places);
      expect_same_bits(run_places(places, weights, even, true, true, type),
                       run_places(places, weights, uneven, true, false, type));
    }
  }
}

/// Every choice falls on one place: it receives all rows of all places, and nothing is dropped.
TEST(ExchangeForms, APlaceThatNobodyChoosesAndOneThatEverybodyChooses) {
  auto weights = weights_of(shape(false));
  weights.selection_bias = at::tensor({9.f, 9.f, 9.f, 9.f, 0.f, 0.f, 0.f, 0.f});
  Room room(2);
  const auto results = run_places(2, weights, room, false, false);
  const Layer layer(shape(false));
  for (int place = 0; place < 2; ++place) {
    const auto alone =
        run_layer(layer.context, weights, row_of(shape(false).documents, 64), input_of(place), grad_of(place));
    EXPECT_LE(relative_error(results[static_cast<std::size_t>(place)].output, alone.output), 1e-6);
    EXPECT_LE(relative_error(results[static_cast<std::size_t>(place)].grad_input, alone.grad_input), 1e-6);
  }
  EXPECT_EQ(results[1].gradients.expert_down[0].abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace ganymede::worker::model::testing
