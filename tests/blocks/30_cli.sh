# The gestalt command as a person types it.
# runs: always
. tests/blocks/report.sh
check_scripts tests/integration
