# Leftovers of a process after its exit, and of a communicator after its destruction.
if(TARGET trestle AND SODIUM_FOUND)
  trestle_test(NAME api_exit_test LABEL local LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/ending.cpp
    ${CMAKE_CURRENT_LIST_DIR}/exit_making_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/exit_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/leftovers_test.cpp)
endif()
