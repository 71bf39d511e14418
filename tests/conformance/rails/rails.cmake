# What ranks must agree on about their rails, and what they tell of them.
if(TARGET trestle)
  trestle_test(NAME rails_agree_test LABEL conformance LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/rails_agree_test.cpp)
  trestle_test(NAME rail_stats_test LABEL conformance LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/rail_stats_test.cpp)
endif()
