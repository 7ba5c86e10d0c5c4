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
  std::atomic<bool> closed{false};
};

namespace {

struct Call {
  std::string identity;
  msg::Message request;
  std::promise<msg::Message> reply;
};

msg::Message wait_for_reply(std::future<msg::Message> reply, const std::atomic<bool>& closed) {
  Deadline deadline = Deadline::after_seconds(longest_wait);
  while (reply.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (closed) fail("The launcher is ending.");
    if (deadline.passed()) throw msg::NoAnswer();
  }
  return reply.get();
}

}  // namespace

PostedAnswers::PostedAnswers(boost::asio::io_context& io, msg::Server::Handler answer)
    : shared_(new Shared{io, std::move(answer)}) {}

void PostedAnswers::close() { shared_->closed = true; }

msg::Server::Handler PostedAnswers::handler() const {
  return [shared = shared_](const std::string& identity, const msg::Message& request) {
    if (shared->closed) fail("The launcher is ending.");
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
    return wait_for_reply(std::move(reply), shared->closed);
  };
}

}  // namespace ganymede::launcher
