#include "services/data/dataset.h"

#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

class DatasetFiles : public Workspace {
 protected:
  DatasetFiles() {
    write_documents(40);
    PackOptions options = this->options();
    options.tokenizer = "train:300";
    pack(options);
  }

  std::string content(const std::string& name) const { return os::read_file(path("set/" + name)); }

  /// What opening, then reading everything says about a changed file, which is put back afterwards.
  Error opened_with(const std::string& name, const std::string& changed) {
    std::string before = content(name);
    write("set/" + name, changed);
    Error error = error_of([&] {
      Dataset dataset(path("set"));
      std::vector<std::int32_t> tokens(1);
      for (std::uint64_t i = 0; i < dataset.meta().rows(); ++i) dataset.row(i);
      dataset.open_tokenizer();
      dataset.verify();
    });
    write("set/" + name, before);
    return error;
  }

  config::Config matching() const {
    config::Config config;
    config.data.path = path("set");
    config.data.tokenizer = "train:300";
    config.data.seq_len = 32;
    config.model.vocabulary = 300;
    return config;
  }
};

TEST_F(DatasetFiles, OneByteLessOrMoreIsRefused) {
  for (const char* name : {tokens_name, index_name, tokenizer_name}) {
    std::string whole = content(name);
    for (const std::string& changed : {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
      Error error = opened_with(name, changed);
      EXPECT_EQ(error.code(), ExitCode::failed) << error.what();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("pack it again"), std::string::npos) << error.what();
      expect_one_sentence(error);
    }
  }
}

TEST_F(DatasetFiles, MissingFilesAreNamed) {
  for (const char* name : {tokens_name, index_name, tokenizer_name, meta_name}) {
    std::string before = content(name);
    std::filesystem::remove(path(std::string("set/") + name));
    Error error = error_of([&] { Dataset dataset(path("set")); });
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    write(std::string("set/") + name, before);
  }
  EXPECT_EQ(error_of([&] { Dataset dataset(path("nothing")); }).code(), ExitCode::usage);
}

TEST_F(DatasetFiles, AnyChangedByteIsFound) {
  for (const char* name : {tokens_name, index_name, tokenizer_name}) {
    std::string whole = content(name);
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 97) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x41);
      expect_one_sentence(opened_with(name, changed));
    }
  }
}

TEST_F(DatasetFiles, DamagedDescriptionIsOneSentence) {
  std::string whole = content(meta_name);
  std::vector<std::string> changes = {
      "", "[]", "null", "{}", "{\"format\": \"ganymede dataset\"}", "\xff\xfe", whole.substr(0, whole.size() / 2)};
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    if (whole[at] < '0' || whole[at] > '9') continue;
    changes.push_back(whole);
    changes.back()[at] = whole[at] == '9' ? '1' : '9';
  }
  for (const std::string& changed : changes) {
    std::string before = content(meta_name);
    write(std::string("set/") + meta_name, changed);
    try {  // a digit of what nothing depends on (the number of skipped files) may change
      Dataset(path("set")).verify();
    } catch (const Error& error) {
      expect_one_sentence(error);
    }
    write(std::string("set/") + meta_name, before);
  }
}

TEST_F(DatasetFiles, RecordsThatPointOutsideAreRefusedWhenRead) {
  // Whatever stands in the index behind its header, a row is read inside its document or not at all.
  std::string whole = content(index_name);
  for (int trial = 0; trial < 300; ++trial) {
    std::string changed = whole;
    auto bits = philox(5, 0, static_cast<std::uint64_t>(trial));
    std::size_t at = sizeof(FileHeader) + bits[0] % (whole.size() - sizeof(FileHeader));
    changed[at] = static_cast<char>(bits[1]);
    write(std::string("set/") + index_name, changed);
    Dataset dataset(path("set"));
    for (std::uint64_t i = 0; i < dataset.meta().rows(); ++i) {
      try {
        for (const Segment& segment : dataset.row(i).segments) {
          std::vector<std::int32_t> tokens(segment.length);
          dataset.tokens(segment.first, tokens);
        }
      } catch (const Error& error) {
        expect_one_sentence(error);
      }
    }
  }
}

TEST_F(DatasetFiles, IsRefusedWhenItIsNotWhatTheConfigurationAsksFor) {
  Dataset dataset(path("set"));
  EXPECT_NO_THROW(check_matches(dataset, matching()));
  auto expect_refused = [&](const config::Config& config, const char* key) {
    Error error = error_of([&] { check_matches(dataset, config); });
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    expect_one_sentence(error);
  };
  config::Config other = matching();
  other.data.tokenizer = "bytes";
  expect_refused(other, "data.tokenizer");
  other.data.tokenizer = "train:301";
  expect_refused(other, "data.tokenizer");
  other.data.tokenizer = path("missing.model");
  expect_refused(other, "missing.model");
  other = matching();
  other.data.seq_len = 64;
  expect_refused(other, "data.seq_len");
  other = matching();
  other.model.vocabulary = 256;
  expect_refused(other, "model.vocabulary");
}

TEST_F(DatasetFiles, TheTokenizersFileNamesItToo) {
  config::Config config = matching();
  config.data.tokenizer = path("set/tokenizer.model");
  EXPECT_NO_THROW(check_matches(Dataset(path("set")), config));
  PackOptions options = this->options();
  options.tokenizer = path("set/tokenizer.model");
  options.to = path("same");
  EXPECT_EQ(pack(options).tokenizer.hash, Dataset(path("set")).meta().tokenizer.hash);
  write("text/more.txt", "more text of another kind, much more of it: abcdefghijklmnopqrstuvwxyz");
  options.tokenizer = "train:310";
  options.to = path("other");
  pack(options);
  EXPECT_EQ(error_of([&] { check_matches(Dataset(path("other")), config); }).code(), ExitCode::usage);
}

}  // namespace
}  // namespace ganymede::data
