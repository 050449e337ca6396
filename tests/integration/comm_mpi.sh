#!/usr/bin/env bash
# runs: always
# The collectives of comm_mpi between processes: 1, 2, 3 and 4 ranks, whatever the number of cores.
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
command -v mpirun >/dev/null 2>&1 || { echo "no mpirun (Debian: openmpi-bin)"; exit 77; }
[ -f "$build/lib/gestalt/plugins/comm_mpi/libcomm_mpi.so" ] || { echo "comm_mpi is not built"; exit 77; }
# Tests of a bare machine run as root, which Open MPI asks to be told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1
failed=0
for ranks in 1 2 3 4; do
  out=$(timeout 120 mpirun -np "$ranks" "$build/bin/comm_ranks" gestalt.comm_mpi gestalt.mpi 2>&1)
  status=$?
  if [ "$status" -ne 0 ] || [ "$(grep -c 'all equal' <<<"$out")" -ne "$ranks" ]; then
    echo "[$ranks ranks] exit code $status"
    echo "$out"
    failed=1
  fi
done
exit "$failed"
