#include <fmt/format.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdint>

#include "qualify/journal/database.hpp"

namespace qualify::journal {

namespace {

struct Known {
  std::uint32_t magic;
  const char* name;
  bool local;
};

// statfs(2), <linux/magic.h> and the file systems' own sources. SQLite's write-ahead log needs
// shared memory between all processes that have the file open, so only file systems that are on one
// machine by construction are local; the rest are named for the message.
constexpr Known kKnown[] = {
    {0xEF53, "ext4", true},           {0x58465342, "xfs", true},
    {0x9123683E, "btrfs", true},      {0x01021994, "tmpfs", true},
    {0x858458F6, "ramfs", true},      {0x2FC12FC1, "zfs", true},
    {0xF2F52010, "f2fs", true},       {0xCA451A4E, "bcachefs", true},
    {0x794C7630, "overlayfs", true},  {0x6969, "nfs", false},
    {0x0BD00BD0, "lustre", false},    {0x47504653, "gpfs", false},
    {0x19830326, "beegfs", false},    {0x00C36400, "ceph", false},
    {0xFF534D42, "cifs", false},      {0xFE534D42, "smb2", false},
    {0x01021997, "9p", false},        {0x65735546, "fuse", false},
    {0x5346414F, "afs", false},       {0xAAD7AAEA, "panfs", false},
    {0x7461636F, "ocfs2", false},     {0x01161970, "gfs2", false},
    {0x013111A8, "glusterfs", false},
};

}  // namespace

Result<FileSystem> file_system_of(const std::filesystem::path& folder) {
  struct statfs status {};
  int done = 0;
  do {
    done = ::statfs(folder.c_str(), &status);
  } while (done != 0 && errno == EINTR);
  if (done != 0) return fail_errno(errno, "cannot tell the file system", folder.string());
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  for (const Known& known : kKnown) {
    if (known.magic == magic) return FileSystem{known.name, known.local};
  }
  return FileSystem{fmt::format("0x{:08x}", magic), false};
}

}  // namespace qualify::journal
