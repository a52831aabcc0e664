// SPDX-License-Identifier: Apache-2.0
//
// Which URLs a stranger may send volunteers' machines to.

#include "coordinator/core/mirror.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

TEST(Mirror, PublicOnesAreTaken) {
  for (const char* const url :
       {"https://mirror.example", "http://mirror.example:8080/some/path/", "https://192.0.2.1/x",
        "https://[2001:db8::1]:443/x", "https://example.com."}) {
    EXPECT_TRUE(IsMirror(url)) << url;
    EXPECT_TRUE(IsPublicMirror(url)) << url;
  }
}

TEST(Mirror, StrangersCannotPointIntoANetwork) {
  for (const char* const url : {"http://localhost:8080",
                                "http://127.0.0.1/",
                                "http://127.1/",
                                "http://0.0.0.0/",
                                "http://10.0.0.1/",
                                "http://172.16.0.1/",
                                "http://172.31.255.255/",
                                "http://192.168.1.1/admin",
                                "http://169.254.169.254/",
                                "http://100.64.0.1/",
                                "http://224.0.0.1/",
                                "http://2130706433/",
                                "http://0x7f000001/",
                                "http://0x7f.0.0.1/",
                                "http://1.2.0x3/",
                                "http://017700000001/",
                                "http://[::1]/",
                                "http://[::ffff:127.0.0.1]/",
                                "http://[fe80::1]/",
                                "http://[fd00::1]/",
                                "http://[::]/",
                                "http://[2002:7f00:1::]/",
                                "http://[2001::1]/",
                                "http://[2001:db8::1",
                                "http://[fe80::1%25eth0]/",
                                "http://router/",
                                "http://printer.local/",
                                "http://x.localhost/",
                                "http://x.LOCAL./",
                                "http://a.home.arpa/",
                                "http://mirror.example/?a=b",
                                "http://mirror.example/#a",
                                "http://a@mirror.example/",
                                "http://mirror.example\\@x/",
                                "http:///x",
                                "http://.../",
                                "http://m%2eexample.com/"}) {
    EXPECT_TRUE(IsMirror(url)) << url;
    EXPECT_FALSE(IsPublicMirror(url)) << url;
  }
}

TEST(Mirror, WhatIsNoUrlIsNone) {
  for (const std::string& url : {std::string("file:///etc/passwd"), std::string("mirror.example"),
                                 std::string("https://a b"), std::string("https://a\n"),
                                 "https://mirror.example/" + std::string(1'024, 'x')}) {
    EXPECT_FALSE(IsMirror(url)) << url;
    EXPECT_FALSE(IsPublicMirror(url)) << url;
  }
}

}  // namespace
}  // namespace lockstep::coordinator
