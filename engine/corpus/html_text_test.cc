// SPDX-License-Identifier: Apache-2.0
//
// Pages and the text they are to give, rule by rule (docs/corpus_format.md).
#include "engine/corpus/html_text.h"

#include <random>
#include <string>

#include "engine/corpus/html_entities.h"
#include "engine/corpus/utf8.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

TEST(HtmlTextTest, Page) {
  EXPECT_EQ(
      HtmlToText("<!DOCTYPE html>\n<html><head><title>A title</title><style>p { x }</style>\n"
                 "<script>if (a < b) document.write('<p>no</p>');</script></head>\n"
                 "<body><h1>Head</h1><p>One\n  two <b>three</b>.</p><p>Four</p></body></html>\n"),
      "A title\n\nHead\n\nOne two three.\n\nFour");
}

TEST(HtmlTextTest, LinesAndParagraphs) {
  EXPECT_EQ(HtmlToText("a<br>b<br/>c<br><br>d<br><br><br>e"), "a\nb\nc\n\nd\n\ne");
  EXPECT_EQ(HtmlToText("<ul><li>a<li>b</ul>c"), "a\nb\n\nc");
  EXPECT_EQ(HtmlToText("<div>a</div><div><div>b</div></div>"), "a\nb");
  EXPECT_EQ(HtmlToText("a<P>b</P>\n\n\n<p>  </p><p>c"), "a\n\nb\n\nc");
  EXPECT_EQ(HtmlToText("<table><tr><th>x</th><td>y</td></tr><tr><td>1<td>2</table>"), "x\ty\n1\t2");
  EXPECT_EQ(HtmlToText("<dl><dt>term<dd>meaning</dl>"), "term\nmeaning");
  EXPECT_EQ(HtmlToText("x <i> y </i> z"), "x y z");
}

TEST(HtmlTextTest, Preformatted) {
  EXPECT_EQ(HtmlToText("a<pre>\nint  x;\n\n\n  y();  \n</pre>b"), "a\n\nint  x;\n\n\n  y();\n\nb");
  EXPECT_EQ(HtmlToText("<pre>a\r\nb</pre>"), "a\nb");
  EXPECT_EQ(HtmlToText("</pre>a  b"), "a b");
  EXPECT_EQ(HtmlToText("<pre>  \n\n  a\n\n \t\n</pre>"), "  a");
  EXPECT_EQ(HtmlToText("<pre>a\n \n</pre>b"), "a\n\nb");
}

TEST(HtmlTextTest, References) {
  EXPECT_EQ(HtmlToText("&lt;b&gt; &amp;amp; &quot;&apos;&eacute;&Eacute;&nbsp;&euro;"),
            "<b> &amp; \"'\xC3\xA9\xC3\x89\xC2\xA0\xE2\x82\xAC");
  EXPECT_EQ(HtmlToText("&#65;&#x42;&#X63;&#128512;"), "ABc\xF0\x9F\x98\x80");
  EXPECT_EQ(HtmlToText("&#146;&#x80;"), "\xE2\x80\x99\xE2\x82\xAC");  // as Windows-1252
  EXPECT_EQ(HtmlToText("&#0;&#xD800;&#99999999;"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(HtmlToText("a & b &unknown; &; &#; &#x; &#12 &amp"),
            "a & b &unknown; &; &#; &#x; &#12 &amp");
}

TEST(HtmlTextTest, WhatIsNoText) {
  EXPECT_EQ(HtmlToText("a<!-- <p>x</p> -- > -->b<?php x ?>c<![CDATA[<d>]]>"), "abc<d>");
  EXPECT_EQ(HtmlToText("a<script>x</scripty></SCRIPT >b"), "ab");
  EXPECT_EQ(
      HtmlToText("a<svg><text>x</text></svg><noscript>y</noscript><template><p>z</p></template>b"),
      "ab");
  EXPECT_EQ(HtmlToText("a<img src='x' alt='not this'>b<img class=math alt='x &lt; y^2'>c"),
            "ab$x < y^2$c");
  EXPECT_EQ(HtmlToText("<a href='1>2' title=\"</a>\">x</a>"), "x");
  EXPECT_EQ(HtmlToText("1 < 2 <3 <- </ >"), "1 < 2 <3 <- </ >");
}

TEST(HtmlTextTest, CutOffPages) {
  EXPECT_EQ(HtmlToText("a<script>x"), "a");
  EXPECT_EQ(HtmlToText("a<!-- x"), "a");
  EXPECT_EQ(HtmlToText("a<p title='x"), "a");
  EXPECT_EQ(HtmlToText("a<p"), "a");
  EXPECT_EQ(HtmlToText("a<"), "a<");
  EXPECT_EQ(HtmlToText("a&"), "a&");
  EXPECT_EQ(HtmlToText(""), "");
}

TEST(HtmlTextTest, AnyBytesGiveValidTextSoon) {
  const std::string pieces[] = {"<",         ">",
                                "</",        "<p",
                                "<pre>",     "</pre>",
                                "<!--",      "-->",
                                "&",         ";",
                                "#x",        "'",
                                "\"",        "=",
                                "a",         " ",
                                "\n",        "<script",
                                "</script>", "\xC3\xA9",
                                "/",         "<svg",
                                "&lt;",      "<br>",
                                "<td>",      "<img class=math alt=",
                                "]]>",       "<![CDATA["};
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    std::string page;
    for (size_t n = random() % 40; n > 0; --n) page += pieces[random() % std::size(pieces)];
    EXPECT_TRUE(IsValidUtf8(HtmlToText(page))) << page;
  }
  // Each of these would take hours if anything were quadratic.
  for (const std::string& piece : pieces) {
    std::string page;
    while (page.size() < (4U << 20)) page += piece;
    HtmlToText(page);
  }
}

TEST(HtmlTextTest, EntitiesAreFound) {
  const auto code_point = [](absl::string_view name) {
    return static_cast<uint32_t>(NamedCharacter(name));
  };
  EXPECT_EQ(code_point("AElig"), 0xC6U);
  EXPECT_EQ(code_point("zwnj"), 0x200CU);
  EXPECT_EQ(code_point("theta"), 0x3B8U);
  EXPECT_EQ(code_point("Theta"), 0x398U);
  EXPECT_EQ(code_point("amp"), 0x26U);
  EXPECT_EQ(code_point("AMp"), 0U);
  EXPECT_EQ(code_point(""), 0U);
}

}  // namespace
}  // namespace lockstep::engine
