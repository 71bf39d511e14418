trestle_test(NAME compress_test LABEL unit LIBS trestle_compress SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/ar_topk_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/choice_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange_choice_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/link_estimate_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/ratio_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topk_test.cpp)
