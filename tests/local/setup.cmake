# Tests what scripts/setup installs, and that it continues without optional packages.
add_test(NAME setup_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/setup_test.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(setup_test PROPERTIES LABELS local TIMEOUT 60)
