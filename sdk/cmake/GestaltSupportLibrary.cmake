# gestalt_support_library(NAME support_bpe SOURCES a.cpp ... [LINK private targets...])
#
# A static library under sdk/support that plugins may link, as target gestalt_<NAME>; Gestalt::<NAME> here and in the
# installed package.
function(gestalt_support_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LINK")
  set(target gestalt_${arg_NAME})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(Gestalt::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME} POSITION_INDEPENDENT_CODE ON
                                             CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${target} PUBLIC gestalt_support PRIVATE $<BUILD_INTERFACE:gestalt_options> ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY GESTALT_SUPPORT_LIBRARIES ${target})
endfunction()
