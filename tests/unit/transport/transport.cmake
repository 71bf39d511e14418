trestle_test(NAME transport_test LABEL unit LIBS trestle_transport SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/transport_admission_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_agreement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_loopback_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_socket_test.cpp)
if(SODIUM_FOUND)
  target_sources(transport_test PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/transport_handshake_exchange_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/transport_handshake_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/transport_link_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/transport_strangers_test.cpp)
endif()
if(TRESTLE_WITH_TCP)
  target_sources(transport_test PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/connect_queue_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_descriptors_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tcp_listen_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/unsent_limit_test.cpp)
endif()
