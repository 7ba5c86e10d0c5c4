#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/service/run_directory.h"
#include "services/checkpoint/part_store.h"
#include "services/checkpoint/reports.h"

namespace ganymede::checkpoint {

/// The manifest of a checkpoint whose parts are all durable, trained on the dataset of this hash. Throws Error when the
/// receipt does not fit the world.
service::Manifest make_manifest(const config::Config& config, const placement::Placement& placement, std::uint64_t step,
                                const Receipt& receipt, const std::string& dataset);

/// Rank 0: removes all manifests but the newest `keep` intact ones; damaged ones count as nothing and go when those of
/// their time go. A kill between any two leaves whole checkpoints only: a
/// checkpoint loses its manifest before any of its parts.
void prune_manifests(const std::string& checkpoints, int keep, const Reached& reached);

/// Every rank: drops its parts that no manifest names and that are older than the newest intact manifest. A damaged one
/// still keeps its parts: it may be put back from a copy.
void prune_parts(const std::string& checkpoints, PartStore& store);

/// At the start of a service: drops every part that no manifest names, but complete ones that this launch (`job`)
/// wrote: they may be reported already, and a manifest may come to name them at any time.
void drop_unnamed_parts(const std::string& checkpoints, PartStore& store, std::uint64_t job);

}  // namespace ganymede::checkpoint
