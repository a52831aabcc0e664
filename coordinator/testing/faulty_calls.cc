// SPDX-License-Identifier: Apache-2.0
//
// open, write, pwrite, ftruncate, fsync, fdatasync, rename, link, unlink and mkdir over the bare
// system calls. See faulty_calls.h.
//
// For a power cut, what is not yet on the disk is kept as a list of steps back, in order: a write's
// old bytes, a rename's old file (by a hard link aside). A file's fsync drops the steps of its
// data, a directory's those of its names. At the cut a random tail of the list is gone over
// backwards: of data each step by chance, as pages reach the disk in any order; of names all.

#include "coordinator/testing/faulty_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::coordinator {
namespace {

// A step back, if what it undoes has not reached the disk.
struct Unsynced {
  std::string synced_by;  // the file or directory whose fsync keeps it
  bool data = false;
  std::function<void()> undo;
};

struct State {
  std::recursive_mutex mutex;
  bool armed = false;
  std::string directory;
  std::string aside;  // for hard links, beside the directory
  Fault fault;
  int64_t calls = 0;
  int64_t links = 0;
  std::vector<Unsynced> unsynced;
};

// Never destroyed: calls come until the very end.
State& TheState() {
  static State* const state = new State;
  return *state;
}

std::string PathOfDescriptor(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  char path[4096];
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size < 0 ? std::string() : std::string(path, static_cast<size_t>(size));
}

bool IsBeneath(const State& state, const std::string& path) {
  return path.compare(0, state.directory.size(), state.directory) == 0;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

void CutPower(State& state) {
  state.armed = false;
  std::mt19937_64 random(state.fault.seed);
  size_t kept = state.unsynced.empty() ? 0 : random() % (state.unsynced.size() + 1);
  for (size_t i = state.unsynced.size(); i-- > kept;) {
    const Unsynced& step = state.unsynced[i];
    if (!step.data || random() % 2 == 0) step.undo();
  }
}

// The system's own call: before the C library's, ThreadSanitizer lets other threads run for a
// second.
[[noreturn]] void ExitAtOnce() {
  ::syscall(SYS_exit_group, kFaultExitStatus);
  std::abort();
}

// The fault for this call, or nothing. Ends the process where that is the fault.
enum class Turn { kGoOn, kFail, kFailApplied, kExitApplied };
Turn NextTurn(State& state) {
  const int64_t call = ++state.calls;
  const Fault& fault = state.fault;
  if (fault.at == 0 || call < fault.at || (call > fault.at && !fault.forever)) return Turn::kGoOn;
  switch (fault.effect) {
    case FaultEffect::kFail:
      return Turn::kFail;
    case FaultEffect::kFailApplied:
      return Turn::kFailApplied;
    case FaultEffect::kExitApplied:
      return Turn::kExitApplied;
    case FaultEffect::kPowerCut:
      CutPower(state);
      [[fallthrough]];
    case FaultEffect::kExit:
      ExitAtOnce();
  }
  return Turn::kGoOn;
}

// Does `call`, which is on `path`; `remember` first notes how to undo it.
template <typename Call, typename Remember>
long Faulty(const std::string& path, Call call, Remember remember) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  if (!state.armed || !IsBeneath(state, path)) return call();
  const Turn turn = NextTurn(state);
  if (turn == Turn::kFail) {
    errno = state.fault.error;
    return -1;
  }
  state.armed = false;  // the calls of `remember` itself
  if (state.fault.effect == FaultEffect::kPowerCut) remember(state);
  state.armed = true;
  const long result = call();
  if (turn == Turn::kExitApplied) ExitAtOnce();
  if (turn == Turn::kFailApplied) {
    errno = state.fault.error;
    return -1;
  }
  return result;
}

void RememberWrite(State& state, const std::string& path, int64_t offset, size_t size) {
  std::string old(size, '\0');
  const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY, 0));
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) return;
  const ssize_t got = ::pread(fd, old.data(), size, offset);
  ::syscall(SYS_close, fd);
  old.resize(got < 0 ? 0 : static_cast<size_t>(got));
  // What lay past the end stays there as zeros: sizes reach the disk without their data.
  old.resize(size, '\0');
  state.unsynced.push_back({.synced_by = path, .data = true, .undo = [=] {
                              const int out = static_cast<int>(
                                  ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY, 0));
                              if (out < 0) return;
                              ::syscall(SYS_pwrite64, out, old.data(), old.size(), offset);
                              ::syscall(SYS_close, out);
                            }});
}

// A hard link to `path` aside; empty if there is no such file.
std::string KeepAside(State& state, const std::string& path) {
  const std::string kept = state.aside + "/" + std::to_string(++state.links);
  const long done = ::syscall(SYS_linkat, AT_FDCWD, path.c_str(), AT_FDCWD, kept.c_str(), 0);
  return done == 0 ? kept : std::string();
}

void PutBack(const std::string& kept, const std::string& path) {
  if (!kept.empty()) {
    ::syscall(SYS_linkat, AT_FDCWD, kept.c_str(), AT_FDCWD, path.c_str(), 0);
  }
}

void Forget(State& state, const std::string& path) {
  std::erase_if(state.unsynced, [&](const Unsynced& step) { return step.synced_by == path; });
}

int OpenFaulty(const char* name, int flags, mode_t mode) {
  const std::string path = name;
  const auto call = [&] { return ::syscall(SYS_openat, AT_FDCWD, name, flags, mode); };
  if ((flags & O_CREAT) == 0) return static_cast<int>(call());
  return static_cast<int>(Faulty(path, call, [&](State& state) {
    if (::access(name, F_OK) == 0) return;
    state.unsynced.push_back({.synced_by = DirectoryOf(path), .data = false, .undo = [path] {
                                ::syscall(SYS_unlink, path.c_str());
                              }});
  }));
}

// The disk itself is left alone: no test can turn it off, and it is slow.
int SyncFaulty(int fd) {
  const std::string path = PathOfDescriptor(fd);
  const int result = static_cast<int>(Faulty(
      path, [] { return 0L; }, [](State&) {}));
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  if (result == 0) Forget(state, path);
  return result;
}

ssize_t PwriteFaulty(int fd, const void* bytes, size_t size, off_t offset) {
  const std::string path = PathOfDescriptor(fd);
  return Faulty(
      path, [&] { return ::syscall(SYS_pwrite64, fd, bytes, size, offset); },
      [&](State& state) { RememberWrite(state, path, offset, size); });
}

int TruncateFaulty(int fd, off_t size) {
  const std::string path = PathOfDescriptor(fd);
  return static_cast<int>(Faulty(
      path, [&] { return ::syscall(SYS_ftruncate, fd, size); },
      [&](State& state) {
        struct stat info {};
        if (::fstat(fd, &info) != 0 || info.st_size <= size) return;
        RememberWrite(state, path, size, static_cast<size_t>(info.st_size - size));
      }));
}

}  // namespace

void ArmFault(const std::string& directory, const Fault& fault) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.directory = directory + "/";
  state.aside = directory + ".aside";
  state.fault = fault;
  state.calls = 0;
  state.unsynced.clear();
  if (fault.effect == FaultEffect::kPowerCut) {
    std::filesystem::remove_all(state.aside);
    std::filesystem::create_directory(state.aside);
  }
  state.armed = true;
}

void DisarmFault() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.armed = false;
  state.unsynced.clear();
}

int64_t CallsMade() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  return state.calls;
}

}  // namespace lockstep::coordinator

namespace faulty = lockstep::coordinator;

extern "C" {

int open(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return faulty::OpenFaulty(name, flags, mode);
}

int open64(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return faulty::OpenFaulty(name, flags, mode);
}

int fsync(int fd) { return faulty::SyncFaulty(fd); }
int fdatasync(int fd) { return faulty::SyncFaulty(fd); }

ssize_t write(int fd, const void* bytes, size_t size) {
  const std::string path = faulty::PathOfDescriptor(fd);
  return faulty::Faulty(
      path, [&] { return ::syscall(SYS_write, fd, bytes, size); },
      [&](faulty::State& state) {
        const off_t offset = ::lseek(fd, 0, SEEK_CUR);
        faulty::RememberWrite(state, path, offset, size);
      });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return faulty::PwriteFaulty(fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return faulty::PwriteFaulty(fd, bytes, size, offset);
}

int ftruncate(int fd, off_t size) noexcept { return faulty::TruncateFaulty(fd, size); }
int ftruncate64(int fd, off_t size) noexcept { return faulty::TruncateFaulty(fd, size); }

int rename(const char* from, const char* to) noexcept {
  const std::string old_name = from;
  const std::string new_name = to;
  return static_cast<int>(faulty::Faulty(
      new_name, [&] { return ::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to); },
      [&](faulty::State& state) {
        const std::string kept = faulty::KeepAside(state, new_name);
        state.unsynced.push_back(
            {.synced_by = faulty::DirectoryOf(new_name), .data = false, .undo = [=] {
               ::syscall(SYS_renameat, AT_FDCWD, new_name.c_str(), AT_FDCWD, old_name.c_str());
               faulty::PutBack(kept, new_name);
             }});
      }));
}

int unlink(const char* name) noexcept {
  const std::string path = name;
  return static_cast<int>(faulty::Faulty(
      path, [&] { return ::syscall(SYS_unlink, name); },
      [&](faulty::State& state) {
        const std::string kept = faulty::KeepAside(state, path);
        state.unsynced.push_back({.synced_by = faulty::DirectoryOf(path),
                                  .data = false,
                                  .undo = [=] { faulty::PutBack(kept, path); }});
      }));
}

int mkdir(const char* name, mode_t mode) noexcept {
  const std::string path = name;
  return static_cast<int>(faulty::Faulty(
      path, [&] { return ::syscall(SYS_mkdirat, AT_FDCWD, name, mode); },
      [&](faulty::State& state) {
        if (::access(name, F_OK) == 0) return;
        state.unsynced.push_back(
            {.synced_by = faulty::DirectoryOf(path), .data = false, .undo = [path] {
               std::error_code ignored;
               std::filesystem::remove_all(path, ignored);
             }});
      }));
}
}
