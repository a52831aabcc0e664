// SPDX-License-Identifier: Apache-2.0
//
// One line of progress on a terminal: what, how far, how fast, how long still. On anything else
// than a terminal, or with NO_COLOR and --json, nothing is drawn and the last state is logged once.
#ifndef LOCKSTEP_CLI_PROGRESS_H_
#define LOCKSTEP_CLI_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::cli {

// Add() may be called from any thread; the line is redrawn at most ten times a second. The line is
// ended by the destructor.
class Progress {
 public:
  // total 0: unknown. unit: "B" is shown as MB, others as they are. quiet: draws nothing.
  Progress(std::string what, int64_t total, std::string unit, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t amount);
  // Counts what an earlier run did: part of the total and not of the rate.
  void Skip(int64_t amount);

 private:
  void Draw(bool last);

  const std::string what_;
  const int64_t total_;
  const std::string unit_;
  const bool draws_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> skipped_{0};
  std::atomic<int64_t> next_draw_ms_{0};
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_PROGRESS_H_
