# libtrestle.so: the C API over everything below; exports trestle* only.
if(EXISTS ${CMAKE_SOURCE_DIR}/src/api.cpp)
  add_library(trestle SHARED ${CMAKE_SOURCE_DIR}/src/api.cpp ${CMAKE_SOURCE_DIR}/src/api_collectives.cpp ${CMAKE_SOURCE_DIR}/src/api_config.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_blocks.cpp ${CMAKE_SOURCE_DIR}/src/api_vectors.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_persistent.cpp ${CMAKE_SOURCE_DIR}/src/api_redops.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_split.cpp ${CMAKE_SOURCE_DIR}/src/api_background.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_call_config.cpp ${CMAKE_SOURCE_DIR}/src/api_fork.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_register.cpp ${CMAKE_SOURCE_DIR}/src/api_requests.cpp ${CMAKE_SOURCE_DIR}/src/api_stats.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_streams.cpp
                             ${CMAKE_SOURCE_DIR}/src/api_user_code.cpp)
  target_include_directories(trestle PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(trestle PRIVATE trestle_comm)
  if(NOT TRESTLE_COVERAGE) # counters of all parts of a process are written together
    target_link_options(trestle PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/trestle.map -Wl,--exclude-libs,ALL)
  endif()
  set_target_properties(trestle PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endif()
