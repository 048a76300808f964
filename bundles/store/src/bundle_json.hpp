#pragma once

#include "qualify/base/json.hpp"
#include "qualify/store/bundle.hpp"

/// The one serialiser of bundles: config blob and manifest.
namespace qualify::store {

[[nodiscard]] Json config_json(const Bundle& bundle);
/// `digest` is the manifest's. Errors: integrity.
[[nodiscard]] Result<Bundle> bundle_from_config(const Json& config, const Digest& digest);

[[nodiscard]] Json manifest_json(const Bundle& bundle, const Descriptor& config);
[[nodiscard]] Json descriptor_json(const Descriptor& descriptor);
/// Throws nlohmann and expected exceptions on what is no descriptor.
[[nodiscard]] Descriptor descriptor_from(const Json& json);

}  // namespace qualify::store
