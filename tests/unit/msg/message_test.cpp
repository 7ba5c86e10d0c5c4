#include "common/msg/message.h"

#include <gmock/gmock.h>

#include <cstring>

#include "common/base/error.h"

namespace ganymede::msg {
namespace {

using testing::HasSubstr;

Message heartbeat(const std::string& detail) {
  return Message::build(7, 42, [&](auto& builder) {
    auto text = builder.CreateString(detail);
    return Message::body(
        fbs::CreateHeartbeat(builder, fbs::ServiceKind::data, 3, 1234, fbs::ServiceState::running, 99, 17, text));
  });
}

std::vector<std::byte> copy(const Message& message) { return {message.bytes().begin(), message.bytes().end()}; }

std::string error_of(std::span<const std::byte> bytes) {
  try {
    Message::parse(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Message, WhatWasBuiltIsRead) {
  Message read = Message::parse(heartbeat("gather").bytes());
  EXPECT_EQ(read.envelope().job(), 7u);
  EXPECT_EQ(read.envelope().id(), 42u);
  ASSERT_NE(read.as<fbs::Heartbeat>(), nullptr);
  EXPECT_EQ(read.as<fbs::Heartbeat>()->detail()->str(), "gather");
  EXPECT_EQ(read.as<fbs::Register>(), nullptr);
}

TEST(Message, StaysValidWhenItIsMoved) {
  Message first = heartbeat(std::string(1000, 'x'));
  Message second = std::move(first);
  EXPECT_EQ(second.as<fbs::Heartbeat>()->detail()->size(), 1000u);
}

TEST(Message, TruncatedAtAnyByteIsAnError) {
  std::vector<std::byte> bytes = copy(heartbeat("gather"));
  // The last byte is padding behind the text's end: without it nothing is missing.
  for (std::size_t size = 0; size + 1 < bytes.size(); ++size) {
    EXPECT_THROW(Message::parse({bytes.data(), size}), Error) << size;
  }
}

TEST(Message, AtAnOddAddressIsReadAllTheSame) {
  std::vector<std::byte> bytes = copy(heartbeat("gather"));
  for (std::size_t shift = 1; shift < 8; ++shift) {
    std::vector<std::byte> shifted(shift + bytes.size());
    std::memcpy(shifted.data() + shift, bytes.data(), bytes.size());
    Message read = Message::parse({shifted.data() + shift, bytes.size()});
    EXPECT_EQ(read.as<fbs::Heartbeat>()->progress(), 99u);
  }
}

TEST(Message, LongerThanAllowedIsRefusedUnseen) {
  std::vector<std::byte> bytes(largest_message + 1);
  EXPECT_THAT(error_of(bytes), HasSubstr("longer than"));
  EXPECT_THROW(heartbeat(std::string(largest_message, 'x')), Error);
}

TEST(Message, OfNoKindOrOfOneFromTheFutureIsRefused) {
  for (int type : {0, static_cast<int>(fbs::Body::MAX) + 1, 255}) {
    flatbuffers::FlatBufferBuilder builder;
    auto body = fbs::CreateAck(builder).Union();
    fbs::FinishEnvelopeBuffer(builder, fbs::CreateEnvelope(builder, 1, 2, static_cast<fbs::Body>(type), body));
    std::span<const std::uint8_t> raw(builder.GetBufferPointer(), builder.GetSize());
    EXPECT_THAT(error_of(std::as_bytes(raw)), testing::AnyOf(HasSubstr("unknown kind"), HasSubstr("damaged"))) << type;
  }
}

TEST(Message, AnEnumOutOfRangeIsRefused) {
  std::vector<std::byte> bytes = copy(heartbeat("gather"));
  const auto* envelope = fbs::GetEnvelope(bytes.data());
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(envelope->body_as_Heartbeat());
  auto* service = const_cast<std::uint8_t*>(table->GetAddressOf(fbs::Heartbeat::VT_SERVICE));
  *service = static_cast<std::uint8_t>(fbs::ServiceKind::MAX) + 1;
  EXPECT_THAT(error_of(bytes), HasSubstr("Heartbeat has an enum value out of range"));
}

TEST(Message, WithoutATextThatItNeedsIsRefused) {
  flatbuffers::FlatBufferBuilder builder;
  auto start = builder.StartTable();
  builder.AddElement<std::int32_t>(fbs::FatalReport::VT_RANK, 1, 0);
  flatbuffers::Offset<void> body(builder.EndTable(start));
  fbs::FinishEnvelopeBuffer(builder, fbs::CreateEnvelope(builder, 1, 2, fbs::Body::FatalReport, body));
  std::span<const std::uint8_t> raw(builder.GetBufferPointer(), builder.GetSize());
  EXPECT_THAT(error_of(std::as_bytes(raw)), HasSubstr("damaged"));
}

TEST(Message, AListThatRefersToItselfOverAndOverIsBoundedWork) {
  // One list whose 2,000,000 elements are all the same table: small on the wire, large for a verifier without bounds.
  flatbuffers::FlatBufferBuilder builder;
  auto lane = fbs::CreateLaneTime(builder, builder.CreateString("x"), 1);
  std::vector<flatbuffers::Offset<fbs::LaneTime>> lanes(2'000'000, lane);
  auto list = builder.CreateVector(lanes);
  auto waits = builder.CreateVector(std::vector<flatbuffers::Offset<fbs::LaneTime>>());
  auto named = builder.CreateVector(std::vector<flatbuffers::Offset<fbs::Named>>());
  auto traffic = builder.CreateVector(std::vector<flatbuffers::Offset<fbs::TrafficLine>>());
  auto skipped = builder.CreateString("");
  fbs::StepReportBuilder report(builder);
  report.add_skip_text(skipped);
  report.add_traffic(traffic);
  report.add_lanes(list);
  report.add_waits(waits);
  report.add_bytes_moved(named);
  report.add_memory(named);
  auto body = report.Finish().Union();
  fbs::FinishEnvelopeBuffer(builder, fbs::CreateEnvelope(builder, 1, 2, fbs::Body::StepReport, body));
  std::span<const std::uint8_t> raw(builder.GetBufferPointer(), builder.GetSize());
  ASSERT_LE(raw.size(), largest_message);
  EXPECT_THAT(error_of(std::as_bytes(raw)), HasSubstr("damaged"));
}

TEST(Message, RepliesRepeatJobAndIdOfTheRequest) {
  Message request = heartbeat("x");
  EXPECT_EQ(ack(request).envelope().id(), 42u);
  Message no = refused(request, 2, "not you");
  EXPECT_EQ(no.envelope().job(), 7u);
  EXPECT_EQ(no.as<fbs::Refused>()->exit_code(), 2);
  EXPECT_EQ(no.as<fbs::Refused>()->text()->str(), "not you");
}

}  // namespace
}  // namespace ganymede::msg
