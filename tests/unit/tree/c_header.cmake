# The header is C99, and the library exports every function that it declares.
if(TARGET trestle)
  add_executable(c_header_test ${CMAKE_CURRENT_LIST_DIR}/c_header_test.c)
  set_target_properties(c_header_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(c_header_test PRIVATE -pedantic-errors)
  target_link_libraries(c_header_test PRIVATE trestle)
  if(TRESTLE_SANITIZE)
    # The library needs the sanitizers' runtime for C++.
    set_target_properties(c_header_test PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  trestle_test_run(NAME c_header_test OF c_header_test LABEL unit TIMEOUT 60)
endif()
