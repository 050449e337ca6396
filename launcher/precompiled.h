// Precompiled for the launcher (see GESTALT_PCH). A file still includes what it uses.
#pragma once

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include "core/precompiled.h"
#include "core/session/session.h"
