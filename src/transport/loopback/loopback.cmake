# Messages within a process.
target_sources(trestle_transport PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/registry.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loopback.cpp)
