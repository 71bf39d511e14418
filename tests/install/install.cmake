# Tests the installed package as outside programs see it, and the symbols that the library exports.
if(TARGET trestle AND NOT TRESTLE_SANITIZE AND NOT TRESTLE_COVERAGE)
  file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/trestle/*.h)
  add_test(NAME exports_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/exports_test.sh
    $<TARGET_FILE:trestle> ${public_headers})
  set_tests_properties(exports_test PROPERTIES LABELS local TIMEOUT 60)
endif()
if(TARGET trestle_static AND TARGET trestle_cli AND TARGET trestle_perf AND SODIUM_FOUND AND NOT TRESTLE_SANITIZE AND NOT TRESTLE_COVERAGE)
  add_test(NAME install_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/install_test.sh
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
  add_test(NAME deb_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/deb_test.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(install_test deb_test PROPERTIES LABELS local TIMEOUT 240 ENVIRONMENT "${test_environment}"
                                                        SKIP_RETURN_CODE 77)
endif()
