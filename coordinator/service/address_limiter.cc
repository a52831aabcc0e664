// SPDX-License-Identifier: Apache-2.0
//
// Addresses, and a bucket for each.

#include "coordinator/service/address_limiter.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rpc/address.h"

namespace lockstep::coordinator {

std::string AddressGroup(absl::string_view address) {
  const std::string text(address);
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1) return text;
  // An IPv4 address in IPv6's clothes.
  const bool mapped =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](unsigned char b) { return b == 0; }) &&
      bytes[10] == 0xff && bytes[11] == 0xff;
  if (mapped) {
    return absl::StrCat(bytes[12], ".", bytes[13], ".", bytes[14], ".", bytes[15]);
  }
  if (text == "::1") return text;
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  std::array<char, INET6_ADDRSTRLEN> out{};
  inet_ntop(AF_INET6, bytes.data(), out.data(), out.size());
  return absl::StrCat(out.data(), "/64");
}

std::string AddressOfPeer(absl::string_view peer) {
  if (absl::ConsumePrefix(&peer, "ipv4:")) {
    return std::string(peer.substr(0, peer.rfind(':')));
  }
  if (!absl::ConsumePrefix(&peer, "ipv6:")) return std::string(peer);
  peer = peer.substr(0, peer.rfind(':'));
  for (const absl::string_view bracket : {"%5B", "["}) absl::ConsumePrefix(&peer, bracket);
  for (const absl::string_view bracket : {"%5D", "]"}) absl::ConsumeSuffix(&peer, bracket);
  return AddressGroup(peer.substr(0, peer.find('%')));  // without a zone
}

bool IsLoopback(absl::string_view address) {
  return rpc::IsLoopbackHost(address) || absl::StartsWith(address, "unix:");
}

AddressLimiter::Bucket AddressLimiter::Filled(const Bucket& bucket, absl::Duration now) const {
  const double calls =
      bucket.calls + absl::ToDoubleSeconds(now - bucket.at) * limits_.calls_per_second;
  return {.calls = std::min(calls, limits_.calls_at_once), .at = now};
}

bool AddressLimiter::Take(const std::string& address) {
  if (IsLoopback(address) && !limits_.limit_loopback) return true;
  const absl::Duration now = clock_.Monotonic();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (buckets_.size() >= limits_.addresses_max && !buckets_.contains(address)) Forget(now);
  const std::string& name = buckets_.size() >= limits_.addresses_max && !buckets_.contains(address)
                                ? std::string()
                                : address;
  Bucket& bucket =
      buckets_.try_emplace(name, Bucket{.calls = limits_.calls_at_once, .at = now}).first->second;
  bucket = Filled(bucket, now);
  if (bucket.calls < 1) return false;
  bucket.calls -= 1;
  return true;
}

// Those that have all their calls again are as good as new.
void AddressLimiter::Forget(absl::Duration now) {
  absl::erase_if(buckets_, [&](const auto& item) {
    return Filled(item.second, now).calls >= limits_.calls_at_once;
  });
}

}  // namespace lockstep::coordinator
