// seal_once [--settled] [--one-thread] SPEC STORE | seal_once --import SOURCE STORE
//
// The smallest program that seals or imports: tests run it under other users, locales, umasks, and
// kill it at every step. Prints the digest.
//   --settled     inputs count as unchanged for long, however young they are
//   --one-thread  one input after the other, so that steps have an order
#include <iostream>
#include <string>

#include "qualify/store/transfer.hpp"

/// It runs under strace, where LeakSanitizer cannot work: off, in builds that have one.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): the runtime's name
  return 1;
}

int main(int argc, char** argv) {
  using namespace qualify;
  bool import = false;
  store::SealOptions options;
  for (int i = 1; i < argc - 2; ++i) {
    const std::string flag = argv[i];
    if (flag == "--import") import = true;
    if (flag == "--settled") options.settle = std::chrono::hours(-1);
    if (flag == "--one-thread") options.jobs = 1;
  }
  if (argc < 3) return 64;
  const auto stop = [](const Error& error) {
    std::cerr << error.describe() << '\n';
    return static_cast<int>(exit_for(error.code));
  };
  auto store = store::BlobStore::open(argv[argc - 1]);
  if (!store) return stop(store.error());
  if (import) {
    const auto digests = store::import_bundles(*store, argv[argc - 2]);
    if (!digests) return stop(digests.error());
    std::cout << digests->at(0).str() << '\n';
    return 0;
  }
  const auto spec = spec::read_bundle_spec(argv[argc - 2]);
  if (!spec) return stop(spec.error());
  const auto bundle = store::seal(*spec, *store, options);
  if (!bundle) return stop(bundle.error());
  std::cout << bundle->digest.str() << '\n';
  return 0;
}
