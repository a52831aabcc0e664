# SPDX-License-Identifier: Apache-2.0
# The four kinds of target in this project. Everything includes from the repository's root.

# lockstep_library(NAME SRCS ... DEPS ...): static library lockstep_NAME, also lockstep::NAME.
function(lockstep_library name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_library(lockstep_${name} STATIC ${arg_SRCS})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  target_include_directories(lockstep_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(lockstep_${name} PUBLIC ${arg_DEPS})
endfunction()

add_custom_target(kernel_tests)  # what scripts/test builds for every compiler and machine
add_custom_target(thread_tests)  # what it builds for ThreadSanitizer

# lockstep_test(NAME name SRCS ... DEPS ... [LABELS ...]): a GoogleTest executable, run by ctest as NAME. Labels: "kernels"
# if its bits depend on compiler and machine, "threads" if it starts threads.
function(lockstep_test)
  cmake_parse_arguments(arg "" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${arg_NAME} ${arg_SRCS})
  target_include_directories(${arg_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} GTest::gmock_main)
  # What is tested is optimised as users build it; the tests themselves need not be, and compile in two thirds of the time. Those of the
  # kernels are part of what is compared across optimisations.
  if(NOT kernels IN_LIST arg_LABELS)
    target_compile_options(${arg_NAME} PRIVATE -O1)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}")
  foreach(label ${arg_LABELS})
    if(label STREQUAL kernels)
      add_dependencies(kernel_tests ${arg_NAME})
    elseif(label STREQUAL threads)
      add_dependencies(thread_tests ${arg_NAME})
    endif()
  endforeach()
endfunction()

# lockstep_fuzzer(NAME name SRCS ... DEPS ...): with LOCKSTEP_FUZZ a libFuzzer program; otherwise nothing.
function(lockstep_fuzzer)
  cmake_parse_arguments(arg "" "NAME" "SRCS;DEPS" ${ARGN})
  if(NOT LOCKSTEP_FUZZ)
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "LOCKSTEP_FUZZ needs clang++ (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  add_executable(${arg_NAME} ${arg_SRCS})
  target_compile_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  # A short run every day; a longer one by hand: build-fuzz/.../NAME -max_total_time=3600
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} -runs=200000 -max_total_time=20 -seed=1 -print_final_stats=0)
  set_tests_properties(${arg_NAME} PROPERTIES LABELS fuzz)
endfunction()
