#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace ganymede {

/// `count` threads, each of which runs `body` with its index. When one cannot be started, `end` is called, which makes
/// those that were started leave `body`; they are joined, and the std::system_error is passed on.
std::vector<std::thread> start_threads(int count, const std::function<void(int)>& body,
                                       const std::function<void()>& end);

}  // namespace ganymede
