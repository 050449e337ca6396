# gestalt_add_plugin(NAME adam ID gestalt.adam SOURCES a.cpp ... [LINK targets...] [AUTHORED plugin.toml]
#                    [COMPONENT install-component])
#
# A plugin as target plugin_<NAME>: <build>/lib/gestalt/plugins/<NAME>/lib<NAME>.so with its manifest plugin.toml beside
# it, written after every link by `gestalt plugin pack` from the library and the authored lines (default: plugin.toml of
# the source folder). ID must equal the one in GESTALT_PLUGIN. LINK Gestalt::support for strict JSON and the like.

# CMake 3.25 does not know this flag of nvcc.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()

# How the sources of a plugin are compiled.
function(gestalt_plugin_flags target)
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF C_STANDARD 11 C_EXTENSIONS OFF
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra>
    # nvcc calls the variables of GESTALT_KERNEL unused.
    $<$<COMPILE_LANGUAGE:CUDA>:--diag-suppress=177>
    # -Wrestrict: GCC bug 105329, gone in 13.
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique;-Wno-restrict>")
  if(TARGET gestalt_options)
    target_link_libraries(${target} PRIVATE gestalt_options)
  endif()
endfunction()

function(gestalt_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;ID;AUTHORED;COMPONENT" "SOURCES;LINK")
  foreach(needed NAME ID SOURCES)
    if(NOT arg_${needed})
      message(FATAL_ERROR "[gestalt_add_plugin] ${needed} is missing, got '${ARGN}'")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "[gestalt_add_plugin] unknown argument, got '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_AUTHORED)
    set(arg_AUTHORED plugin.toml)
  endif()
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT plugins)
  endif()
  cmake_path(ABSOLUTE_PATH arg_AUTHORED BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})

  set(target plugin_${arg_NAME})
  set(folder ${CMAKE_BINARY_DIR}/lib/gestalt/plugins/${arg_NAME})
  set(export_list ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/gestalt_plugin.map)
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX lib OUTPUT_NAME ${arg_NAME} SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${folder}
    # The installed file is the built one, byte for byte: the manifest holds its hash.
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH ""
    LINK_DEPENDS "${export_list};${arg_AUTHORED}")
  gestalt_plugin_flags(${target})
  target_compile_definitions(${target} PRIVATE GESTALT_PLUGIN_ID="${arg_ID}")
  if(TARGET gestalt_precompiled)
    target_precompile_headers(${target} REUSE_FROM gestalt_precompiled)
  endif()
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${export_list}" LINKER:--exclude-libs,ALL LINKER:-z,noexecstack)
  target_link_libraries(${target} PRIVATE Gestalt::sdk ${arg_LINK})
  # clang leaves the symbols of a sanitizer's runtime to the executable.
  if(NOT GESTALT_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()

  if(TARGET gestalt_launcher)
    set(launcher gestalt_launcher)
    add_dependencies(${target} gestalt_launcher)
  elseif(TARGET Gestalt::gestalt)
    set(launcher Gestalt::gestalt)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/gestalt/plugins/${arg_NAME} COMPONENT ${arg_COMPONENT})
  if(launcher)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND $<TARGET_FILE:${launcher}> plugin pack $<TARGET_FILE:${target}> --authored ${arg_AUTHORED}
              --out ${folder}/plugin.toml)
    install(FILES ${folder}/plugin.toml DESTINATION lib/gestalt/plugins/${arg_NAME} COMPONENT ${arg_COMPONENT})
  endif()
endfunction()
