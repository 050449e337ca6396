# Installs the Debian 12 packages that Gestalt needs. Sourced by quickstart.sh and tests/run.sh, or run directly:
#   bash launcher/install_deps.sh [--with-tests]
# Only what dpkg does not know as installed is asked of apt, so a second run touches nothing and needs no network.

# What a build and the quickstart need. Catch2 is here because configuring looks for it; no test is built.
gestalt_packages_required=(
  g++ cmake ninja-build ccache pkg-config
  libboost1.81-dev libboost-filesystem1.81-dev libboost-program-options1.81-dev
  libtomlplusplus-dev libspdlog-dev libssl-dev nlohmann-json3-dev libsimdjson-dev libhdf5-dev libxxhash-dev
  libpcre2-dev zlib1g-dev libzstd-dev liblzma-dev
  catch2 bible-kjv
)

# What the test suite needs on top: a second compiler, its sanitizers and OpenMP, the benchmark library,
# git for the checks that read the list of tracked files.
gestalt_packages_tests=(
  clang libclang-rt-14-dev libomp-dev libbenchmark-dev libopenmpi-dev openmpi-bin git strace hdf5-tools procps e2fsprogs
)

# gestalt_missing_packages NAME...: prints those that are not installed.
gestalt_missing_packages() {
  local name
  for name in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
      printf '%s\n' "$name"
    fi
  done
}

# gestalt_install_deps [--with-tests]: returns 0 when everything is there, 69 when it cannot be had.
gestalt_install_deps() {
  local wanted=("${gestalt_packages_required[@]}")
  if [ "${1:-}" = --with-tests ]; then
    wanted+=("${gestalt_packages_tests[@]}")
  fi
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "[install_deps] no dpkg-query here; Gestalt is built on Debian 12. On another system install the equivalents of:" >&2
    echo "  ${wanted[*]}" >&2
    return 69
  fi
  local missing
  mapfile -t missing < <(gestalt_missing_packages "${wanted[@]}")
  if [ "${#missing[@]}" -eq 0 ]; then
    return 0
  fi

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      echo "[install_deps] ${#missing[@]} packages are missing, and this user (id $(id -u)) is not root and has no usable sudo. Run as root:" >&2
      echo "  apt-get update && apt-get install --no-install-recommends -y ${missing[*]}" >&2
      return 69
    fi
  fi
  echo "[install_deps] installing ${#missing[@]} packages: ${missing[*]}" >&2
  # env carries the settings through sudo. Recommended packages stay out: they triple the download.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y -o Dpkg::Use-Pty=0)
  local log
  log=$(mktemp)
  if ! "${apt[@]}" update >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "[install_deps] 'apt-get update' failed (above); trying to install from the lists at hand" >&2
  fi
  if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "[install_deps] apt could not install what is missing (above). When the cause is gone, run as root:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends -y ${missing[*]}" >&2
    return 69
  fi
  rm -f "$log"
  mapfile -t missing < <(gestalt_missing_packages "${wanted[@]}")
  if [ "${#missing[@]}" -ne 0 ]; then
    echo "[install_deps] still missing after apt-get install: ${missing[*]}" >&2
    return 69
  fi
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  gestalt_install_deps "$@" || exit $?
fi
