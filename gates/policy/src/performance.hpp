#pragma once

#include "qualify/policy/judge.hpp"

namespace qualify::policy {

[[nodiscard]] Judgement judge_performance(const Gate& gate, const std::vector<RunEvidence>& runs);

}  // namespace qualify::policy
