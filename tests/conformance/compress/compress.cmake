# Tests of include/trestle/compress.h over communicators of this process and of several.
if(TARGET trestle)
  trestle_test(NAME compress_api_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/compress_choice_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_end_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_misuse_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_oracle.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_sums_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compress_types_test.cpp)
  # On a work queue that stands for a device, without the express path, and with several helper threads.
  trestle_test_run(NAME compress_api_delayed_test OF compress_api_test LABEL conformance TIMEOUT 900
                   ARGS --gtest_filter=CompressedSums.*:CompressedTypes.*
                   ENVIRONMENT ${delayed} RANKS_TRESTLE_EXPRESS=0 RANKS_TRESTLE_PROGRESS_THREADS=3)
  # Looks below the C API, whose functions it finds in the library.
  trestle_test(NAME compress_exchange_test LABEL conformance LIBS trestle_api_calls trestle_compress_exchange SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/compress_exchange_test.cpp)
  if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
    trestle_test(NAME compress_faults_test LABEL conformance LIBS trestle_api_calls TIMEOUT 900 SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/compress_faults_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/compress_oracle.cpp
      ${CMAKE_CURRENT_LIST_DIR}/../faults/fault_points.cpp
      ${PROJECT_SOURCE_DIR}/tests/support/allocations.cpp)
  endif()
endif()
