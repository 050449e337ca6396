# The first-party plugins as a third party builds them: with the compiler GESTALT_PLUGIN_CXX and a static C++ runtime,
# against the installed SDK. They land where the build's own plugins would.
include(ExternalProject)

set(sdk_prefix ${CMAKE_BINARY_DIR}/sdk-prefix)
add_custom_target(gestalt_sdk_installed
  COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${sdk_prefix} --component sdk)
foreach(target ${support_libraries} gestalt_launcher)
  if(TARGET ${target})
    add_dependencies(gestalt_sdk_installed ${target})
  endif()
endforeach()

ExternalProject_Add(gestalt_plugins
  DEPENDS gestalt_sdk_installed
  SOURCE_DIR ${PROJECT_SOURCE_DIR}/plugins
  BINARY_DIR ${CMAKE_BINARY_DIR}/plugins-apart
  CMAKE_ARGS
    -DCMAKE_CXX_COMPILER=${GESTALT_PLUGIN_CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
    -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DCMAKE_MODULE_LINKER_FLAGS=-static-libstdc++\ -static-libgcc
    -DCMAKE_PREFIX_PATH=${sdk_prefix}
  BUILD_ALWAYS ON
  USES_TERMINAL_BUILD ON
  INSTALL_COMMAND ${CMAKE_COMMAND} --install . --prefix ${CMAKE_BINARY_DIR} --component plugins)
