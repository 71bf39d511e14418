trestle_test(NAME notices_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/notices_test.cpp)
trestle_test(NAME routing_test LABEL unit LIBS trestle_comm SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/named_rails_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/port_needs_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/routing_test.cpp)
if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
  trestle_test(NAME routing_scale_test LABEL unit LIBS trestle_comm SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/routing_scale_test.cpp)
endif()
