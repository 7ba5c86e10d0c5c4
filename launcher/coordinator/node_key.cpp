#include "launcher/coordinator/node_key.h"

#include <sys/stat.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/msg/curve.h"
#include "common/os/files.h"

namespace ganymede::coordinator {
namespace {

namespace fs = std::filesystem;

std::string read_key(const std::string& file) {
  std::string text = os::read_file(file);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (!msg::is_key(text))
    fail_usage("{} holds no key: a key is a line of {} characters, as in {} of node 0's run directory.", file,
               msg::key_length, node_key_file);
  return text;
}

/// Never readable for others, not even for a moment.
void write_private(const std::string& file, const std::string& key) {
  mode_t before = ::umask(0077);
  try {
    os::write_file_atomically(file, key + "\n");
  } catch (...) {
    ::umask(before);
    throw;
  }
  ::umask(before);
}

}  // namespace

std::string coordinator_secret() {
  std::error_code ignored;
  std::string secret = fs::exists(secret_key_file, ignored) ? read_key(secret_key_file) : "";
  if (secret.empty()) {
    secret = msg::make_key_pair().secret_key;
    write_private(secret_key_file, secret);
  }
  std::string shared = msg::public_key_of(secret);
  if (!fs::exists(node_key_file, ignored) || read_key(node_key_file) != shared) write_private(node_key_file, shared);
  return secret;
}

std::string read_node_key(const std::string& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) ? read_key(file) : "";
}

}  // namespace ganymede::coordinator
