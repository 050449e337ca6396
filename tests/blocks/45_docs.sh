# The marked snippets of README.md and docs/ run as they stand.
# runs: always
. tests/blocks/report.sh
check docs/snippets bash tests/docs/snippets.sh
