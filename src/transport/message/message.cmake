# How rails divide data. The simulator and the paths of devices need it without rails, too.
target_sources(trestle_transport PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/goodput.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rail_book.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rail_choice.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shares.cpp)

# Messages over rails. Without libsodium there is no rail.
if(SODIUM_FOUND)
  target_sources(trestle_transport PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/assembly.cpp
    ${CMAKE_CURRENT_LIST_DIR}/frame_stream.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_protocol_receive.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_protocol_send.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_rails.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_rails_life.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_rails_silence.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rail_transport.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rail_transport_life.cpp)
endif()
