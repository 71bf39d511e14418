# Messages over rails. Without libsodium there is no rail.
if(SODIUM_FOUND)
  target_sources(trestle_transport PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/frame.cpp
    ${CMAKE_CURRENT_LIST_DIR}/frame_stream.cpp
    ${CMAKE_CURRENT_LIST_DIR}/link_receive.cpp
    ${CMAKE_CURRENT_LIST_DIR}/link_send.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rail_transport.cpp)
endif()
