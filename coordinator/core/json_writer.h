// SPDX-License-Identifier: Apache-2.0
//
// JSON text, written from front to back into one string: for answers of many numbers and strangers'
// texts, without a tree of values in between. What it writes is always JSON, whatever the strings:
// bytes that are not UTF-8 become U+FFFD. That calls come in an order that makes one value is the
// caller's business. Not canonical (base/canonical_json.h).

#ifndef LOCKSTEP_COORDINATOR_CORE_JSON_WRITER_H_
#define LOCKSTEP_COORDINATOR_CORE_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::coordinator {

class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }
  // `name` needs no escapes.
  void Key(absl::string_view name);

  void Null() { Raw("null"); }
  void Value(std::nullopt_t) { Null(); }
  void Value(bool value) { Raw(value ? "true" : "false"); }
  template <std::integral T>
  void Value(T value) {
    Integer(value);
  }
  // Shortest digits that give the same binary32 back; "nan", "inf" or "-inf" for those.
  void Value(float value);
  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(const std::string& text) { Value(absl::string_view(text)); }
  // 64 hexadecimal digits.
  void Value(const Digest& digest);
  template <typename T>
  void Value(const std::optional<T>& value) {
    value ? Value(*value) : Null();
  }
  template <typename T>
  void Value(const std::vector<T>& values) {
    BeginArray();
    for (const T& value : values) Value(value);
    EndArray();
  }
  // null where it is not finite.
  void Finite(double value);

  template <typename T>
  void Field(absl::string_view name, const T& value) {
    Key(name);
    Value(value);
  }
  void ObjectField(absl::string_view name) {
    Key(name);
    BeginObject();
  }
  void ArrayField(absl::string_view name) {
    Key(name);
    BeginArray();
  }
  // A value that is JSON already.
  void Raw(absl::string_view json);

  const std::string& text() const { return text_; }
  std::string Take() {
    comma_ = false;
    return std::exchange(text_, {});
  }

 private:
  void Begin(char c) {
    Comma();
    text_ += c;
    comma_ = false;
  }
  void End(char c) {
    text_ += c;
    comma_ = true;
  }
  void Comma() {
    if (comma_) text_ += ',';
    comma_ = true;
  }
  void Integer(std::signed_integral auto value) { Signed(value); }
  void Integer(std::unsigned_integral auto value) { Unsigned(value); }
  void Signed(int64_t value);
  void Unsigned(uint64_t value);

  std::string text_;
  bool comma_ = false;  // before the next value or key
};

// `text` with each byte that is no part of well-formed UTF-8 replaced by U+FFFD.
std::string CleanUtf8(absl::string_view text);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_JSON_WRITER_H_
