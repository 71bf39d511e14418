# What ranks must agree on about their rails.
if(TARGET trestle)
  trestle_test(NAME api_rails_test LABEL conformance LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_rails_test.cpp)
endif()
