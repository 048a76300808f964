#pragma once

#include "qualify/base/parallel.hpp"

/// Internal to this module.
namespace qualify::store {

using qualify::effective_jobs;
using qualify::for_each_index;
using qualify::kMostJobs;

}  // namespace qualify::store
