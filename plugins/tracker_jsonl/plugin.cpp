#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.tracker_jsonl", "0.1.0")
