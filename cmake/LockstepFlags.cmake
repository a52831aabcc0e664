# SPDX-License-Identifier: Apache-2.0
# Compile flags of every target. The numerics contract (kernels/README.md) needs the first group; a build that was asked
# for a flag it forbids stops here, before anything is compiled.

set(_lockstep_user_flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE} ${CMAKE_CXX_FLAGS_DEBUG}")
string(APPEND _lockstep_user_flags " ${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
foreach(_flag -march=native -mtune=native -ffast-math -Ofast -funsafe-math-optimizations -fassociative-math
              -freciprocal-math -ffp-contract=fast -ffp-contract=on -ffp-model=fast)
  if(_lockstep_user_flags MATCHES "(^| )${_flag}( |$)")
    message(FATAL_ERROR "The flag ${_flag} changes the bits that kernels return, which kernels/README.md forbids.\n"
                        "Remove it from CXXFLAGS / CMAKE_CXX_FLAGS.")
  endif()
endforeach()

# The compiler never decides where to fuse; sqrt compiles to the instruction and not to a libm call that sets errno.
add_compile_options(-ffp-contract=off -fno-math-errno)

add_compile_options(-Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict)  # g++ 12 warns of an impossible overlap inside std::string's operator+ (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
endif()

if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Headers of other libraries are not what is looked at, and a quarter of the time to compile. By a path from where
    # compilers run, so that objects are the same in every checkout (ccache does not know of this flag).
    file(RELATIVE_PATH _lockstep_ignored ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/cmake/sanitizers_ignore.txt)
    add_compile_options(-fsanitize-ignorelist=${_lockstep_ignored})
  endif()
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()

# Instruction sets: a file whose name ends in one of these words, and no other, is compiled for it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(LOCKSTEP_ISAS avx2 avx512)
  set(LOCKSTEP_REFERENCE_FLAGS -mfma)
  set(LOCKSTEP_AVX2_FLAGS -mavx2 -mfma)
  set(LOCKSTEP_AVX512_FLAGS -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 warns about its own headers: the operand that an unmasked AVX-512 instruction ignores is never set.
    list(APPEND LOCKSTEP_AVX512_FLAGS -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(LOCKSTEP_ISAS neon)
  set(LOCKSTEP_REFERENCE_FLAGS "")
  set(LOCKSTEP_NEON_FLAGS -march=armv8.2-a+dotprod)
else()
  message(FATAL_ERROR "lockstep runs on x86-64 and 64-bit ARM; this is ${CMAKE_SYSTEM_PROCESSOR}")
endif()
# Kernels do not throw. Said to the compiler, it leaves no trace of unwinding in their objects, which define nothing but
# their entry points (scripts/check-objects).
foreach(_group REFERENCE ${LOCKSTEP_ISAS})
  string(TOUPPER ${_group} _group)
  list(APPEND LOCKSTEP_${_group}_FLAGS -fno-exceptions)
endforeach()
