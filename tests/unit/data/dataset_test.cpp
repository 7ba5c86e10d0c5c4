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
  for (const char* name : {tokens_name, index_name, blocks_name, tokenizer_name}) {
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
  for (const char* name : {tokens_name, index_name, blocks_name, tokenizer_name, meta_name}) {
    std::string before = content(name);
    std::filesystem::remove(path(std::string("set/") + name));
    Error error = error_of([&] { Dataset dataset(path("set")); });
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    write(std::string("set/") + name, before);
  }
  EXPECT_EQ(error_of([&] { Dataset dataset(path("nothing")); }).code(), ExitCode::usage);
}

TEST_F(DatasetFiles, AnyChangedByteIsFound) {
  for (const char* name : {tokens_name, index_name, blocks_name, tokenizer_name}) {
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

/// Reads every row and every token, as serving does. Throws what that throws.
void read_all(const Dataset& dataset) {
  for (std::uint64_t i = 0; i < dataset.meta().rows(); ++i) {
    for (const Segment& segment : dataset.row(i).segments) {
      std::vector<std::int32_t> tokens(segment.length);
      dataset.tokens(segment.first, tokens);
    }
  }
}

TEST_F(DatasetFiles, AnyChangedByteIsFoundWhenItIsRead) {
  // Also where the changed token or record would be a valid one.
  for (const char* name : {tokens_name, index_name, blocks_name}) {
    std::string whole = content(name);
    for (int trial = 0; trial < 100; ++trial) {
      std::string changed = whole;
      auto bits = philox(5, 0, static_cast<std::uint64_t>(trial));
      std::size_t at = sizeof(FileHeader) + bits[0] % (whole.size() - sizeof(FileHeader));
      changed[at] = static_cast<char>(changed[at] ^ (1 + bits[1] % 255));
      write(std::string("set/") + name, changed);
      Dataset dataset(path("set"));
      expect_one_sentence(error_of([&] { read_all(dataset); }));
    }
    write(std::string("set/") + name, whole);
  }
  EXPECT_NO_THROW(read_all(Dataset(path("set"))));
}

TEST(Blocks, HashesDoNotDependOnHowTheStreamWasCut) {
  std::vector<std::byte> bytes(3 * block_bytes + 17);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  BlockHasher whole;
  whole.add(bytes);
  std::vector<std::uint64_t> hashes = whole.finish();
  ASSERT_EQ(hashes.size(), blocks_of(bytes.size()));
  for (std::size_t piece : {std::size_t{7}, block_bytes - 1, block_bytes, block_bytes + 1}) {
    BlockHasher cut;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      cut.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(cut.finish(), hashes) << piece;
  }
}

TEST(Blocks, DamageIsFoundInItsBlockAlone) {
  std::vector<std::byte> bytes(3 * block_bytes + 17);
  BlockHasher hasher;
  hasher.add(bytes);
  std::vector<std::uint64_t> hashes = hasher.finish();
  bytes[block_bytes] = std::byte{1};
  BlockCheck check(bytes, hashes);
  std::span<const std::byte> all(bytes);
  EXPECT_TRUE(check.sound(all.first(block_bytes)));
  EXPECT_FALSE(check.sound(all.first(block_bytes + 1)));
  EXPECT_FALSE(check.sound(all));
  EXPECT_TRUE(check.sound(all.subspan(2 * block_bytes)));
  EXPECT_TRUE(check.sound({}));
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

  // Only where the configuration says how the dataset is made.
  other = matching();
  other.data.validation_fraction = dataset.meta().validation_fraction + 0.125;
  EXPECT_NO_THROW(check_matches(dataset, other));
  other.data.sources = dataset.meta().sources;
  other.data.extensions = dataset.meta().extensions;
  expect_refused(other, "data.validation_fraction");
  other.data.validation_fraction = dataset.meta().validation_fraction;
  EXPECT_NO_THROW(check_matches(dataset, other));
  other.data.max_bytes = 1000;
  expect_refused(other, "data.max_bytes");
  other.data.max_bytes = 0;
  other.data.extensions = {".other"};
  expect_refused(other, "data.extensions");
  other.data.sources.push_back("elsewhere");  // packed by the user, who named the folder
  EXPECT_NO_THROW(check_matches(dataset, other));
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
