#include "common/msg/curve.h"

#include <array>
#include <cstdint>

#include "common/base/error.h"
#include "common/msg/socket.h"

namespace ganymede::msg {
namespace {

using KeyText = std::array<char, key_length + 1>;  // with the 0 at its end

}  // namespace

KeyPair make_key_pair() {
  KeyText shared{}, secret{};
  if (zmq_curve_keypair(shared.data(), secret.data()) != 0)
    fail("No key can be made: the ZeroMQ library was built without CURVE.");
  return {shared.data(), secret.data()};
}

std::string public_key_of(const std::string& secret_key) {
  KeyText shared{};
  if (!is_key(secret_key) || zmq_curve_public(shared.data(), secret_key.c_str()) != 0)
    fail("A secret key of {} characters is none of CURVE.", secret_key.size());
  return shared.data();
}

bool is_key(const std::string& text) {
  std::array<std::uint8_t, key_length * 4 / 5> bytes{};
  return text.size() == key_length && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

}  // namespace ganymede::msg
