// SPDX-License-Identifier: Apache-2.0
//
// The runs and comparisons of the conformance suite.
#include "kernels/testing/conformance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/testing/source_dir.h"
#include "kernels/testing/flush_mode.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

constexpr size_t kGuard = 128;  // bytes; more than the widest vector
constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kOutputByte{
    0x5c};  // what outputs hold before a run: a kernel must write every byte it owes

ThreadPool& PoolOf(int threads) {
  static auto* pools = new std::map<int, std::unique_ptr<ThreadPool>>();
  std::unique_ptr<ThreadPool>& pool = (*pools)[threads];
  if (pool == nullptr) pool = std::make_unique<ThreadPool>(threads);
  return *pool;
}

// golden.txt: lines of "operation digest", sorted.
std::map<std::string, std::string> ReadGolden(const std::string& path) {
  std::map<std::string, std::string> golden;
  std::ifstream in(path);
  std::string op;
  std::string digest;
  while (in >> op >> digest) golden[op] = digest;
  return golden;
}

void CheckGolden(const char* op, const char* file, const std::string& digest) {
  const std::string path = SourceFolder(file) + "/golden.txt";
  std::map<std::string, std::string> golden = ReadGolden(path);
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    golden[op] = digest;
    std::ofstream out(path);
    for (const auto& [name, value] : golden) out << name << " " << value << "\n";
    return;
  }
  EXPECT_EQ(golden[op], digest) << "the reference of " << op << " returns other bits than " << path
                                << " says (if that is meant, it is a new numerics version)";
}

}  // namespace

class ConformanceRun {
 public:
  ConformanceRun(const char* op, Case& c) : op_(op), case_(c) {
    for (Case::Buffer& buffer : case_.buffers_) {
      const std::byte* data = buffer.bytes.data() + buffer.offset;
      buffer.initial.assign(data, data + buffer.size);
    }
  }

  // The reference's outputs with flushing as given, one after the other.
  std::vector<std::byte> Expected(bool flush) {
    const FlushMode mode(flush);
    Reset();
    if (case_.reference_) {
      case_.reference_();
    } else {
      case_.run_(Context{PoolOf(1), KernelsFor(Isa::kReference)});
    }
    CheckMemory("reference");
    return Outputs();
  }

  void Compare(const std::vector<std::byte>& expected, Isa isa, int threads, bool flush) {
    const std::string what =
        absl::StrCat(IsaName(isa), ", ", threads, " threads, flushing ", flush ? "on" : "off");
    const FlushMode mode(flush);
    Reset();
    case_.run_(Context{PoolOf(threads), KernelsFor(isa),
                       threads == 1 ? std::numeric_limits<int64_t>::max() : 1});
    CheckMemory(what);
    const std::vector<std::byte> got = Outputs();
    size_t at = 0;
    while (at < got.size() && got[at] == expected[at]) ++at;
    EXPECT_EQ(at, got.size()) << op_ << ", case \"" << case_.name_ << "\", " << what
                              << ": first differing byte " << Locate(at);
  }

 private:
  void Reset() {
    for (Case::Buffer& buffer : case_.buffers_) {
      std::copy(buffer.initial.begin(), buffer.initial.end(), buffer.bytes.begin() + buffer.offset);
    }
  }
  std::vector<std::byte> Outputs() const {
    std::vector<std::byte> all;
    for (const Case::Buffer& buffer : case_.buffers_) {
      if (!buffer.output) continue;
      const std::byte* data = buffer.bytes.data() + buffer.offset;
      all.insert(all.end(), data, data + buffer.size);
    }
    return all;
  }
  void CheckMemory(const std::string& what) const {
    for (size_t b = 0; b < case_.buffers_.size(); ++b) {
      const Case::Buffer& buffer = case_.buffers_[b];
      bool fenced = true;
      for (size_t i = 0; i < buffer.bytes.size(); ++i) {
        const bool inside = i >= buffer.offset && i < buffer.offset + buffer.size;
        fenced = fenced && (inside || buffer.bytes[i] == kGuardByte);
      }
      EXPECT_TRUE(fenced) << op_ << ", case \"" << case_.name_ << "\", " << what
                          << ": wrote outside buffer " << b;
      const bool same = std::equal(buffer.initial.begin(), buffer.initial.end(),
                                   buffer.bytes.begin() + buffer.offset);
      EXPECT_TRUE(buffer.output || same)
          << op_ << ", case \"" << case_.name_ << "\", " << what << ": wrote to input buffer " << b;
    }
  }
  std::string Locate(size_t at) const {
    for (size_t b = 0; b < case_.buffers_.size(); ++b) {
      if (!case_.buffers_[b].output) continue;
      if (at < case_.buffers_[b].size) return absl::StrCat(at, " of buffer ", b);
      at -= case_.buffers_[b].size;
    }
    return "past the end";
  }

  const char* op_;
  Case& case_;
};

Case::Buffer& Case::New(size_t bytes, size_t element, bool output) {
  Buffer buffer;
  buffer.bytes.assign(kGuard + element + bytes + kGuard, kGuardByte);
  const size_t start = reinterpret_cast<uintptr_t>(buffer.bytes.data()) + kGuard;
  buffer.offset = kGuard + (element - start % element) % element;
  if ((start + (element - start % element) % element) % 64 == 0)
    buffer.offset += element;  // never well aligned
  buffer.size = bytes;
  buffer.output = output;
  std::memset(buffer.bytes.data() + buffer.offset, static_cast<int>(kOutputByte), bytes);
  buffers_.push_back(std::move(buffer));
  return buffers_.back();
}

Case& Cases::New(const std::string& name, InputKind kind) {
  return cases_.emplace_back(absl::StrCat(name, " ", InputKindName(kind)), kind, cases_.size() + 1);
}

std::string SourceFolder(const char* file) {
  // However the compiler was told the file's name, with what in front.
  const std::string path = file;
  const std::string in_tree = path.substr(path.rfind("kernels/"));
  return std::filesystem::path(lockstep::testing::SourcePath(in_tree)).parent_path().string();
}

void RunConformance(const char* op, const char* file, Cases& cases) {
  {
    const FlushMode on(true);
    ASSERT_TRUE(FlushesToZero())
        << "this machine ignores the flush-to-zero mode, so it cannot be tested here";
  }
  const std::vector<Isa> isas = TestedIsas();
  Sha256Hasher digest;
  for (Case& c : cases.cases_) {
    ConformanceRun run(op, c);
    const std::vector<std::byte> expected = run.Expected(false);
    digest.Update(ByteSpan(reinterpret_cast<const uint8_t*>(expected.data()), expected.size()));
    EXPECT_TRUE(expected == run.Expected(true))
        << op << ", case \"" << c.name_ << "\": flushing changes the reference";
    for (Isa isa : isas) {
      for (int threads : {1, 2, 3, 5}) {
        for (bool flush : {false, true}) run.Compare(expected, isa, threads, flush);
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
  CheckGolden(op, file, digest.Finish().ToHex());
}

}  // namespace lockstep::kernels
