#include "tests/fault/protocol/explorer.h"

#include <cstring>
#include <span>
#include <utility>

#include "common/base/error.h"
#include "common/base/hash.h"

namespace ganymede::fault {
namespace {

/// Set of 64-bit hashes, open addressing.
class Visited {
 public:
  /// True when the state was not there yet. Ranks are interchangeable: cells are sorted before hashing.
  bool add(State state, int ranks) {
    for (int end = ranks; end > 1; --end) {
      for (int rank = 1; rank < end; ++rank) {
        Cell &low = state.cells[rank - 1], &high = state.cells[rank];
        if (std::memcmp(&low, &high, sizeof(Cell)) > 0) std::swap(low, high);
      }
    }
    std::uint64_t hash = hash64(std::as_bytes(std::span(&state, 1))) | 1;
    if ((size_ + 1) * 2 > slots_.size()) grow();
    return insert(hash);
  }
  std::uint64_t size() const { return size_; }

 private:
  bool insert(std::uint64_t hash) {
    std::size_t mask = slots_.size() - 1;
    for (std::size_t at = (hash >> 1) & mask;; at = (at + 1) & mask) {
      if (slots_[at] == hash) return false;
      if (slots_[at] == 0) {
        slots_[at] = hash;
        ++size_;
        return true;
      }
    }
  }
  void grow() {
    std::vector<std::uint64_t> old(slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (std::uint64_t hash : old) {
      if (hash != 0) insert(hash);
    }
  }
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1 << 16);
  std::uint64_t size_ = 0;
};

struct Frame {
  const char* what;
  int rank;
  std::vector<Move> moves;
  std::size_t next = 0;
};

std::string trace_of(const std::vector<Frame>& path) {
  std::string text;
  for (const Frame& frame : path) text += fmt::format("  rank {} {}\n", frame.rank, frame.what);
  return text;
}

}  // namespace

Exploration explore(const Configuration& configuration, std::uint64_t most_states) {
  Exploration result;
  Visited visited;
  std::vector<Frame> path;
  auto enter = [&](const char* what, int rank, const State& state) {
    path.push_back({what, rank, {}, 0});
    all_moves(configuration, state, path.back().moves);
    if (path.back().moves.empty()) {
      ++result.ends;
      check_end(configuration, state);
    }
  };
  try {
    State start = first_state(configuration);
    visited.add(start, configuration.ranks);
    enter("start", 0, start);
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.next == frame.moves.size()) {
        path.pop_back();
        continue;
      }
      Move move = frame.moves[frame.next++];
      ++result.moves;
      if (!visited.add(move.state, configuration.ranks)) continue;
      if (visited.size() > most_states) throw Violation(fmt::format("more than {} states", most_states));
      enter(move.what, move.rank, move.state);
    }
  } catch (const std::runtime_error& error) {  // a Violation, or an Error of a production function
    result.violation = error.what();
    result.trace = trace_of(path);
  }
  result.states = visited.size();
  return result;
}

}  // namespace ganymede::fault
