// What is made of a job's record.
#include <gtest/gtest.h>

#include <set>

#include "convert.hpp"

namespace qualify::scheduler::slurm {
namespace {

TEST(JobRecord, EveryBaseStateHasAMeaningAndAnUnknownOneIsNotRunning) {
  std::set<JobState> seen;
  for (std::uint32_t base = 0; base < JOB_END; ++base) {
    const JobState state = job_state(base);
    EXPECT_NE(state, JobState::unknown) << base;
    EXPECT_TRUE(seen.insert(state).second) << name_of(state) << " twice";
  }
  for (std::uint32_t base = JOB_END; base <= JOB_STATE_BASE; ++base) {
    EXPECT_EQ(job_state(base), JobState::unknown) << base;
  }
}

TEST(JobRecord, FlagsBesideTheBaseStateDoNotHideIt) {
  EXPECT_EQ(job_state(JOB_RUNNING | JOB_CONFIGURING), JobState::running);
  EXPECT_EQ(job_state(JOB_PENDING | JOB_RESV_DEL_HOLD), JobState::pending);
  EXPECT_EQ(job_state(JOB_NODE_FAIL | JOB_REQUEUE), JobState::node_fail);
  // Ended, and its nodes are not free yet.
  EXPECT_EQ(job_state(JOB_COMPLETE | JOB_COMPLETING), JobState::completing);
  EXPECT_EQ(job_state(JOB_RUNNING | JOB_COMPLETING), JobState::running);
}

TEST(JobRecord, ACompletingJobSaysHowItsWorkEnded) {
  slurm_job_info_t record{};
  record.job_state = JOB_TIMEOUT | JOB_COMPLETING;
  EXPECT_EQ(to_job(record).state, JobState::completing);
  EXPECT_EQ(to_job(record).ended_as, JobState::timeout);
  record.job_state = JOB_TIMEOUT;
  EXPECT_EQ(to_job(record).ended_as, JobState::unknown);
}

TEST(Failure, AControllerInStandbyHasNotRefused) {
  for (const int standby : {ESLURM_IN_STANDBY_MODE, ESLURM_IN_STANDBY_USE_BACKUP}) {
    EXPECT_EQ(failure(standby, "cannot read the jobs").value().code, Errc::unavailable);
  }
  EXPECT_EQ(failure(ESLURM_INVALID_PARTITION_NAME, "cannot submit").value().code, Errc::refused);
  EXPECT_EQ(failure(ESLURM_SUBMISSIONS_DISABLED, "cannot submit").value().code, Errc::refused);
  EXPECT_EQ(failure(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, "cannot submit").value().code,
            Errc::unavailable);
}

TEST(JobRecord, AFederatedNumberIsANumberLikeAnother) {
  slurm_job_info_t record{};
  record.job_id = 67'108'865;
  EXPECT_EQ(to_job(record).id, "67108865");
}

TEST(JobRecord, ExitCodesAndSignalsAreToldApart) {
  Job exited;
  set_exit(exited, 7 << 8);
  EXPECT_EQ(exited.exit_code, 7);
  EXPECT_EQ(exited.signal, 0);
  Job killed;
  set_exit(killed, 9);
  EXPECT_EQ(killed.exit_code, 0);
  EXPECT_EQ(killed.signal, 9);
}

TEST(JobRecord, AJobOfSomebodyElseHasNoNonceAndAnyNameOfTheirs) {
  std::string name = "caf\xe9";
  std::string comment = comment_for("q12");
  std::string user = "eve";
  slurm_job_info_t record{};
  record.name = name.data();
  record.comment = comment.data();
  record.user_name = user.data();
  record.user_id = getuid() + 1;
  record.time_limit = NO_VAL;
  const Job theirs = to_job(record);
  EXPECT_EQ(theirs.nonce, "");
  EXPECT_EQ(theirs.name, "caf\xEF\xBF\xBD");
  record.user_id = getuid();
  EXPECT_EQ(to_job(record).nonce, "q12");
}

TEST(JobRecord, OnlyACommentOfOursCarriesANonce) {
  EXPECT_EQ(nonce_of("other:q9", comment_for("q12").c_str()), "q12");
  EXPECT_EQ(nonce_of("", "qualify nonce=q12 and more"), "q12");
  for (const char* other : {"", "nonce=q12", "my qualify nonce=q12", "qualify"}) {
    EXPECT_EQ(nonce_of("bash", other), "") << other;
  }
  EXPECT_EQ(nonce_of("bash", nullptr), "");
  // A site may put its own words there.
  EXPECT_EQ(nonce_of("qualify:g:a:q12", "account checked"), "q12");
}

}  // namespace
}  // namespace qualify::scheduler::slurm
