// seal_once [--settled] SPEC STORE | seal_once --import SOURCE STORE
//
// --settled: inputs count as unchanged for long, however young they are.
// The smallest program that seals or imports: tests run it under other users, locales, umasks, and
// kill it at every step. Prints the digest.
#include <iostream>
#include <string>

#include "qualify/store/transfer.hpp"

int main(int argc, char** argv) {
  using namespace qualify;
  const bool import = argc == 4 && std::string(argv[1]) == "--import";
  const bool settled = argc == 4 && std::string(argv[1]) == "--settled";
  if (argc != 3 && !import && !settled) return 64;
  const auto stop = [](const Error& error) {
    std::cerr << error.describe() << '\n';
    return static_cast<int>(exit_for(error.code));
  };
  auto store = store::BlobStore::open(argv[argc - 1]);
  if (!store) return stop(store.error());
  if (import) {
    const auto digests = store::import_bundles(*store, argv[2]);
    if (!digests) return stop(digests.error());
    std::cout << digests->at(0).str() << '\n';
    return 0;
  }
  const auto spec = spec::read_bundle_spec(argv[argc - 2]);
  if (!spec) return stop(spec.error());
  store::SealOptions options;
  if (settled) options.settle = std::chrono::hours(-1);
  const auto bundle = store::seal(*spec, *store, options);
  if (!bundle) return stop(bundle.error());
  std::cout << bundle->digest.str() << '\n';
  return 0;
}
