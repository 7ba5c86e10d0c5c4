#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/os/files.h"
#include "services/data/pack.h"

namespace ganymede::data {

/// A folder of its own for one test, removed at its end.
class Workspace : public testing::Test {
 protected:
  Workspace() {
    std::string name = (std::filesystem::temp_directory_path() / "ganymede-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    root_ = name;
  }
  ~Workspace() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ + "/" + name; }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  /// Options that pack everything below "text" into "set".
  PackOptions options() const {
    PackOptions result;
    result.sources = {path("text")};
    result.to = path("set");
    result.extensions = {".txt", ".jsonl"};
    result.seq_len = 32;
    result.validation_fraction = 0.2;
    return result;
  }

  /// `count` files of different lengths, each with words of its own; their texts in the order in which they are read.
  std::vector<std::string> write_documents(int count) const {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) {
      std::string text = fmt::format("document {}:", i);
      auto words = static_cast<int>(philox(7, 0, static_cast<std::uint64_t>(i))[0] % 40);
      constexpr const char* roots[] = {"gather", "bucket", "update", "layer", "expert", "moment", "stream", "vector"};
      constexpr const char* endings[] = {"ing", "s", "ed", "able", "less", "ful", "wise"};
      for (int word = 0; word < words; ++word)
        text += fmt::format(" {}{} {}", roots[(word + i) % 8], endings[(word * i) % 7], (word * 37 + i) % 1000);
      write(fmt::format("text/{:04}.txt", i), text);
      texts.push_back(text);
    }
    return texts;
  }

  std::string root_;
};

/// The Error that `call` throws; fails the test when it throws none.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return {ExitCode::done, ""};
}

/// One sentence for a person: no line break, says something.
inline void expect_one_sentence(const Error& error) {
  std::string text = error.what();
  EXPECT_GT(text.size(), 20u);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace ganymede::data
