#include "services/checkpoint/part_record.h"

#include <nlohmann/json.hpp>
#include <span>

#include "common/base/error.h"
#include "common/base/hash.h"

namespace ganymede::checkpoint {
namespace {

constexpr int format_version = 1;  // of the part record; values have their own in their magic

}  // namespace

std::uint64_t PartRecord::bytes() const {
  std::uint64_t sum = 0;
  for (const Value& value : values) sum += static_cast<std::uint64_t>(value.count) * sizeof(float);
  return sum;
}

std::string PartRecord::hash() const {
  StreamingHash hash;
  for (const Value& value : values) {
    std::string line = fmt::format("{} {} {}\n", encode(value.key), value.count, value.hash);
    hash.add(std::as_bytes(std::span(line)));
  }
  return hash.value().hex();
}

std::string to_json(const PartRecord& record) {
  nlohmann::json values = nlohmann::json::array();
  for (const PartRecord::Value& value : record.values) values.push_back({encode(value.key), value.count, value.hash});
  nlohmann::json optimizers = nlohmann::json::array();
  for (const service::ManifestOptimizer& one : record.optimizers)
    optimizers.push_back({one.name, one.version, one.hash});
  return nlohmann::json({{"version", format_version},
                         {"step", record.step},
                         {"rank", record.rank},
                         {"job", record.job},
                         {"slots", record.slots},
                         {"optimizers", optimizers},
                         {"config", record.config},
                         {"began", record.began},
                         {"row_slots", record.row_slots},
                         {"shapes", record.shapes},
                         {"values", values}})
      .dump();
}

PartRecord part_record_from_json(const std::string& text) {
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    int version = json.value("version", 0);
    if (version != format_version)
      fail("its part record has format version {}, and this program reads {}", version, format_version);
    PartRecord record;
    record.step = json.at("step").get<std::uint64_t>();
    record.rank = json.at("rank").get<int>();
    record.job = json.at("job").get<std::uint64_t>();
    record.slots = json.at("slots").get<std::vector<std::string>>();
    record.config = json.value("config", std::string());
    record.began = json.value("began", decltype(record.began)());
    record.row_slots = json.value("row_slots", decltype(record.row_slots)());
    for (const auto& one : json.value("optimizers", nlohmann::json::array()))
      record.optimizers.push_back({one.at(0), one.at(1), one.at(2)});
    record.shapes = json.at("shapes").get<std::map<std::string, std::vector<std::int64_t>>>();
    for (const nlohmann::json& entry : json.at("values")) {
      auto key = decode(entry.at(0).get<std::string>());
      auto count = entry.at(1).get<std::int64_t>();
      if (!key || count <= 0) fail("\"{}\" is not the key of a value", entry.at(0).get<std::string>());
      record.values.push_back({*key, count, entry.at(2).get<std::string>()});
    }
    return record;
  } catch (const nlohmann::json::exception&) {
    fail("its part record is not whole");
  }
}

}  // namespace ganymede::checkpoint
