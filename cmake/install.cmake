# What `cmake --install` puts where, the CMake package, the pkg-config file, and the Debian package of CPack.
#
# Components: runtime (library, command, perf binaries, documentation), headers (header and package files), devel (what links
# against libtrestle.so), static (libtrestle.a). Without --component all of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trestle)
set(perf_dir ${CMAKE_INSTALL_LIBEXECDIR}/trestle) # their names are those of other measuring programs: not for bin
set(nccl_dir ${CMAKE_INSTALL_LIBDIR}/trestle/nccl) # its name is that of another library: only those who ask for it find it

# ---- The libraries

target_include_directories(trestle INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS trestle EXPORT trestle_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel)
install(EXPORT trestle_shared NAMESPACE trestle:: FILE trestleShared.cmake DESTINATION ${package_dir} COMPONENT devel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/trestle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)

if(TARGET trestle_nccl)
  file(RELATIVE_PATH from_nccl /${nccl_dir} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(trestle_nccl PROPERTIES INSTALL_RPATH $ORIGIN/${from_nccl})
  install(TARGETS trestle_nccl LIBRARY DESTINATION ${nccl_dir} COMPONENT runtime NAMELINK_COMPONENT devel)
endif()

if(TARGET trestle_static)
  install(TARGETS trestle_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static)
  # Written here and not exported: C programs link it too, and an exported C++ archive wants a C++ compiler of them.
  configure_file(${CMAKE_CURRENT_LIST_DIR}/trestleStatic.cmake.in ${PROJECT_BINARY_DIR}/package/trestleStatic.cmake @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/trestleStatic.cmake DESTINATION ${package_dir} COMPONENT static)
endif()

# ---- For those who look for it

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/trestleConfig.cmake.in ${PROJECT_BINARY_DIR}/package/trestleConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/trestleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/trestleConfig.cmake ${PROJECT_BINARY_DIR}/package/trestleConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT headers)

list(TRANSFORM static_libraries PREPEND -l OUTPUT_VARIABLE pc_private)
list(JOIN pc_private " " pc_private)
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/trestle.pc.in ${PROJECT_BINARY_DIR}/package/trestle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/trestle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)

# ---- Programs and documentation. Programs find the library from where they lie, wherever that is.

file(RELATIVE_PATH from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH from_perf /${perf_dir} /${CMAKE_INSTALL_LIBDIR})
if(TARGET trestle_cli)
  set_target_properties(trestle_cli PROPERTIES INSTALL_RPATH $ORIGIN/${from_bin})
  install(TARGETS trestle_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
if(TARGET trestle_perf)
  get_property(perf_targets DIRECTORY ${PROJECT_SOURCE_DIR}/perf PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS perf_targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN/${from_perf})
      install(TARGETS ${target} RUNTIME DESTINATION ${perf_dir} COMPONENT runtime)
    endif()
  endforeach()
endif()
# As they lie in the repository, so that their links lead to each other.
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime PATTERN "*.cmake" EXCLUDE)

# ---- A Debian package: cpack -G DEB --config build/CPackConfig.cmake

set(CPACK_PACKAGE_NAME trestle)
set(CPACK_PACKAGE_VENDOR "The Trestle authors")
set(CPACK_PACKAGE_CONTACT "The Trestle authors <trestle@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "collective communication over every link that a rank has")
set(CPACK_PACKAGE_DESCRIPTION "All-reduce, all-gather, reduce-scatter and their kin between the ranks of a parallel program, over shared
memory and TCP at once, with a C API of NCCL's shape: library, header, the trestle command and measuring programs.")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/triggers) # the loader learns of the library
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libsodium-dev, libhwy-dev") # for programs that link libtrestle.a
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(DPKG_SHLIBDEPS)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6")
endif()
include(CPack)
