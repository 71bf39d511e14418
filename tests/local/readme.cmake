# The README's program compiles as C99 with the public header and prints what the README says.
if(TARGET trestle AND SODIUM_FOUND)
  add_test(NAME readme_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/readme_test.sh
    ${PROJECT_SOURCE_DIR} $<TARGET_FILE_DIR:trestle> ${CMAKE_C_COMPILER} "${TRESTLE_SANITIZE}")
  set_tests_properties(readme_test PROPERTIES LABELS local TIMEOUT 120 ENVIRONMENT "${test_environment}")
endif()
