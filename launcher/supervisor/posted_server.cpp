#include "launcher/supervisor/posted_server.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <future>

#include "common/base/deadline.h"
#include "common/base/error.h"

namespace ganymede::launcher {
namespace {

constexpr double longest_wait = 5;  // seconds; senders ask again after one

}  // namespace

struct PostedAnswers::Shared {
  boost::asio::io_context& io;
  msg::Server::Handler answer;
  bool asks_again;
  std::atomic<bool> closed{false};
};

namespace {

/// To a request that comes too late.
[[noreturn]] void turn_away(bool asks_again) {
  if (asks_again) throw msg::NoAnswer();
  fail("The launcher is ending.");
}

struct Call {
  std::string identity;
  msg::Message request;
  std::promise<msg::Message> reply;
};

msg::Message wait_for_reply(std::future<msg::Message> reply, const std::atomic<bool>& closed, bool asks_again) {
  Deadline deadline = Deadline::after_seconds(longest_wait);
  while (reply.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (closed) turn_away(asks_again);
    if (deadline.passed()) throw msg::NoAnswer();
  }
  return reply.get();
}

}  // namespace

PostedAnswers::PostedAnswers(boost::asio::io_context& io, msg::Server::Handler answer, bool asks_again)
    : shared_(new Shared{io, std::move(answer), asks_again}) {}

void PostedAnswers::close() { shared_->closed = true; }

msg::Server::Handler PostedAnswers::handler() const {
  return [shared = shared_](const std::string& identity, const msg::Message& request) {
    if (shared->closed) turn_away(shared->asks_again);
    auto call = std::make_shared<Call>(Call{identity, request, {}});
    auto reply = call->reply.get_future();
    boost::asio::post(shared->io, [shared, call] {
      if (shared->closed) return;
      try {
        call->reply.set_value(shared->answer(call->identity, call->request));
      } catch (...) {
        call->reply.set_exception(std::current_exception());
      }
    });
    return wait_for_reply(std::move(reply), shared->closed, shared->asks_again);
  };
}

}  // namespace ganymede::launcher
