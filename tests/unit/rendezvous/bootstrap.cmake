trestle_test(NAME bootstrap_test LABEL unit LIBS trestle_rendezvous SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/codec_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_link_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_lost_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_test.cpp)
if(SODIUM_FOUND)
  trestle_test(NAME control_mesh_rails_test LABEL unit LIBS trestle_rendezvous SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_rails_test.cpp)
  trestle_test(NAME bootstrap_join_test LABEL unit LIBS trestle_rendezvous SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/crowd_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/join_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lost_rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/neighbours_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/open_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/refusal_test.cpp)
  target_include_directories(bootstrap_join_test PRIVATE ${CMAKE_SOURCE_DIR}/include)
endif()
