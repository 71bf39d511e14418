# Programs that fork, and functions of the user that call the library, through the public header only.
if(TARGET trestle)
  add_library(trestle_every_call STATIC ${CMAKE_CURRENT_LIST_DIR}/every_call.cpp ${PROJECT_SOURCE_DIR}/tests/support/forked.cpp)
  target_include_directories(trestle_every_call PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(trestle_every_call PRIVATE TRESTLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(trestle_every_call PUBLIC trestle_api_calls)
  trestle_test(NAME api_fork_test LABEL local LIBS trestle_every_call SOURCES ${CMAKE_CURRENT_LIST_DIR}/fork_test.cpp)
  trestle_test(NAME api_redop_calls_test LABEL local LIBS trestle_every_call SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/redop_calls_test.cpp)
  if(SODIUM_FOUND) # ranks in several processes must prove that they belong to the job
    trestle_test(NAME api_fork_processes_test LABEL local LIBS trestle_every_call SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/fork_processes_test.cpp)
  endif()
endif()
