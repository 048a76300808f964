#pragma once

#include <string>
#include <vector>

#include "qualify/store/bundle.hpp"

/// The one serialiser of bundles and its reader. Internal to this module.
namespace qualify::store {

[[nodiscard]] Json descriptor_json(const Descriptor& descriptor);
/// Errors: integrity.
[[nodiscard]] Result<Descriptor> read_descriptor(const Json& json, const std::string& context);

/// The OCI manifest over a config blob and the layers that it names.
[[nodiscard]] Json manifest_json(const Bundle& bundle, const Descriptor& config);
/// Every blob that the config names, in manifest order.
[[nodiscard]] std::vector<Descriptor> layers_of(const Bundle& bundle);

/// Reads what to_json wrote; `digest` and data paths stay empty. Strict: a missing or unknown
/// member is an error. Errors: integrity, unsupported (another schema version).
[[nodiscard]] Result<Bundle> read_config(const std::string& bytes, const std::string& context);

/// The config that an OCI manifest names, with every other part of the manifest checked to be as
/// manifest_json writes it once the config is known.
[[nodiscard]] Result<Descriptor> read_manifest(const std::string& bytes,
                                               const std::string& context);

}  // namespace qualify::store
