#include "common/collectives/shm/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::collectives {
namespace {

std::size_t extent(const Runs& runs) { return runs.back().offset + runs.back().bytes - runs.front().offset; }

}  // namespace

bool OutgoingStream::carries(const Outgoing& message) const {
  auto same = [](const Run& a, const Run& b) { return a.offset == b.offset && a.bytes == b.bytes; };
  return message.base == base_ &&
         std::equal(runs_.begin(), runs_.end(), message.runs.begin(), message.runs.end(), same);
}

void OutgoingStream::start(Channel& channel, std::span<std::byte> staging) {
  MessageSlot message{.sequence = channel.sequence(), .bytes = bytes_};
  if (auto place = channel.port().locate(base_ + runs_.front().offset, extent(runs_))) {
    message.region = place->region;
    message.offset = place->offset;
    pieces_ = filled_ = 1;
  } else {
    slot_bytes_ = staging.size() / 2 / 64 * 64;
    slots_ = staging;
    message.region = channel.port().channels_region();
    message.offset =
        channel.own().staging_offset + static_cast<std::size_t>(staging.data() - channel.own().staging.data());
    message.slot_bytes = slot_bytes_;
    pieces_ = (bytes_ + slot_bytes_ - 1) / slot_bytes_;
  }
  for (int reader : readers_) {
    taken_at_start_.push_back(channel.filled_for(reader));
    channel.message_to(reader) = message;
    if (slot_bytes_ == 0) channel.count_filled(reader);
  }
}

bool OutgoingStream::advance(Channel& channel) {
  if (filled_ == pieces_) return false;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    // The slot held the piece before the last one.
    if (filled_ >= 2 && channel.taken_by(readers_[i]) < taken_at_start_[i] + filled_ - 1) return false;
  }
  std::size_t begin = filled_ * slot_bytes_;
  copy_out(begin, slots_.subspan(filled_ % 2 * slot_bytes_, std::min(slot_bytes_, bytes_ - begin)));
  ++filled_;
  for (int reader : readers_) channel.count_filled(reader);
  return true;
}

void OutgoingStream::copy_out(std::size_t begin, std::span<std::byte> to) const {
  for (const Run& run : runs_) {
    if (to.empty()) return;
    if (begin >= run.bytes) {
      begin -= run.bytes;
      continue;
    }
    std::size_t count = std::min(run.bytes - begin, to.size());
    std::memcpy(to.data(), base_ + run.offset + begin, count);
    to = to.subspan(count);
    begin = 0;
  }
}

bool OutgoingStream::complete(const Channel& channel) const {
  if (filled_ < pieces_) return false;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    if (channel.taken_by(readers_[i]) < taken_at_start_[i] + pieces_) return false;
  }
  return true;
}

void OutgoingStream::append_waiting(const Channel& channel, std::vector<int>& peers) const {
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    if (channel.taken_by(readers_[i]) < taken_at_start_[i] + pieces_) peers.push_back(readers_[i]);
  }
}

void IncomingStream::open(Channel& channel) {
  const MessageSlot message = channel.message_from(peer_);
  int rank = channel.rank_of(peer_);
  if (message.sequence != channel.sequence() || message.bytes != bytes_) {
    throw CollectiveError(
        fmt::format("group {}: rank {} sends {} bytes in its operation {} where {} bytes are expected in operation {}",
                    channel.name(), rank, message.bytes, message.sequence, bytes_, channel.sequence()));
  }
  std::span<const std::byte> region = channel.port().peer(rank, message.region);
  std::size_t needed = message.slot_bytes == 0 ? extent(runs_) : 2 * message.slot_bytes;
  if (message.offset > region.size() || needed > region.size() - message.offset) {
    throw CollectiveError(fmt::format("group {}: rank {} names {} bytes at {} of its region {}, which has {} bytes",
                                      channel.name(), rank, needed, message.offset, message.region, region.size()));
  }
  memory_ = region.data() + message.offset;
  slot_bytes_ = message.slot_bytes;
  open_ = true;
}

ConstBytes IncomingStream::view(Channel& channel) {
  if (complete() || !channel.has_piece(peer_)) return {};
  if (!open_) open(channel);
  if (slot_bytes_ != 0) {
    std::size_t piece = cursor_ / slot_bytes_, within = cursor_ % slot_bytes_;
    std::size_t end = std::min(bytes_, (piece + 1) * slot_bytes_);
    return {memory_ + piece % 2 * slot_bytes_ + within, end - cursor_};
  }
  while (cursor_ - run_begin_ >= runs_[run_].bytes) run_begin_ += runs_[run_++].bytes;
  std::size_t within = cursor_ - run_begin_;
  return {memory_ + runs_[run_].offset - runs_.front().offset + within, runs_[run_].bytes - within};
}

void IncomingStream::consume(Channel& channel, std::size_t count) {
  cursor_ += count;
  bool piece_ends = complete() || (slot_bytes_ != 0 && cursor_ % slot_bytes_ == 0);
  if (count > 0 && piece_ends) channel.count_taken(peer_);
}

}  // namespace ganymede::collectives
