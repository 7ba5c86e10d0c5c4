#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "common/msg/server.h"

namespace ganymede::launcher {

/// A message server whose requests are answered in the io_context's thread, so that what they touch needs no locks.
/// A request whose turn does not come in time is not answered: its sender asks again.
class PostedServer {
 public:
  /// `answer` runs in the io_context's thread; an Error that it throws is sent back as Refused. Throws Error when the
  /// endpoint is taken.
  PostedServer(boost::asio::io_context& io, const std::string& endpoint, msg::Server::Handler answer);
  /// No answer runs after this.
  ~PostedServer();
  PostedServer(const PostedServer&) = delete;
  PostedServer& operator=(const PostedServer&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<msg::Server> server_;
};

}  // namespace ganymede::launcher
