#pragma once

#include <string>

#include "plugins/report/run_data.h"

namespace gestalt::report {

// The page about a run: one HTML text without anything from elsewhere.
std::string page_of(const RunData& run);

// The chart of the loss alone, as a picture for other pages.
std::string loss_picture(const RunData& run);

// Writes it as a whole to a file; empty: report.html in the run's folder. Returns the path.
std::string write_page(const RunData& run, const std::string& file = {});

}  // namespace gestalt::report
