// expand_hostlist against libslurm's own slurm_hostlist: in the job there is no libslurm, and the
// two must never read a list differently.
#include "qualify/scheduler/hostlist.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "version.hpp"

namespace qualify::scheduler::slurm {
namespace {

/// In libslurm's order; nothing when it does not take the text.
std::optional<std::vector<std::string>> by_libslurm(const std::string& text) {
  const Hostlist list = slurm_hostlist_create(text.c_str());
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> names;
  while (char* name = slurm_hostlist_shift(list)) {
    names.emplace_back(name);
    std::free(name);
  }
  slurm_hostlist_destroy(list);
  return names;
}

std::string padded(int number, int width) {
  std::string digits = std::to_string(number);
  if (static_cast<int>(digits.size()) < width) {
    digits.insert(0, static_cast<std::size_t>(width) - digits.size(), '0');
  }
  return digits;
}

/// "0007-0012" or "3".
rc::Gen<std::string> range() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 1200), rc::gen::inRange(0, 30), rc::gen::inRange(1, 6)),
      [](const std::tuple<int, int, int>& of) {
        const auto [low, more, width] = of;
        const std::string first = padded(low, width);
        return more == 0 ? first : first + "-" + padded(low + more, width);
      });
}

/// "gpu[0007-0012,0020]", "login1", "rack[1-2]n[0-3]", "gpu[1-3]x".
rc::Gen<std::string> name() {
  const auto word = rc::gen::map(rc::gen::inRange(0, 6), [](int which) {
    constexpr const char* kWords[] = {"gpu", "n", "rack-a", "h200-", "x1y", "login"};
    return std::string(kWords[which]);
  });
  const auto bracket =
      rc::gen::map(rc::gen::withSize([](int) {
                     return rc::gen::container<std::vector<std::string>>(3, range());
                   }),
                   [](const std::vector<std::string>& ranges) {
                     std::string all;
                     for (const auto& one : ranges) all += (all.empty() ? "[" : ",") + one;
                     return all + "]";
                   });
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::pair(word, rc::gen::inRange(0, 3000)),
                   [](const auto& of) { return of.first + std::to_string(of.second); }),
      rc::gen::map(rc::gen::pair(word, bracket),
                   [](const auto& of) { return of.first + of.second; }),
      rc::gen::map(rc::gen::tuple(word, range(), bracket), [](const auto& of) {
        return std::get<0>(of) + "[" + std::get<1>(of) + "]c" + std::get<2>(of);
      }));
}

RC_GTEST_PROP(Hostlist, IsReadAsLibslurmReadsIt, ()) {
  const auto names = *rc::gen::container<std::vector<std::string>>(
      static_cast<std::size_t>(*rc::gen::inRange(1, 5)), name());
  std::string text;
  for (const auto& one : names) text += (text.empty() ? "" : ",") + one;
  const auto ours = expand_hostlist(text);
  const auto theirs = by_libslurm(text);
  RC_ASSERT(ours.has_value());
  RC_ASSERT(theirs.has_value());
  // The job asks for who is there; libslurm takes a name that comes twice as often.
  std::vector<std::string> left = *ours;
  std::vector<std::string> right = *theirs;
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  RC_ASSERT(left == right);
}

RC_GTEST_PROP(Hostlist, WhatSlurmWritesIsReadBackWhole, ()) {
  // As SLURM_JOB_NODELIST comes about: names, folded by libslurm.
  const auto numbers =
      *rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 3072)));
  const int width = *rc::gen::inRange(1, 6);
  const Hostlist list = slurm_hostlist_create("");
  std::vector<std::string> names;
  for (const int number : numbers) {
    names.push_back("gpu" + padded(number, width));
    slurm_hostlist_push_host(list, names.back().c_str());
  }
  char* folded = slurm_hostlist_ranged_string_malloc(list);
  const std::string text = folded;
  std::free(folded);
  slurm_hostlist_destroy(list);
  auto ours = expand_hostlist(text);
  RC_ASSERT(ours.has_value());
  std::sort(ours->begin(), ours->end());
  std::sort(names.begin(), names.end());
  RC_ASSERT(*ours == names);
}

}  // namespace
}  // namespace qualify::scheduler::slurm
