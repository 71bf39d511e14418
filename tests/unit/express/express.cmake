trestle_test(NAME express_test LABEL unit LIBS trestle_express trestle_engine trestle_sim SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/bells_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/express_test.cpp)
if(SODIUM_FOUND)  # these ranks prove that they belong to the job
  target_sources(express_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/board_test.cpp)
endif()
