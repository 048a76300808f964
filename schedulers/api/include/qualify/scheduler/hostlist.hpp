#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"

namespace qualify::scheduler {

/// Slurm's short form of many names, for those who have no libslurm at hand (inside a job):
/// "gpu[0001-0003,0007],login1" -> gpu0001, gpu0002, gpu0003, gpu0007, login1; several brackets in
/// one name multiply. The order is that of the text; repeats stay. At most 65,536 names, as Slurm.
/// Errors: invalid_input. Source: the HOSTLIST section of Slurm's scontrol(1); tests/slurm compares
/// with libslurm.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// The other way, for people: sorted names, those that differ in their last number alone together.
/// expand_hostlist() gives the same names back, sorted, unless a name holds brackets or commas.
[[nodiscard]] std::string compress_hostlist(std::vector<std::string> names);

}  // namespace qualify::scheduler
