# The torture test: random programs and faults, through the public header only. Three runs of 10 s. The program can also
# run longer by hand (options: beginning of main.cpp).
if(TARGET trestle AND SODIUM_FOUND)
  add_executable(torture
    ${PROJECT_SOURCE_DIR}/tests/support/any_call.cpp
    ${CMAKE_CURRENT_LIST_DIR}/call.cpp
    ${CMAKE_CURRENT_LIST_DIR}/elements.cpp
    ${CMAKE_CURRENT_LIST_DIR}/execution.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fault.cpp
    ${CMAKE_CURRENT_LIST_DIR}/flood.cpp
    ${CMAKE_CURRENT_LIST_DIR}/job.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lane.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lane_calls.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lane_comms.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lane_order.cpp
    ${CMAKE_CURRENT_LIST_DIR}/leaks.cpp
    ${CMAKE_CURRENT_LIST_DIR}/main.cpp
    ${CMAKE_CURRENT_LIST_DIR}/memory.cpp
    ${CMAKE_CURRENT_LIST_DIR}/process.cpp
    ${CMAKE_CURRENT_LIST_DIR}/program.cpp
    ${CMAKE_CURRENT_LIST_DIR}/program_maker.cpp
    ${CMAKE_CURRENT_LIST_DIR}/run_end.cpp
    ${CMAKE_CURRENT_LIST_DIR}/run_job.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verdict.cpp)
  target_include_directories(torture PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(torture PRIVATE trestle_delayed Threads::Threads)
  foreach(faults none all flood)
    set(name torture_${faults})
    add_test(NAME ${name} COMMAND torture --faults ${faults})
    # Ranks that exit or are killed in the middle leave memory behind. That is no leak.
    set_tests_properties(${name} PROPERTIES LABELS local TIMEOUT 900 RUN_SERIAL ON ENVIRONMENT "${test_environment};ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endif()
