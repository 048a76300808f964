#include "qualify/archive/tar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qualify/base/digest.hpp"
#include "support/git_repo.hpp"
#include "support/temp_folder.hpp"

namespace qualify::archive {
namespace {

Sink into(std::string& out) {
  return [&out](std::span<const std::byte> piece) -> Result<void> {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  };
}

std::string sample() {
  std::string out;
  TarWriter tar(into(out));
  const std::string text = "hello\n";
  EXPECT_TRUE(tar.begin_file("a.txt", false, text.size()));
  EXPECT_TRUE(tar.write(std::as_bytes(std::span(text))));
  EXPECT_TRUE(tar.begin_file("bin/" + std::string(120, 'n'), true, 0));
  EXPECT_TRUE(tar.symlink("link", "a.txt"));
  EXPECT_TRUE(tar.begin_file("\xc3\xa9", false, 0));
  EXPECT_TRUE(tar.finish());
  return out;
}

Source from(const std::string& text) {
  return [&text, at = std::size_t{0}](std::span<std::byte> buffer) mutable -> Result<std::size_t> {
    const std::size_t count = std::min(buffer.size(), text.size() - at);
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()) + at, count, buffer.data());
    at += count;
    return count;
  };
}

TEST(Tar, BytesAreFixedForAllTime) {
  // A change here changes the digest of every bundle.
  EXPECT_EQ(sha256(sample()).hex(),
            "1a15b7a647770e7c23ec231d21d3093df38fa7be09e14c076cb1acd7a49c04d7");
}

TEST(Tar, WhatIsWrittenIsReadBack) {
  const std::string bytes = sample();
  TarReader tar(from(bytes));
  std::vector<std::string> seen;
  for (;;) {
    const auto entry = tar.next().value();
    if (!entry) break;
    seen.push_back(entry->path + (entry->executable ? "*" : "") +
                   (entry->kind == Entry::Kind::symlink ? "->" + entry->target : ""));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("a.txt", "bin/" + std::string(120, 'n') + "*",
                                           "link*->a.txt", "\xc3\xa9"));
}

TEST(Tar, GnuTarReadsIt) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder / "x.tar", sample()));
  test::run({"tar", "xf", "x.tar"}, folder.path());
  EXPECT_EQ(read_file(folder / "a.txt").value(), "hello\n");
  EXPECT_EQ(fs::read_symlink(folder / "link"), "a.txt");
  EXPECT_TRUE(fs::exists(folder.path() / "bin" / std::string(120, 'n')));
  EXPECT_TRUE(fs::exists(folder / "\xc3\xa9"));
}

TEST(Tar, ReadsWhatGnuTarWrites) {
  for (const char* format : {"gnu", "pax", "ustar"}) {
    const test::TempFolder folder;
    const std::string deep = "folder/" + std::string(90, 'd') + "/" + std::string(60, 'f');
    fs::create_directories((folder / deep).parent_path());
    ASSERT_TRUE(write_file_atomic(folder / deep, "x"));
    test::run({"tar", "cf", "x.tar", std::string("--format=") + format, "folder"}, folder.path());
    const std::string bytes = read_file(folder / "x.tar").value();
    TarReader tar(from(bytes));
    std::string last;
    while (const auto entry = tar.next().value()) last = entry->path;
    EXPECT_EQ(last, deep) << format;
  }
}

TEST(Tar, EveryCutIsFound) {
  const std::string whole = sample();
  for (std::size_t size = 0; size + 1024 < whole.size(); size += 64) {
    const std::string cut = whole.substr(0, size);
    TarReader tar(from(cut));
    Result<std::optional<Entry>> entry;
    do {
      entry = tar.next();
    } while (entry && *entry);
    EXPECT_FALSE(entry) << size;
  }
}

}  // namespace
}  // namespace qualify::archive
