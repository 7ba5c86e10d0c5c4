#include "common/config/toml_reader.h"

#define TOML_EXCEPTIONS 0
// The parser asserts what broken text can violate; without the assertion it reports the fault as it should.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::config {
namespace {

Value list_of_texts(const toml::array& array) {
  std::vector<std::string> texts;
  for (const auto& item : array) {
    const auto* text = item.as_string();
    if (!text) return Unfit{"a list with something other than text in it"};
    texts.push_back(text->get());
  }
  return texts;
}

Value to_value(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) return v->get();
  if (const auto* v = node.as_array()) return list_of_texts(*v);
  if (node.is_table()) return Unfit{"a section"};
  return Unfit{"a date or time"};
}

void collect(const toml::table& table, const std::string& prefix, std::vector<Leaf>& leaves) {
  for (const auto& [key, node] : table) {
    std::string path = prefix + std::string(key.str());
    const auto* inner = node.as_table();
    if (inner && !inner->empty()) {
      collect(*inner, path + ".", leaves);
    } else if (!inner || !prefix.empty()) {  // an empty section says nothing
      leaves.push_back({path, to_value(node), static_cast<int>(key.source().begin.line)});
    }
  }
}

}  // namespace

std::vector<Leaf> read_toml(const std::string& text, const std::string& where) {
  auto result = toml::parse(std::string_view(text));
  if (!result) {
    const auto& error = result.error();
    fail_usage("{}:{}: this is not TOML: {}.", where, error.source().begin.line, error.description());
  }
  std::vector<Leaf> leaves;
  collect(result.table(), "", leaves);
  std::stable_sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) { return a.line < b.line; });
  return leaves;
}

Value read_value(const std::string& text, bool& is_toml) {
  is_toml = false;
  auto result = toml::parse(std::string_view("value = " + text));
  if (!result || result.table().size() != 1) return Unfit{"nothing"};
  is_toml = true;
  return to_value(*result.table().get("value"));
}

}  // namespace ganymede::config
