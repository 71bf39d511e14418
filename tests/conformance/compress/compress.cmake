# Tests of include/trestle/compress.h over communicators of this process and of several.
if(TARGET trestle)
  trestle_test(NAME compress_api_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/compress_choice_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_end_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_misuse_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_oracle.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_sums_test.cpp)
  # On a work queue that stands for a device, without the express path, and with several helper threads.
  trestle_test_run(NAME compress_api_delayed_test OF compress_api_test LABEL conformance TIMEOUT 900
                   ENVIRONMENT RANKS_TRESTLE_WORK_DELAY=100us RANKS_TRESTLE_EXPRESS=0 RANKS_TRESTLE_PROGRESS_THREADS=3)
endif()
