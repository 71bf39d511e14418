# Stalls of a rank, through the public header only. The processes must prove that they belong to the job.
if(TARGET trestle AND SODIUM_FOUND)
  trestle_test(NAME stalls_test LABEL local LIBS trestle_api_calls SOURCES ${CMAKE_CURRENT_LIST_DIR}/stalls_test.cpp)
  set_tests_properties(stalls_test PROPERTIES RUN_SERIAL ON) # it compares medians
endif()
