# Messages over sockets. Without libsodium the probe says why there are none.
if(SODIUM_FOUND)
  target_sources(trestle_transport PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/attempt.cpp
    ${CMAKE_CURRENT_LIST_DIR}/connect_queue.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_close.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_connect.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_rail.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_rails.cpp)
else()
  target_sources(trestle_transport PRIVATE ${CMAKE_CURRENT_LIST_DIR}/tcp_not_built.cpp)
endif()
