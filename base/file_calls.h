// SPDX-License-Identifier: Apache-2.0
//
// The system calls that file.cc makes when it writes, as pointers that tests (of file.cc, and of
// what writes by way of it) replace to let each one fail in turn. Nothing else includes this.

#ifndef LOCKSTEP_BASE_FILE_CALLS_H_
#define LOCKSTEP_BASE_FILE_CALLS_H_

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace lockstep::file_internal {

inline int Open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }

struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode) = &Open;
  ssize_t (*write)(int fd, const void* bytes, size_t size) = &::write;
  int (*fsync)(int fd) = &::fsync;
  int (*close)(int fd) = &::close;
  int (*rename)(const char* from, const char* to) = &::rename;
};

// Replaced only while no other thread uses files.
inline FileCalls calls;

}  // namespace lockstep::file_internal

#endif  // LOCKSTEP_BASE_FILE_CALLS_H_
