#pragma once

#include <string>

/// Keys of CURVE, which encrypts and authenticates every connection between machines. A key is 40 characters of Z85.
/// The server's public key never crosses the network in the clear, and nobody gets through a handshake without it: it
/// is the secret that the nodes of one run share.
namespace ganymede::msg {

constexpr std::size_t key_length = 40;

struct KeyPair {
  std::string public_key, secret_key;
};

/// A new random pair. Throws Error when the ZeroMQ library was built without CURVE.
KeyPair make_key_pair();

/// The public key that belongs to a secret one. Throws Error when it is none.
std::string public_key_of(const std::string& secret_key);

/// Whether `text` has the form of a key.
bool is_key(const std::string& text);

}  // namespace ganymede::msg
