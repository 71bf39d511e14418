trestle_test(NAME communicator_test LABEL unit LIBS trestle_comm SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/communicator_express_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_transport_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_unmade_test.cpp)
