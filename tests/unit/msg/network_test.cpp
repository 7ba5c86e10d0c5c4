#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "common/base/error.h"
#include "common/msg/client.h"
#include "common/msg/curve.h"
#include "common/msg/server.h"

/// Connections between machines: never without a key, and passed on from server to server.
namespace ganymede::msg {
namespace {

using testing::HasSubstr;

Message::BodyOffset status_request(flatbuffers::FlatBufferBuilder& builder) {
  return Message::body(fbs::CreateStatusRequest(builder));
}
Message acknowledge(const std::string&, const Message& request) { return ack(request); }

/// A port of this machine that nobody uses now.
std::string free_endpoint() {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::router);
  socket.bind("tcp://127.0.0.1:*");
  return socket.get(zmq::sockopt::last_endpoint);
}

std::string error_of_call(Client& client, double seconds) {
  try {
    client.call(status_request, Deadline::after_seconds(seconds));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Keys, AKeyIsRecognisedAndItsPublicPartFound) {
  KeyPair pair = make_key_pair();
  EXPECT_TRUE(is_key(pair.secret_key));
  EXPECT_EQ(public_key_of(pair.secret_key), pair.public_key);
  EXPECT_FALSE(is_key("short"));
  EXPECT_FALSE(is_key(std::string(40, ' ')));
  EXPECT_THROW(public_key_of("short"), Error);
}

TEST(Network, ARequestIsAnsweredByAServerWithItsKey) {
  KeyPair pair = make_key_pair();
  std::string endpoint = free_endpoint();
  Server server(endpoint, acknowledge, {.secret_key = pair.secret_key});
  Client client(endpoint, "node.1", 1, pair.public_key);
  EXPECT_NO_THROW(client.call(status_request, Deadline::after_seconds(10)));
}

TEST(Network, NothingGoesOverANetworkWithoutAKey) {
  EXPECT_THROW(Server("tcp://127.0.0.1:4711", acknowledge), Error);
  EXPECT_THROW(Client("tcp://127.0.0.1:4711", "node.1", 1), Error);
  EXPECT_THROW(Client("tcp://127.0.0.1:4711", "node.1", 1, "no key"), Error);
}

TEST(Network, AWrongKeyIsOneErrorLongBeforeTheDeadline) {
  std::string endpoint = free_endpoint();
  std::atomic<int> asked{0};
  Server server(endpoint,
                [&](const std::string&, const Message& request) {
                  ++asked;
                  return ack(request);
                },
                {.secret_key = make_key_pair().secret_key});
  Client client(endpoint, "node.1", 1, make_key_pair().public_key);
  EXPECT_THAT(error_of_call(client, 60), HasSubstr("does not take our key"));
  EXPECT_EQ(asked, 0);
}

TEST(Network, APeerWithoutAKeyIsNotHeard) {
  std::string endpoint = free_endpoint();
  std::atomic<int> asked{0};
  Server server(endpoint,
                [&](const std::string&, const Message& request) {
                  ++asked;
                  return ack(request);
                },
                {.secret_key = make_key_pair().secret_key});
  zmq::context_t context;
  zmq::socket_t plain(context, zmq::socket_type::dealer);
  plain.set(zmq::sockopt::linger, 0);
  plain.set(zmq::sockopt::rcvtimeo, 300);
  plain.connect(endpoint);
  Message request = Message::build(1, 1, status_request);
  plain.send(zmq::buffer(request.bytes().data(), request.bytes().size()), zmq::send_flags::dontwait);
  zmq::message_t reply;
  EXPECT_FALSE(plain.recv(reply, zmq::recv_flags::none));
  EXPECT_EQ(asked, 0);
}

TEST(Network, AServerThatIsNotThereIsNamed) {
  Client client(free_endpoint(), "node.1", 1, make_key_pair().public_key);
  EXPECT_THAT(error_of_call(client, 0.5), HasSubstr("nothing listens there"));
}

std::string new_folder() {
  char name[] = "/tmp/ganymede-msg-XXXXXX";
  return ::mkdtemp(name);
}

/// A server of this machine that passes requests for the state on to one behind a network.
struct Passing {
  KeyPair pair = make_key_pair();
  std::string far = free_endpoint();
  std::string folder = new_folder();
  std::string near = "ipc://" + folder + "/s";
  std::vector<std::string> asked;  // by the far server's thread, read after its end

  Passing() = default;
  Passing(const Passing&) = delete;
  ~Passing() { std::filesystem::remove_all(folder); }

  Server far_server() {
    return Server(far,
                  [this](const std::string& identity, const Message& request) {
                    asked.push_back(identity);
                    return refused(request, 2, "from afar");
                  },
                  {.secret_key = pair.secret_key});
  }
  Server near_server() {
    RelayOptions relay{.endpoint = far, .server_key = pair.public_key, .identity = "node.1", .takes = [](auto& m) {
                         return m.template as<fbs::StatusRequest>() != nullptr;
                       }};
    return Server(near, acknowledge, {.secret_key = "", .relay = relay});
  }
};

TEST(Network, ARequestIsPassedOnAndItsAnswerComesBack) {
  Passing passing;
  {
    Server far = passing.far_server(), near = passing.near_server();
    Client one(passing.near, "worker.3", 1), other(passing.near, "worker.4", 1);
    EXPECT_THAT(error_of_call(one, 20), HasSubstr("from afar"));
    EXPECT_THAT(error_of_call(other, 20), HasSubstr("from afar"));
    auto stop = [](flatbuffers::FlatBufferBuilder& builder) {
      return Message::body(fbs::CreateStopRequest(builder, false));
    };
    EXPECT_NO_THROW(one.call(stop, Deadline::after_seconds(10))) << "answered near";
  }
  EXPECT_THAT(passing.asked, testing::Contains("node.1/worker.3"));
  EXPECT_THAT(passing.asked, testing::Contains("node.1/worker.4"));
}

TEST(Network, AServerThatIsAwayHoldsUpOnlyWhatIsPassedOn) {
  Passing passing;
  Server near = passing.near_server();
  Client client(passing.near, "worker.3", 1);
  EXPECT_THAT(error_of_call(client, 0.3), HasSubstr("did not answer"));
  EXPECT_NO_THROW(client.call([](auto& b) { return Message::body(fbs::CreateStopRequest(b, false)); },
                              Deadline::after_seconds(10)));
  Server far = passing.far_server();
  EXPECT_THAT(error_of_call(client, 20), HasSubstr("from afar"));
}

}  // namespace
}  // namespace ganymede::msg
