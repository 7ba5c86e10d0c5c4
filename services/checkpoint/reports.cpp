#include "services/checkpoint/reports.h"

#include "common/base/error.h"

namespace ganymede::checkpoint {
namespace {

constexpr double answer_seconds = 60;  // a launcher that is stopped or busy for so long is a fault

class LauncherReports : public Reports {
 public:
  LauncherReports(std::unique_ptr<msg::Client> client, int rank) : client_(std::move(client)), rank_(rank) {}

  Receipt part_durable(std::uint64_t step, int rank, std::uint64_t bytes, const std::string& hash) override {
    msg::Message reply = call([&](flatbuffers::FlatBufferBuilder& builder) {
      return msg::Message::body(fbs::CreatePartDurable(builder, step, rank, bytes, builder.CreateString(hash)));
    });
    const auto* receipt = reply.as<fbs::PartReceipt>();
    if (receipt == nullptr) fail("The launcher answered the report of a durable part with another message.");
    Receipt result{receipt->complete(), {}, {}, receipt->loss()};
    for (const auto* text : *receipt->hashes()) result.hashes.push_back(text->str());
    for (std::uint64_t size : *receipt->bytes()) result.bytes.push_back(size);
    return result;
  }

  void committed(std::uint64_t step, std::uint64_t bytes, double seconds) override {
    call([&](flatbuffers::FlatBufferBuilder& builder) {
      return msg::Message::body(fbs::CreateCheckpointCommitted(builder, step, bytes, seconds));
    });
  }

  void failed(std::uint64_t step, const std::string& text) override {
    call([&](flatbuffers::FlatBufferBuilder& builder) {
      return msg::Message::body(fbs::CreateCheckpointFailed(builder, step, rank_, builder.CreateString(text)));
    });
  }

 private:
  msg::Message call(const msg::Client::Fill& fill) {
    return client_->call(fill, Deadline::after_seconds(answer_seconds));
  }

  std::unique_ptr<msg::Client> client_;
  int rank_;
};

}  // namespace

std::unique_ptr<Reports> launcher_reports(std::unique_ptr<msg::Client> client, int rank) {
  return std::make_unique<LauncherReports>(std::move(client), rank);
}

}  // namespace ganymede::checkpoint
