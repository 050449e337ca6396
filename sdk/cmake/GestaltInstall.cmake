# What a plugin author gets: headers, support library, launcher (for `plugin pack`) and the CMake package, all as install
# component "sdk". Paths in the package are relative, so the folder may be moved.
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/Gestalt)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/include/gestalt DESTINATION include COMPONENT sdk
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS gestalt_sdk EXPORT GestaltTargets)

get_property(support_libraries GLOBAL PROPERTY GESTALT_SUPPORT_LIBRARIES)
list(PREPEND support_libraries gestalt_support)
set(GESTALT_NEEDS_ZLIB FALSE)
set(GESTALT_FINDS_LZMA FALSE)
set(GESTALT_FINDS_MODULES "")
if(TARGET gestalt_support)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/support DESTINATION include/gestalt/sdk COMPONENT sdk
          FILES_MATCHING PATTERN "*.h")
  install(TARGETS ${support_libraries} EXPORT GestaltTargets ARCHIVE DESTINATION lib COMPONENT sdk)
  # What the package has to look for again, on the machine of a plugin author.
  set(linked "")
  foreach(library ${support_libraries})
    get_target_property(libraries ${library} LINK_LIBRARIES)
    list(APPEND linked ${libraries})
  endforeach()
  if("ZLIB::ZLIB" IN_LIST linked)
    set(GESTALT_NEEDS_ZLIB TRUE)
  endif()
  if("LibLZMA::LibLZMA" IN_LIST linked)
    set(GESTALT_FINDS_LZMA TRUE)
  endif()
  foreach(module PCRE2=libpcre2-8 ZSTD=libzstd)
    string(REGEX REPLACE "=.*" "" name ${module})
    if("PkgConfig::${name}" IN_LIST linked)
      list(APPEND GESTALT_FINDS_MODULES ${module})
    endif()
  endforeach()
endif()
if(TARGET gestalt_launcher)
  set_target_properties(gestalt_launcher PROPERTIES EXPORT_NAME gestalt)
  install(TARGETS gestalt_launcher EXPORT GestaltTargets RUNTIME DESTINATION bin COMPONENT sdk)
endif()

install(EXPORT GestaltTargets NAMESPACE Gestalt:: DESTINATION ${package_folder} COMPONENT sdk)
configure_package_config_file(${PROJECT_SOURCE_DIR}/sdk/cmake/GestaltConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/GestaltConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GestaltConfigVersion.cmake VERSION ${PROJECT_VERSION}
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/GestaltConfig.cmake ${PROJECT_BINARY_DIR}/GestaltConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/sdk/cmake/GestaltAddPlugin.cmake ${PROJECT_SOURCE_DIR}/sdk/cmake/gestalt_plugin.map
        DESTINATION ${package_folder} COMPONENT sdk)
