#pragma once

#include <vector>

#include "qualify/policy/judge.hpp"

namespace qualify::policy {

[[nodiscard]] Judgement judge_localization(const Gate& gate, const std::vector<RunEvidence>& runs);

}  // namespace qualify::policy
