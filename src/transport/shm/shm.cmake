# Shared memory: segments, MemAlloc's registry, the express board and the transport.
target_sources(trestle_transport PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/board.cpp
  ${CMAKE_CURRENT_LIST_DIR}/bells.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lane.cpp
  ${CMAKE_CURRENT_LIST_DIR}/links.cpp
  ${CMAKE_CURRENT_LIST_DIR}/links_connect.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mapping.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mem_alloc.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mem_index.cpp
  ${CMAKE_CURRENT_LIST_DIR}/peer_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/receiver.cpp
  ${CMAKE_CURRENT_LIST_DIR}/registrations.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sender.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shm_transport.cpp)
