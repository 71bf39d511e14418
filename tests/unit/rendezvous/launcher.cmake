trestle_test(NAME launcher_test LABEL unit LIBS trestle_rendezvous SOURCES
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/base/launcher_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pmi_client_test.cpp)
if(SODIUM_FOUND)
  target_sources(launcher_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/launcher_place_test.cpp)
  target_include_directories(launcher_test PRIVATE ${CMAKE_SOURCE_DIR}/include)
endif()
