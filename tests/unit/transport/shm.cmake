trestle_test(NAME shm_test LABEL unit LIBS trestle_transport SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/shm_lane_test.cpp)
if(SODIUM_FOUND)  # these ranks prove that they belong to the job
  target_sources(shm_test PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/descriptor_exchange_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_channel_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/shm_device_paths_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/shm_strangers_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/shm_transport_test.cpp)
  if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
    trestle_test(NAME shm_faults_test LABEL unit LIBS trestle_transport SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/shm_faults_test.cpp
      ${CMAKE_CURRENT_SOURCE_DIR}/conformance/faults/fault_points.cpp)
  endif()
endif()
