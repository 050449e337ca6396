// Precompiled for the tests (see GESTALT_PCH). A file still includes what it uses.
#pragma once

#include "core/precompiled.h"
#include "tests/catch_compat.hpp"
