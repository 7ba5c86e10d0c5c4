#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "tests/numerics/model/sample.h"

namespace ganymede::worker::model::testing {
namespace {

/// Places of one process: what place a sends to place b lies in mail[a][b] between two barriers.
struct Room {
  explicit Room(int places) : places(places), counts(places), rows(places), sync(places) {}
  const int places;
  std::vector<std::vector<std::int64_t>> counts;
  std::vector<std::vector<at::Tensor>> rows;
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

  at::Tensor rows(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    EXPECT_TRUE(rows.is_contiguous());
    room_.rows[at()] = rows.split_with_sizes(send_counts, 0);
    room_.rows_sent += rows.size(0);
    room_.sync.arrive_and_wait();
    std::vector<at::Tensor> received;
    for (const auto& from : room_.rows) received.push_back(from.at(at()));
    auto all = at::cat(received, 0);
    for (std::size_t p = 0; p < received.size(); ++p) EXPECT_EQ(received[p].size(0), receive_counts.at(p));
    room_.sync.arrive_and_wait();
    return all;
  }

 private:
  std::size_t at() const { return static_cast<std::size_t>(place_); }
  Room& room_;
  int place_;
};

Shape shape() {
  Shape s;
  s.documents = {31, 12};
  s.experts = 8;
  s.top_k = 3;
  return s;
}

at::Tensor input_of(int place) { return random_tensor({43, 24}, 200 + static_cast<std::uint64_t>(place)); }
at::Tensor grad_of(int place) { return random_tensor({43, 24}, 300 + static_cast<std::uint64_t>(place)); }

LayerTensors own_experts(LayerTensors weights, int place, int local) {
  const auto cut = [&](std::vector<at::Tensor>& experts) {
    experts = std::vector<at::Tensor>(experts.begin() + place * local, experts.begin() + (place + 1) * local);
  };
  cut(weights.expert_gate_up);
  cut(weights.expert_down);
  return weights;
}

std::vector<LayerResult> run_places(int places, const LayerTensors& weights, Room& room) {
  std::vector<LayerResult> results(static_cast<std::size_t>(places));
  std::vector<std::thread> threads;
  for (int place = 0; place < places; ++place) {
    threads.emplace_back([&, place] {
      const int local = 8 / places;
      Layer layer(shape());
      RoomExchange exchange(room, place);
      layer.context.exchange = &exchange;
      layer.context.first_expert = place * local;
      layer.context.local_experts = local;
      results[static_cast<std::size_t>(place)] =
          run_layer(layer.context, own_experts(weights, place, local), row_of(shape().documents, 64), input_of(place),
                    grad_of(place));
    });
  }
  for (auto& thread : threads) thread.join();
  return results;
}

class Exchange : public ::testing::TestWithParam<int> {};

TEST_P(Exchange, PlacesTogetherGiveWhatOnePlaceGives) {
  const int places = GetParam(), local = 8 / places;
  const auto weights = weights_of(shape());
  Room room(places);
  const auto results = run_places(places, weights, room);
  const Layer layer(shape());
  std::vector<LayerResult> alone;
  for (int place = 0; place < places; ++place) {
    const auto row = row_of(shape().documents, 64);
    alone.push_back(run_layer(layer.context, weights, row, input_of(place), grad_of(place)));
    const auto& result = results[static_cast<std::size_t>(place)];
    EXPECT_LE(relative_error(result.output, alone.back().output), 1e-6);
    EXPECT_LE(relative_error(result.grad_input, alone.back().grad_input), 1e-6);
    EXPECT_LE(relative_error(result.gradients.router, alone.back().gradients.router), 1e-6);
    EXPECT_LE(relative_error(result.gradients.q_proj, alone.back().gradients.q_proj), 1e-6);
  }
  for (int expert = 0; expert < 8; ++expert) {
    const auto e = static_cast<std::size_t>(expert), own = static_cast<std::size_t>(expert % local);
    auto gate_up = at::zeros_like(alone[0].gradients.expert_gate_up[e]);
    auto down = at::zeros_like(alone[0].gradients.expert_down[e]);
    for (const auto& result : alone) {
      gate_up.add_(result.gradients.expert_gate_up[e]);
      down.add_(result.gradients.expert_down[e]);
    }
    const auto& at_place = results[static_cast<std::size_t>(expert / local)].gradients;
    EXPECT_LE(relative_error(at_place.expert_gate_up[own], gate_up), 1e-6) << expert;
    EXPECT_LE(relative_error(at_place.expert_down[own], down), 1e-6) << expert;
  }
}

TEST_P(Exchange, TwoRunsHaveTheSameBits) {
  const auto weights = weights_of(shape());
  Room first(GetParam()), second(GetParam());
  const auto a = run_places(GetParam(), weights, first), b = run_places(GetParam(), weights, second);
  for (std::size_t place = 0; place < a.size(); ++place) {
    EXPECT_TRUE(same_bits(a[place].output, b[place].output));
    EXPECT_TRUE(same_bits(a[place].grad_input, b[place].grad_input));
    EXPECT_EQ(different_bits(a[place].gradients, b[place].gradients), "");
  }
}

TEST_P(Exchange, TokenIsSentToAPlaceOnceHoweverManyOfItsExpertsAreThere) {
  const int places = GetParam(), local = 8 / places;
  Room room(places);
  const auto results = run_places(places, weights_of(shape()), room);
  std::int64_t pairs = 0;
  for (const auto& result : results) {
    for (std::int64_t t = 0; t < 43; ++t) {
      std::set<std::int64_t> to;
      for (std::int64_t k = 0; k < 3; ++k) to.insert(result.saved.expert_indices[t][k].item<std::int64_t>() / local);
      pairs += static_cast<std::int64_t>(to.size());
    }
  }
  // Forward: rows and choices out, rows back. Recomputation: rows and choices out. Backward: gradients out; gradients
  // of rows and of weights back.
  EXPECT_EQ(room.rows_sent, pairs * 8);
}

INSTANTIATE_TEST_SUITE_P(Places, Exchange, ::testing::Values(2, 4),
                         [](const auto& tested) { return std::to_string(tested.param); });

}  // namespace
}  // namespace ganymede::worker::model::testing
