#pragma once

#include "common/config/config.h"
#include "common/config/field.h"

namespace ganymede::config {

/// Every key of the configuration once, in the order of the effective configuration: sections are contiguous, keys
/// without a section come first. The fields point into `config`, which has to outlive them. Of the keys of plugins
/// those that `config` has, and of groups too.
std::vector<Field> fields(Config& config);

/// "adamw.beta1" of "optimizer.adamw.beta1", the name in Optimizer::hyper; "" for a key of another form.
std::string hyper_name(const std::string& key);
/// The field of a plugin's hyper-parameter: which range it has only the plugin knows.
Field hyper_field(const std::string& name, double& value);

/// "vectors" of "optimizer.group.vectors.lr", the name in Optimizer::groups; "" for a key of another form.
std::string group_name(const std::string& key);
std::vector<Field> group_fields(const std::string& name, OptimizerGroup& group);

/// "model" of "model.hidden", "" of "recompute", "optimizer.adamw" of "optimizer.adamw.beta1".
std::string section_of(const std::string& key);
/// "hidden" of "model.hidden".
std::string name_of(const std::string& key);

}  // namespace ganymede::config
