trestle_test(NAME bootstrap_test LABEL unit LIBS trestle_bootstrap SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/bootstrap_codec_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/control_mesh_test.cpp)
if(SODIUM_FOUND)
  trestle_test(NAME bootstrap_join_test LABEL unit LIBS trestle_bootstrap SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/bootstrap_failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bootstrap_join_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bootstrap_neighbours_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bootstrap_open_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bootstrap_refusal_test.cpp)
  target_include_directories(bootstrap_join_test PRIVATE ${CMAKE_SOURCE_DIR}/include)
endif()
