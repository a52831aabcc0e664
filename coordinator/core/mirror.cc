// SPDX-License-Identifier: Apache-2.0
//
// URLs taken apart as far as it takes to know the host.

#include "coordinator/core/mirror.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kMirrorBytesMax = 1'024;

bool IsPublicIpv4(const uint8_t* a) {
  const bool shared = a[0] == 100 && a[1] >= 64 && a[1] < 128;     // RFC 6598
  const bool link = a[0] == 169 && a[1] == 254;                    // RFC 3927
  const bool here = a[0] == 0 || a[0] == 127 || a[0] >= 224;       // RFC 6890; several, reserved
  const bool home = a[0] == 10 || (a[0] == 192 && a[1] == 168) ||  // RFC 1918
                    (a[0] == 172 && a[1] >= 16 && a[1] < 32);
  return !shared && !link && !here && !home;
}

// Of 2000::/3, where all that is given out lies (RFC 4291), and none that has an IPv4 address in
// it.
bool IsPublicIpv6(const std::array<uint8_t, 16>& a) {
  const bool teredo = a[0] == 0x20 && a[1] == 0x01 && a[2] == 0 && a[3] == 0;
  const bool six_to_four = a[0] == 0x20 && a[1] == 0x02;
  return (a[0] & 0xe0) == 0x20 && !teredo && !six_to_four;
}

// The whole of it digits and dots, or a number in hexadecimal: some read such a name as an address.
bool LooksLikeAddress(absl::string_view host) {
  const size_t dot = host.rfind('.');
  const absl::string_view last = dot == absl::string_view::npos ? host : host.substr(dot + 1);
  const bool digits =
      std::all_of(last.begin(), last.end(), [](char c) { return absl::ascii_isdigit(c); });
  return digits || absl::StartsWithIgnoreCase(last, "0x");
}

bool IsPublicName(absl::string_view host) {
  const bool plain = std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  });
  if (!plain || !absl::StrContains(host, '.') || LooksLikeAddress(host)) return false;
  for (const absl::string_view local :
       {".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".localdomain"}) {
    if (absl::EndsWithIgnoreCase(host, local)) return false;
  }
  return true;
}

}  // namespace

bool IsMirror(absl::string_view url) {
  const bool printable =
      std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return printable && url.size() <= kMirrorBytesMax &&
         (absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://"));
}

bool IsPublicMirror(absl::string_view url) {
  if (!IsMirror(url) || url.find_first_of("?#@\\") != absl::string_view::npos) return false;
  url.remove_prefix(url.find("//") + 2);
  absl::string_view host = url.substr(0, url.find('/'));
  if (absl::ConsumePrefix(&host, "[")) {
    std::array<uint8_t, 16> bytes{};
    const size_t end = host.find(']');
    if (end == absl::string_view::npos) return false;
    const std::string address(host.substr(0, end));
    return inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1 && IsPublicIpv6(bytes);
  }
  host = host.substr(0, host.find(':'));
  std::array<uint8_t, 4> bytes{};
  if (inet_pton(AF_INET, std::string(host).c_str(), bytes.data()) == 1) {
    return IsPublicIpv4(bytes.data());
  }
  absl::ConsumeSuffix(&host, ".");
  return IsPublicName(host);
}

}  // namespace lockstep::coordinator
