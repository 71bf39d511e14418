# Collectives on memory of a device, which no host path may touch. No GPU is needed.
add_library(trestle_device_ranks STATIC
  ${PROJECT_SOURCE_DIR}/tests/support/delayed_queue.cpp
  ${PROJECT_SOURCE_DIR}/tests/support/pretend_device.cpp
  ${PROJECT_SOURCE_DIR}/tests/conformance/transport_conformance.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_ranks.cpp)
target_include_directories(trestle_device_ranks PUBLIC ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(trestle_device_ranks PUBLIC trestle_engine GTest::gtest Threads::Threads)
trestle_test(NAME device_collectives_test LABEL conformance LIBS trestle_device_ranks TIMEOUT 600 SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/device_collectives_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_life_test.cpp)
