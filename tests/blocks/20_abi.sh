# The contract: headers under every standard, layout, exports, include rule, plugins against the installed SDK.
# runs: always
. tests/blocks/report.sh
check_scripts tests/abi
