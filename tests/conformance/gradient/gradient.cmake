# Tests of include/trestle/gradient.h over communicators of this process and of several.
if(TARGET trestle)
  trestle_test(NAME gradient_api_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gradient_model.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_misuse_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_sums_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_update_test.cpp)
endif()
