if(SODIUM_FOUND) # its ranks prove that they belong to the job
  trestle_test(NAME shm_leak_test LABEL local LIBS trestle_transport SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/shm_leak_test.cpp)
endif()
