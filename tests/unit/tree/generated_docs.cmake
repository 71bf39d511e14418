# docs/api.md agrees with the header. (base_test checks docs/environment.md.)
add_test(NAME api_docs_test COMMAND ${PROJECT_SOURCE_DIR}/scripts/api_docs --check)
set_tests_properties(api_docs_test PROPERTIES LABELS unit TIMEOUT 60)
