# Tests of the public API. They use include/trestle/trestle.h and no other part of the library.
if(TARGET trestle)
  add_library(trestle_api_calls STATIC
    ${PROJECT_SOURCE_DIR}/tests/support/any_call.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/device_memory.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/ranks.cpp
    ${CMAKE_CURRENT_LIST_DIR}/buffers/api_buffer.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_call.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_cover.cpp
    ${CMAKE_CURRENT_LIST_DIR}/buffers/api_images.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_space.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_vector_call.cpp
    ${CMAKE_CURRENT_LIST_DIR}/buffers/api_values.cpp)
  target_include_directories(trestle_api_calls PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  # Ranks use transports other than loopback only if they can prove that they belong to the job.
  target_compile_definitions(trestle_api_calls PRIVATE TRESTLE_TEST_PROOFS=$<BOOL:${SODIUM_FOUND}>)
  target_link_libraries(trestle_api_calls PUBLIC trestle GTest::gtest Threads::Threads PRIVATE trestle_device)

  trestle_test(NAME api_collectives_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/buffers/api_buffer_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_collectives_test.cpp)
  trestle_test(NAME api_vectors_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_vectors_test.cpp)
  trestle_test(NAME api_redops_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_averages_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_redops_cases.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_redops_life_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_redops_test.cpp)
  trestle_test(NAME api_persistent_test LABEL conformance LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_persistent_test.cpp)
  trestle_test(NAME api_order_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_groups_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_notify_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_life_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_group_life_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_decomposed_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_determinism_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_float_environment_test.cpp)
  trestle_test(NAME api_communicators_test LABEL conformance LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_split_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_nonblocking_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_call_config_test.cpp)
  trestle_test(NAME api_stats_test LABEL conformance LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_hugetlb_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_register_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_stats_test.cpp)
  if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
    trestle_test(NAME api_memory_test LABEL conformance LIBS trestle_api_calls SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/api_memory_test.cpp
      ${PROJECT_SOURCE_DIR}/tests/support/allocations.cpp)
    trestle_test(NAME api_faults_test LABEL conformance TIMEOUT 900 LIBS trestle_api_calls SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/faults/api_fault_job.cpp
      ${CMAKE_CURRENT_LIST_DIR}/faults/api_faults_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/faults/fault_points.cpp)
  endif()

  # The same library, whose work queue stands for a device (tests/support/delayed_work.cpp): what follows work that is
  # not done yet shows here.
  add_library(trestle_delayed SHARED $<TARGET_OBJECTS:trestle>
    ${PROJECT_SOURCE_DIR}/tests/support/delayed_queue.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/delayed_work.cpp)
  target_include_directories(trestle_delayed PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(trestle_delayed PRIVATE $<TARGET_PROPERTY:trestle,LINK_LIBRARIES>)
  target_link_options(trestle_delayed PRIVATE $<TARGET_PROPERTY:trestle,LINK_OPTIONS>)
  set_target_properties(trestle_delayed PROPERTIES OUTPUT_NAME trestle SOVERSION ${PROJECT_VERSION_MAJOR}
                                                   LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/delayed)
  add_dependencies(trestle_api_calls trestle_delayed)
  set(delayed TESTS_WORK_DELAY_US=100 LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/delayed)
  # The express path, which has no queue, is off, but where its calls are counted. A third of the communicators: tests/sim
  # has each algorithm with delayed work.
  foreach(name api_collectives api_vectors api_redops api_persistent api_order api_stats)
    set(express 0)
    if(name STREQUAL api_stats)
      set(express 1)
    endif()
    trestle_test_run(NAME ${name}_delayed_test OF ${name}_test LABEL conformance TIMEOUT 900
                     ENVIRONMENT ${delayed} TESTS_PART=3 RANKS_TRESTLE_EXPRESS=${express})
  endforeach()
  # The same tests on memory of a device, that of the fake driver (tests/local/cuda). Ranks read each other's memory, or,
  # in half of api_collectives, their messages go through pinned memory. A third of the communicators: tests/conformance/device
  # has each algorithm, type and operator, and the run on host memory every pair of factors.
  if(TRESTLE_WITH_CUDA)
    foreach(name api_collectives api_vectors api_persistent)
      trestle_test_run(NAME ${name}_device_test OF ${name}_test LABEL conformance TIMEOUT 900
                       ENVIRONMENT TESTS_PART=3 RANKS_TRESTLE_DEVICE=0 LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake_cuda)
    endforeach()
  endif()
  # With several helper threads, as on a machine with several NUMA nodes.
  trestle_test_run(NAME api_order_helpers_test OF api_order_test LABEL conformance TIMEOUT 600
                   ENVIRONMENT RANKS_TRESTLE_PROGRESS_THREADS=3)
endif()
