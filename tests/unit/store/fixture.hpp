#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "qualify/base/files.hpp"
#include "qualify/store/bundle.hpp"
#include "support/git_repo.hpp"
#include "support/temp_folder.hpp"

namespace qualify::store {

/// A repository, a config, data and a spec over them, below one folder.
struct Fixture {
  test::TempFolder folder;
  test::GitRepo repo{folder / "code"};
  std::string spec_text = R"(schema_version: 1
name: demo
recipe: proxy
code: {trainer: {repository: code}}
configs: {train: {file: train.yaml}}
environment: {NCCL_ALGO: Ring}
arms:
  deterministic: {arguments: [--deterministic-mode]}
  nondeterministic:
data: {corpus: {path: corpus}}
seeds: [7]
launch: {argv: [python3, '{code.trainer}/train.py', --config, '{config.train}', --seed, '{seed}']}
outputs: [{kind: metrics, path: metrics.jsonl}]
)";

  Fixture() {
    repo.write("train.py", "print('hello')\n");
    repo.write("lib/x.py", "x = 1\n");
    repo.commit();
    write("train.yaml", "layers: 4\n");
    write("corpus/a.bin", "aaaa");
    write("corpus/sub/b.bin", "bbbb");
  }
  void write(const std::string& path, const std::string& content) const {
    fs::create_directories((folder / path).parent_path());
    std::ofstream(folder / path, std::ios::binary) << content;
  }
  [[nodiscard]] BlobStore store(const std::string& name = "store") const {
    return BlobStore::open(folder / name).value();
  }
  [[nodiscard]] Result<Bundle> seal(const std::string& name = "store",
                                    const SealOptions& options = {}) const {
    write("bundle.yaml", spec_text);
    auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    if (!spec) return tl::unexpected(spec.error());
    auto target = store(name);
    return store::seal(*spec, target, options);
  }
  void replace(const std::string& from, const std::string& to) {
    const auto at = spec_text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    spec_text.replace(at, from.size(), to);
  }
};

/// With data and a container larger than one piece of a copy, so that there is a moment in the
/// middle of it.
struct LargeFixture : Fixture {
  LargeFixture() {
    std::string large(3U << 20U, 'x');
    for (std::size_t i = 0; i < large.size(); i += 4096) large[i] = static_cast<char>(i / 4096);
    write("corpus/large.bin", large);
    test::run({"mksquashfs", (folder / "corpus").string(), (folder / "image.sqsh").string(),
               "-quiet", "-no-progress", "-noI", "-noD", "-noF"});
    replace("seeds:", "container: {kind: sqsh, file: image.sqsh}\nseeds:");
    write("bundle.yaml", spec_text);
  }
};

}  // namespace qualify::store
