# What a process brings along: its standard streams, its limits, the calls that its system refuses.
if(TARGET trestle AND SODIUM_FOUND)
  trestle_test(NAME process_limits_test LABEL local LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/closed_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/descriptor_limit_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/file_size_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/refused_calls_test.cpp)
endif()
