#include "cluster.hpp"

namespace qualify::test {

const char* const kClusterFolder = CLUSTER_FOLDER;

}  // namespace qualify::test
