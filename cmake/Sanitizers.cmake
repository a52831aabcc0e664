# SPDX-License-Identifier: Apache-2.0
# ThreadSanitizer and a distribution's Abseil: every target gets cmake/tsan_abseil.cc.
if(NOT LOCKSTEP_SANITIZE MATCHES "thread")
  return()
endif()

# absl::Mutex is absl::NAMESPACE::Mutex, and the name is the distribution's.
find_file(_absl_options absl/base/options.h REQUIRED)
file(STRINGS ${_absl_options} _absl_namespace REGEX "^#define ABSL_OPTION_INLINE_NAMESPACE_NAME ")
string(REGEX REPLACE "^#define ABSL_OPTION_INLINE_NAMESPACE_NAME +" "" _absl_namespace "${_absl_namespace}")
string(LENGTH "${_absl_namespace}" _length)
set(_prefix "_ZN4absl${_length}${_absl_namespace}")

add_library(lockstep_tsan_abseil STATIC ${CMAKE_CURRENT_LIST_DIR}/tsan_abseil.cc)
target_compile_definitions(lockstep_tsan_abseil PRIVATE LOCKSTEP_ABSL_NAMESPACE="${_prefix}")
target_link_libraries(lockstep_tsan_abseil PRIVATE absl::synchronization absl::status)
foreach(_name 5Mutex4LockEv 5Mutex10ReaderLockEv 5Mutex6UnlockEv 5Mutex12ReaderUnlockEv 5Mutex5AwaitERKNS0_9ConditionE
              5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE 6Status15UnrefNonInlinedEm)
  add_link_options(LINKER:--wrap=${_prefix}${_name})
endforeach()
# Abseil's own libraries refer to the wrappers too, and come after them.
add_link_options(LINKER:--undefined=__wrap_${_prefix}5Mutex4LockEv)
link_libraries(lockstep_tsan_abseil)
