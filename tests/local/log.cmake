if(SODIUM_FOUND)
  trestle_test(NAME log_lines_test LABEL local LIBS trestle_api_calls SOURCES ${CMAKE_CURRENT_LIST_DIR}/log_lines_test.cpp)
endif()
