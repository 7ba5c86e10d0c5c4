# What a plugin is built against, as a package of its own: `cmake --install BUILD --component plugins --prefix FOLDER`
# puts the ABI's header and GanymedeConfig.cmake there, for find_package(Ganymede) and Ganymede::optimizer_plugin.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
add_library(optimizer_plugin INTERFACE)
target_sources(optimizer_plugin INTERFACE FILE_SET HEADERS
  BASE_DIRS ${CMAKE_SOURCE_DIR}/common/optimizer_abi
  FILES ${CMAKE_SOURCE_DIR}/common/optimizer_abi/ganymede_optimizer.h)
install(TARGETS optimizer_plugin EXPORT Ganymede
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ganymede COMPONENT plugins)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Ganymede)
install(EXPORT Ganymede NAMESPACE Ganymede:: FILE GanymedeConfig.cmake DESTINATION ${package} COMPONENT plugins)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/GanymedeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/GanymedeConfigVersion.cmake DESTINATION ${package} COMPONENT plugins)
