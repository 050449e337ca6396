#pragma once

#include "support/indexed/parity_report.h"

namespace gestalt::task_data {

using support::indexed::compare_cases;
using support::indexed::ParityReport;

}  // namespace gestalt::task_data
