#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "common/base/error.h"
#include "common/msg/client.h"
#include "common/msg/curve.h"
#include "common/msg/server.h"

namespace ganymede::msg {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// A server's socket in a folder of its own.
class Exchange : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ganymede-msg-XXXXXX";
    folder_ = ::mkdtemp(name);
    endpoint_ = "ipc://" + folder_ + "/s";
  }
  void TearDown() override {
    for (const char* file : {"/s", "/s.lock"}) ::unlink((folder_ + file).c_str());
    ::rmdir(folder_.c_str());
  }

  static Message::BodyOffset status_request(flatbuffers::FlatBufferBuilder& builder) {
    return Message::body(fbs::CreateStatusRequest(builder));
  }
  static Message acknowledge(const std::string&, const Message& request) { return ack(request); }

  std::string error_of_call(Client& client, double seconds) {
    try {
      client.call(status_request, Deadline::after_seconds(seconds));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string folder_, endpoint_;
};

TEST_F(Exchange, ARequestIsAnsweredByItsHandlerAndKnowsWhoAsked) {
  std::promise<std::string> who;
  Server server(endpoint_, [&](const std::string& identity, const Message& request) {
    who.set_value(identity);
    return ack(request);
  });
  Client client(endpoint_, "worker.3", 9);
  Message reply = client.call(status_request, Deadline::after_seconds(10));
  EXPECT_NE(reply.as<fbs::Ack>(), nullptr);
  EXPECT_EQ(reply.envelope().job(), 9u);
  EXPECT_EQ(who.get_future().get(), "worker.3");
}

TEST_F(Exchange, AnErrorOfTheHandlerReachesTheCallerWithItsExitCode) {
  Server server(endpoint_,
                [](const std::string&, const Message&) -> Message { fail_usage("Rank {} is not here.", 5); });
  Client client(endpoint_, "c", 1);
  try {
    client.call(status_request, Deadline::after_seconds(10));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "Rank 5 is not here.");
  }
}

TEST_F(Exchange, ARequestThatTheHandlerCannotAnswerNowIsAskedAgain) {
  std::atomic<int> asked = 0;
  Server server(endpoint_, [&](const std::string&, const Message& request) {
    if (++asked < 3) throw NoAnswer();
    return ack(request);
  });
  Client client(endpoint_, "c", 1);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(20)));
  EXPECT_EQ(asked, 3);
}

TEST_F(Exchange, AServerThatComesLateGetsTheRequestOnce) {
  std::atomic<int> served = 0;
  std::optional<Server> server;
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(1300));
    server.emplace(endpoint_, [&](const std::string&, const Message& request) {
      ++served;
      return ack(request);
    });
  });
  Client client(endpoint_, "c", 1);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(20)));
  late.join();
  EXPECT_EQ(served, 1);
}

TEST_F(Exchange, ARequestWithoutAReplyIsSentAgainUnderTheSameId) {
  std::vector<std::uint64_t> ids;
  Server server(endpoint_, [&](const std::string&, const Message& request) {
    ids.push_back(request.envelope().id());
    // The first answer is lost: it goes out under an id that nobody asked with.
    if (ids.size() == 1) return Message::build(1, request.envelope().id() + 1000, status_request);
    return ack(request);
  });
  Client client(endpoint_, "c", 1);
  Message reply = client.call(status_request, Deadline::after_seconds(20));
  EXPECT_NE(reply.as<fbs::Ack>(), nullptr);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], ids[1]);
}

TEST_F(Exchange, WithoutAServerTheDeadlineNamesEndpointAndRequest) {
  Client client(endpoint_, "c", 1);
  EXPECT_THAT(error_of_call(client, 0.1), AllOf(HasSubstr(endpoint_), HasSubstr("StatusRequest")));
}

TEST_F(Exchange, AServerThatHangsIsAnErrorAtTheDeadline) {
  Server server(endpoint_, [](const std::string&, const Message& request) {
    std::this_thread::sleep_for(milliseconds(400));
    return ack(request);
  });
  Client client(endpoint_, "c", 1);
  EXPECT_THAT(error_of_call(client, 0.1), HasSubstr("did not answer"));
}

TEST_F(Exchange, ALateReplyIsNotTakenForTheNextOne) {
  std::atomic<int> served = 0;
  Server server(endpoint_, [&](const std::string&, const Message& request) -> Message {
    if (++served == 1) std::this_thread::sleep_for(milliseconds(300));
    if (served == 1) return ack(request);
    fail("second");
  });
  Client client(endpoint_, "c", 1);
  EXPECT_THAT(error_of_call(client, 0.1), HasSubstr("did not answer"));
  EXPECT_EQ(error_of_call(client, 10), "second");
}

TEST_F(Exchange, ARestartedClientTakesOverTheIdentityOfItsPredecessor) {
  Server server(endpoint_, acknowledge);
  auto first = std::make_unique<Client>(endpoint_, "worker.0", 1);
  first->call(status_request, Deadline::after_seconds(10));
  Client second(endpoint_, "worker.0", 1);  // the first one's connection still stands, as after a kill -9
  EXPECT_NO_THROW(second.call(status_request, Deadline::after_seconds(10)));
  first.reset();
  EXPECT_NO_THROW(second.call(status_request, Deadline::after_seconds(10)));
}

TEST_F(Exchange, ManyClientsAreServedAtOnce) {
  Server server(endpoint_, acknowledge);
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Client client(endpoint_, std::to_string(i), 1);
      for (int k = 0; k < 50; ++k) client.call(status_request, Deadline::after_seconds(30));
      answered += 50;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, 400);
}

TEST_F(Exchange, GarbageIsDroppedAndTheServerGoesOn) {
  Server server(endpoint_, acknowledge);
  zmq::context_t context;
  zmq::socket_t raw(context, zmq::socket_type::dealer);
  raw.set(zmq::sockopt::linger, 0);
  raw.connect(endpoint_);
  raw.send(zmq::str_buffer("garbage"), zmq::send_flags::none);
  raw.send(zmq::message_t(), zmq::send_flags::none);
  for (int part = 0; part < 5; ++part) {
    raw.send(zmq::str_buffer("part"), part < 4 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  Client client(endpoint_, "good", 1);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(10)));
}

TEST_F(Exchange, ASecondServerOnTheSamePathIsRefusedAndNamesTheFirst) {
  Server first(endpoint_, acknowledge);
  try {
    Server second(endpoint_, acknowledge);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(folder_), HasSubstr(std::to_string(::getpid()))));
  }
  Client client(endpoint_, "c", 1);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(10)));
}

TEST_F(Exchange, TheSocketOfADeadServerIsTakenOver) {
  pid_t child = ::fork();
  if (child == 0) {
    Server server(endpoint_, acknowledge);
    ::_exit(0);  // as killed: the socket file stays
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(::access((folder_ + "/s").c_str(), F_OK), 0);
  Server server(endpoint_, acknowledge);
  Client client(endpoint_, "c", 1);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(10)));
}

TEST_F(Exchange, AFileInTheWayOfTheSocketIsKept) {
  std::ofstream(folder_ + "/s") << "precious";
  EXPECT_THROW(Server(endpoint_, acknowledge), Error);
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/s").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 8);
}

TEST_F(Exchange, ASocketThatIsStoppedLeavesNoFileBehind) {
  { Server server(endpoint_, acknowledge); }
  EXPECT_NE(::access((folder_ + "/s").c_str(), F_OK), 0);
  EXPECT_NO_THROW(Server(endpoint_, acknowledge));
}

TEST_F(Exchange, EndpointsThatCannotBeAreRefused) {
  EXPECT_THROW(Server("ipc://" + folder_ + "/" + std::string(200, 'x'), acknowledge), Error);
  EXPECT_THROW(Server("udp://localhost:1", acknowledge), Error);
  EXPECT_THROW(Server("ipc://" + folder_ + "/missing/s", acknowledge), Error);
  EXPECT_THROW(Server("tcp://127.0.0.1:notaport", acknowledge, {.secret_key = make_key_pair().secret_key}), Error);
  EXPECT_THROW(Client("ipc://", "c", 1), Error);
}

TEST_F(Exchange, APortInUseIsOneError) {
  zmq::context_t context;
  zmq::socket_t other(context, zmq::socket_type::router);
  other.bind("tcp://127.0.0.1:*");
  ServerOptions options{.secret_key = make_key_pair().secret_key};
  EXPECT_THROW(Server(other.get(zmq::sockopt::last_endpoint), acknowledge, options), Error);
}

}  // namespace
}  // namespace ganymede::msg
