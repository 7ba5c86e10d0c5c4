#include "common/step_protocol/snapshot_machine.h"
#include "tests/fault/protocol/model.h"

namespace ganymede::fault {
namespace {

using namespace step_protocol;

struct Reader {
  const Configuration& configuration;
  const State& state;
  int rank;
  std::vector<Move>& moves;
  const Cell& cell = state.cells[rank];

  bool mutated(Mutation mutation) const { return configuration.mutation == mutation; }
  Cell& move(const char* what) const { return add_move(moves, state, rank, what); }
  bool still_armed() const { return cell.snapshot == armed_word(cell.reader_step); }
  ReaderAt first() const { return mutated(Mutation::flag_before_read) ? ReaderAt::look : ReaderAt::read_first; }
  void rest(Cell& next) const {
    next.reader = ReaderAt::idle;
    next.reader_step = next.reader_chunk = next.reader_wrong = next.reader_flagged = 0;
    next.reader_value[0] = next.reader_value[1] = 0;
  }
  void begin(Cell& next, std::uint64_t step) const {
    next.reader = first();
    next.reader_step = static_cast<std::uint8_t>(step);
    next.reader_chunk = 0;
  }

  void start() const;
  void watch() const;
  void read() const;
  void look() const;
  void mark() const;
  void report() const;
  void end() const;
};

/// Rule 20, with the exception that the snapshot of the last step is done again: nothing will overwrite it.
void Reader::start() const {
  if (!is_armed(cell.snapshot)) return rest(move("reader: finds nothing to do"));
  std::uint64_t step = snapshot_step(cell.snapshot);
  const Record& record = cell.records[record_slot(configuration, static_cast<int>(step))];
  bool reported = cell.durable == step;
  bool last = record.step == step && record.stop_after != 0;
  if (!reported && (last || mutated(Mutation::no_cancel_after_restart))) {
    return begin(move("reader: does the snapshot again"), step);
  }
  Cell& next = move(reported ? "reader: ends what was reported" : "reader: cancels");
  next.snapshot = static_cast<std::uint8_t>(ended_word(step));
  rest(next);
}

void Reader::watch() const {
  if (is_armed(cell.snapshot)) begin(move("reader: begins"), snapshot_step(cell.snapshot));
}

void Reader::read() const {
  bool second = cell.reader == ReaderAt::read_second;
  Cell& next = move(second ? "reader: second half of a chunk" : "reader: first half of a chunk");
  next.reader_value[second ? 1 : 0] = cell.master[cell.reader_chunk][second ? 1 : 0];
  if (!second) {
    next.reader = ReaderAt::read_second;
  } else if (mutated(Mutation::flag_before_read)) {
    next.reader = cell.reader_flagged != 0 ? ReaderAt::image : ReaderAt::mark;
  } else {
    next.reader = ReaderAt::look;
  }
}

void Reader::look() const {
  int chunk = cell.reader_chunk;
  std::uint64_t flag =
      cell.image_step[chunk] == 0 ? 0 : image_flag_word(cell.image_step[chunk], cell.image_slot[chunk]);
  bool taken = image_taken(flag, cell.reader_step);
  Cell& next = move("reader: looks at the flag");
  if (mutated(Mutation::flag_before_read)) {
    next.reader_flagged = taken;
    next.reader = ReaderAt::read_first;
  } else {
    next.reader = taken ? ReaderAt::image : ReaderAt::mark;
  }
}

void Reader::mark() const {
  Cell& next = move("reader: marks the chunk");
  Content wanted = expected_content(state, cell.reader_step);
  next.reader_wrong |= cell.reader_value[0] != wanted || cell.reader_value[1] != wanted;
  next.read_mark[cell.reader_chunk] = cell.reader_step;
  next.reader_value[0] = next.reader_value[1] = 0;
  next.reader_flagged = 0;
  bool more = cell.reader_chunk + 1 < configuration.chunks;
  next.reader_chunk = static_cast<std::uint8_t>(more ? cell.reader_chunk + 1 : 0);
  next.reader = more ? first() : ReaderAt::report;
}

void Reader::report() const {
  bool reports = still_armed() || mutated(Mutation::no_check_before_report);
  Cell& next = move(reports ? "reader: reports the part" : "reader: drops a cancelled part");
  if (!reports) return rest(next);
  if (cell.reader_wrong != 0) throw Violation("a snapshot is reported that holds torn or newer chunks");
  next.durable = cell.reader_step;
  next.reader = ReaderAt::end;
}

void Reader::end() const {
  Cell& next = move("reader: ends the snapshot");
  if (still_armed()) next.snapshot = static_cast<std::uint8_t>(ended_word(cell.reader_step));
  rest(next);
}

}  // namespace

void reader_moves(const Configuration& configuration, const State& state, int rank, std::vector<Move>& moves) {
  Reader reader{configuration, state, rank, moves};
  switch (reader.cell.reader) {
    case ReaderAt::dead:
      return;
    case ReaderAt::starting:
      return reader.start();
    case ReaderAt::idle:
      return reader.watch();
    case ReaderAt::read_first:
    case ReaderAt::read_second:
      return reader.read();
    case ReaderAt::look:
      return reader.look();
    case ReaderAt::image: {
      Cell& next = reader.move("reader: takes the image");
      int chunk = reader.cell.reader_chunk;
      next.reader_value[0] = next.reader_value[1] = reader.cell.image[reader.cell.image_slot[chunk]];
      next.reader = ReaderAt::mark;
      return;
    }
    case ReaderAt::mark:
      return reader.mark();
    case ReaderAt::report:
      return reader.report();
    case ReaderAt::end:
      return reader.end();
  }
}

}  // namespace ganymede::fault
