#!/usr/bin/env bash
# install-packages.sh LIST…
#
# Installs the Debian packages named in the lists that are not installed yet, and says which.
# A list has one package a line; '#' starts a comment. A path after a package means: not needed where
# that file is there already, from whatever package (Node.js brings its own npm outside Debian).
#
# Debian 12, as root or through sudo. Needs no network when nothing is missing.
# Exit: 0 all are installed; 2 they cannot be installed here (another distribution, no root): the
# packages that are needed are printed; otherwise apt-get's own failure.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

if (($# == 0)); then
  say "usage: install-packages.sh LIST…"
  exit 2
fi

packages=()
for list in "$@"; do
  if [[ ! -r $list ]]; then
    say "install-packages: cannot read $list"
    exit 2
  fi
  while read -r package instead _; do
    [[ -n $package && ! (-n $instead && -e $instead) ]] && packages+=("$package")
  done < <(sed 's/#.*//' "$list")
done

# shellcheck disable=SC1091
distribution=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-unknown}" "${VERSION_ID:-}") ||
  distribution="an unknown system"
if [[ $distribution != "debian 12" ]]; then
  say "install-packages: this is $distribution; packages are installed by this script on Debian 12 only."
  say "Needed are these, by their Debian 12 names:"
  printf '  %s\n' "${packages[@]}" | sort -u >&2
  say "Once they are there, build and test with:"
  say "  cmake --preset dev && cmake --build --preset dev && ctest --preset dev"
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  # ${db:…} is dpkg-query's own syntax.
  # shellcheck disable=SC2016
  state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1) || true
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    say "install-packages: neither root nor sudo. As root, run:"
    say "  apt-get install --no-install-recommends ${missing[*]}"
    exit 2
  fi
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -q \
    -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
refresh() {
  say "Refreshing the package lists (apt-get update)"
  # A third party's repository that does not answer is no reason to stop: the install decides.
  apt update >&2 || say "install-packages: apt-get update reported a problem; going on"
}
known_to_apt() {
  local package
  for package in "${missing[@]}"; do
    apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || return 1
  done
}

say "Installing ${#missing[@]} packages: ${missing[*]}"
known_to_apt || refresh
if ! apt install --yes --no-install-recommends "${missing[@]}" >&2; then
  # Old lists name files that the mirror no longer has; and mirrors fail for a moment.
  say "install-packages: apt-get install failed; trying once more with fresh lists"
  refresh
  apt install --yes --no-install-recommends "${missing[@]}" >&2
fi
