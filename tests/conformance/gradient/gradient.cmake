# Tests of include/trestle/gradient.h over communicators of this process and of several.
if(TARGET trestle)
  trestle_test(NAME gradient_api_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/delayed_trainer.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_delayed_misuse_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_delayed_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_end_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_limits_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_links_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_loss_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_misuse_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_model.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_sums_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_topk_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_trace_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gradient_update_test.cpp)
  if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
    # A program of its own: it counts all allocations and system calls.
    trestle_test(NAME gradient_ready_test LABEL conformance LIBS trestle_api_calls SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/gradient_model.cpp
      ${CMAKE_CURRENT_LIST_DIR}/gradient_ready_test.cpp
      ${PROJECT_SOURCE_DIR}/tests/support/allocations.cpp)
  endif()
  # On a work queue that stands for a device, without the express path, and with several helper threads.
  trestle_test_run(NAME gradient_api_delayed_test OF gradient_api_test LABEL conformance TIMEOUT 900
                   ARGS --gtest_filter=GradientSums.*:GradientDelayed.*:GradientTopK.*:GradientUpdates.*
                   ENVIRONMENT ${delayed} RANKS_TRESTLE_EXPRESS=0 RANKS_TRESTLE_PROGRESS_THREADS=3)
endif()
