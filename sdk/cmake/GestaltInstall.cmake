# What a plugin author gets: headers, support library, launcher (for `plugin pack`) and the CMake package, all as install
# component "sdk". Paths in the package are relative, so the folder may be moved.
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/Gestalt)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/include/gestalt DESTINATION include COMPONENT sdk
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS gestalt_sdk EXPORT GestaltTargets)

set(GESTALT_NEEDS_ZLIB FALSE)
if(TARGET gestalt_support)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/support DESTINATION include/gestalt/sdk COMPONENT sdk
          FILES_MATCHING PATTERN "*.h")
  install(TARGETS gestalt_support EXPORT GestaltTargets ARCHIVE DESTINATION lib COMPONENT sdk)
  get_target_property(libraries gestalt_support LINK_LIBRARIES)
  if("ZLIB::ZLIB" IN_LIST libraries)
    set(GESTALT_NEEDS_ZLIB TRUE)
  endif()
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
