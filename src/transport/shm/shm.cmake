# Shared memory: the transport. The memory itself is in src/memory.
target_sources(trestle_transport PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/descriptor_exchange.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lane.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_sockets.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_connect.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_channel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_streams.cpp
  ${CMAKE_CURRENT_LIST_DIR}/peer_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/receiver.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sender.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shm_transport.cpp)
