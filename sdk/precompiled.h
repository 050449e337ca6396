// Precompiled for the plugins of this tree (see GESTALT_PCH): all of plugin.hpp but the macros that read an id of the
// build. A file still includes what it uses.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "gestalt/checkpoint.hpp"
#include "gestalt/comm.hpp"
#include "gestalt/dataset.hpp"
#include "gestalt/device.hpp"
#include "gestalt/format.hpp"
#include "gestalt/kernel.hpp"
#include "gestalt/module.hpp"
#include "gestalt/op.hpp"
#include "gestalt/ops.hpp"
#include "gestalt/optimizer.hpp"
#include "gestalt/task.hpp"
#include "gestalt/tokenizer.hpp"
#include "gestalt/tracker.hpp"
