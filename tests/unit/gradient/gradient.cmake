trestle_test(NAME gradient_planners_test LABEL unit LIBS trestle_gradient SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/networks_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/optimum_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/papers_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/policies_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topk_policy_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tuner_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/vectors_test.cpp)
