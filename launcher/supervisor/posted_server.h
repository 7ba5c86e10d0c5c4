#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "common/msg/server.h"

namespace ganymede::launcher {

/// Answers requests of any thread in the io_context's thread, so that what they touch needs no locks. A request whose
/// turn does not come in time is not answered: its sender asks again.
class PostedAnswers {
 public:
  /// `answer` runs in the io_context's thread; an Error that it throws is sent back as Refused. `asks_again`: requests
  /// that come too late are not answered, because somebody else will answer them.
  PostedAnswers(boost::asio::io_context& io, msg::Server::Handler answer, bool asks_again = false);
  ~PostedAnswers() { close(); }
  PostedAnswers(const PostedAnswers&) = delete;
  PostedAnswers& operator=(const PostedAnswers&) = delete;

  /// No answer runs after this; requests, also those that wait, are refused, or not answered.
  void close();
  /// For a server. It must not be called when the io_context is gone.
  msg::Server::Handler handler() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// A message server with posted answers.
class PostedServer {
 public:
  /// Throws Error when the endpoint is taken.
  PostedServer(boost::asio::io_context& io, const std::string& endpoint, msg::Server::Handler answer,
               const msg::ServerOptions& options = {})
      : answers_(io, std::move(answer)), server_(endpoint, answers_.handler(), options) {}
  ~PostedServer() { answers_.close(); }  // or the server's thread would wait for an answer

 private:
  PostedAnswers answers_;
  msg::Server server_;
};

}  // namespace ganymede::launcher
