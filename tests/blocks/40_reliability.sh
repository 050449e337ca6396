# Broken plugins, mutated manifests and configurations, a bare Debian root (the last only with --all).
# runs: always
. tests/blocks/report.sh
check_scripts tests/reliability
