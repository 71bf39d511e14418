trestle_test(NAME rendezvous_test LABEL unit SHARDS 3 LIBS trestle_rendezvous SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/codec_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pmi_client_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/base/launcher_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_link_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_lost_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_test.cpp)
target_include_directories(rendezvous_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
if(SODIUM_FOUND)
  target_sources(rendezvous_test PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/crowd_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/join_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/launcher_place_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/lost_rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/neighbours_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/open_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/refusal_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/two_jobs_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/control_mesh_rails_test.cpp)
endif()
