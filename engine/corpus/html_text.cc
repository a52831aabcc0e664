// SPDX-License-Identifier: Apache-2.0
//
// One pass over the page: the parser finds tags, text and references, the writer lays out the text.
#include "engine/corpus/html_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "engine/corpus/html_entities.h"
#include "engine/corpus/utf8.h"

namespace lockstep::engine {
namespace {

constexpr size_t kEnd = absl::string_view::npos;

// What an element does to the text around it.
enum class Layout { kInline, kLine, kParagraph, kCell, kPreformatted, kDropped };

struct Element {
  absl::string_view name;
  Layout layout;
};

constexpr Element kElements[] = {{"address", Layout::kParagraph},
                                 {"article", Layout::kParagraph},
                                 {"aside", Layout::kParagraph},
                                 {"blockquote", Layout::kParagraph},
                                 {"body", Layout::kParagraph},
                                 {"br", Layout::kLine},
                                 {"caption", Layout::kLine},
                                 {"center", Layout::kLine},
                                 {"dd", Layout::kLine},
                                 {"details", Layout::kParagraph},
                                 {"dir", Layout::kParagraph},
                                 {"div", Layout::kLine},
                                 {"dl", Layout::kParagraph},
                                 {"dt", Layout::kLine},
                                 {"fieldset", Layout::kParagraph},
                                 {"figcaption", Layout::kLine},
                                 {"figure", Layout::kParagraph},
                                 {"footer", Layout::kParagraph},
                                 {"form", Layout::kParagraph},
                                 {"h1", Layout::kParagraph},
                                 {"h2", Layout::kParagraph},
                                 {"h3", Layout::kParagraph},
                                 {"h4", Layout::kParagraph},
                                 {"h5", Layout::kParagraph},
                                 {"h6", Layout::kParagraph},
                                 {"head", Layout::kParagraph},
                                 {"header", Layout::kParagraph},
                                 {"hr", Layout::kParagraph},
                                 {"html", Layout::kParagraph},
                                 {"iframe", Layout::kDropped},
                                 {"legend", Layout::kLine},
                                 {"li", Layout::kLine},
                                 {"main", Layout::kParagraph},
                                 {"menu", Layout::kParagraph},
                                 {"nav", Layout::kParagraph},
                                 {"noscript", Layout::kDropped},
                                 {"object", Layout::kDropped},
                                 {"ol", Layout::kParagraph},
                                 {"option", Layout::kLine},
                                 {"p", Layout::kParagraph},
                                 {"pre", Layout::kPreformatted},
                                 {"script", Layout::kDropped},
                                 {"section", Layout::kParagraph},
                                 {"style", Layout::kDropped},
                                 {"summary", Layout::kLine},
                                 {"svg", Layout::kDropped},
                                 {"table", Layout::kParagraph},
                                 {"tbody", Layout::kLine},
                                 {"td", Layout::kCell},
                                 {"template", Layout::kDropped},
                                 {"textarea", Layout::kPreformatted},
                                 {"tfoot", Layout::kLine},
                                 {"th", Layout::kCell},
                                 {"thead", Layout::kLine},
                                 {"title", Layout::kParagraph},
                                 {"tr", Layout::kLine},
                                 {"ul", Layout::kParagraph}};

static_assert(std::is_sorted(std::begin(kElements), std::end(kElements),
                             [](const Element& a, const Element& b) { return a.name < b.name; }));

Layout LayoutOf(absl::string_view name) {
  const auto* const found =
      std::lower_bound(std::begin(kElements), std::end(kElements), name,
                       [](const Element& e, absl::string_view n) { return e.name < n; });
  return found != std::end(kElements) && found->name == name ? found->layout : Layout::kInline;
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Lays out text: runs of white space become one space, none at the ends of lines, at most one blank
// line.
class TextWriter {
 public:
  void Character(char c) {
    if (preformatted_ == 0 && IsSpace(c)) {
      space_ = true;
      return;
    }
    if (preformatted_ > 0 && c == '\n') {
      if (!first_in_pre_) ++newlines_;  // blank lines in <pre> stay
      first_in_pre_ = false;
      return;
    }
    if (preformatted_ > 0 && c == '\r') return;
    Gap();
    out_.push_back(c);
  }

  // No-break spaces and their like are characters, and not white space to collapse.
  void CodePoint(char32_t code_point) {
    if (code_point < 0x80) return Character(static_cast<char>(code_point));
    Gap();
    AppendUtf8(code_point, &out_);
  }

  void Break(int newlines) {
    newlines_ = std::max(newlines_, newlines);
    space_ = false;
  }

  // <br>: two of them end a paragraph.
  void LineBreak() { Break(std::min(newlines_ + 1, 2)); }

  void Cell() {
    if (newlines_ == 0 && !out_.empty()) cell_ = true;
  }

  void BeginPreformatted() {
    Break(2);
    if (preformatted_++ == 0) first_in_pre_ = true;
  }

  void EndPreformatted() {
    if (preformatted_ > 0) --preformatted_;
    if (preformatted_ == 0) {
      newlines_ = 0;
      DropTrailing(" \t\n");
    }
    Break(2);
  }

  std::string Take() {
    DropTrailing(" \t\n");
    return std::move(out_);
  }

 private:
  void DropTrailing(absl::string_view characters) {
    while (!out_.empty() && absl::StrContains(characters, out_.back())) out_.pop_back();
  }

  void Gap() {
    first_in_pre_ = false;
    if (!out_.empty() && newlines_ > 0) {
      DropTrailing(" \t");
      if (!out_.empty()) out_.append(static_cast<size_t>(newlines_), '\n');
    } else if (!out_.empty() && cell_) {
      out_.push_back('\t');
    } else if (!out_.empty() && space_) {
      out_.push_back(' ');
    }
    newlines_ = 0;
    space_ = false;
    cell_ = false;
  }

  std::string out_;
  int newlines_ = 0;  // due before the next character
  bool space_ = false;
  bool cell_ = false;
  int preformatted_ = 0;  // open <pre> elements
  bool first_in_pre_ = false;
};

class Parser {
 public:
  explicit Parser(absl::string_view html) : html_(html) {}

  std::string Run() {
    while (at_ < html_.size()) {
      const char c = html_[at_];
      if (c == '<' && Markup()) continue;
      at_ += Character(html_.substr(at_));
    }
    return writer_.Take();
  }

 private:
  // What begins with '<' at at_; false if it is only a character.
  bool Markup() {
    const absl::string_view rest = html_.substr(at_);
    if (absl::StartsWith(rest, "<!--")) {
      SkipPast("-->", at_ + 4);
    } else if (absl::StartsWith(rest, "<![CDATA[")) {
      Cdata();
    } else if (absl::StartsWith(rest, "<!") || absl::StartsWith(rest, "<?")) {
      SkipPast(">", at_ + 2);
    } else if (rest.size() > 1 && absl::ascii_isalpha(static_cast<uint8_t>(rest[1]))) {
      Tag(at_ + 1, false);
    } else if (rest.size() > 2 && rest[1] == '/' &&
               absl::ascii_isalpha(static_cast<uint8_t>(rest[2]))) {
      Tag(at_ + 2, true);
    } else {
      return false;
    }
    return true;
  }

  void SkipPast(absl::string_view what, size_t from) {
    const size_t found = html_.find(what, from);
    at_ = found == kEnd ? html_.size() : found + what.size();
  }

  void Cdata() {
    const size_t begin = at_ + 9;
    const size_t end = std::min(html_.find("]]>", begin), html_.size());
    for (const char c : html_.substr(begin, end - begin)) writer_.Character(c);
    at_ = std::min(html_.size(), end + 3);
  }

  void Tag(size_t name_begin, bool closing) {
    size_t name_end = name_begin;
    while (name_end < html_.size() && !IsSpace(html_[name_end]) && html_[name_end] != '>' &&
           html_[name_end] != '/') {
      ++name_end;
    }
    const std::string name = absl::AsciiStrToLower(html_.substr(name_begin, name_end - name_begin));
    at_ = name_end;
    if (!Attributes()) return;  // the page ends inside the tag
    const Layout layout = LayoutOf(name);
    if (layout == Layout::kDropped && !closing && !self_closing_) return SkipElement(name);
    if (name == "img" && !closing && IsMathClass()) {
      // Formulas set as pictures carry their source.
      writer_.Character('$');
      Text(alt_);
      writer_.Character('$');
    }
    if (name == "br") {
      writer_.LineBreak();
    } else {
      Place(layout, closing);
    }
  }

  void Place(Layout layout, bool closing) {
    switch (layout) {
      case Layout::kInline:
      case Layout::kDropped:
        break;
      case Layout::kLine:
        writer_.Break(1);
        break;
      case Layout::kParagraph:
        writer_.Break(2);
        break;
      case Layout::kCell:
        if (!closing) writer_.Cell();
        break;
      case Layout::kPreformatted:
        if (closing) {
          writer_.EndPreformatted();
        } else if (!self_closing_) {
          writer_.BeginPreformatted();
        }
        break;
    }
  }

  // From the end of a tag's name past its '>'; keeps the attributes that matter. False if there is
  // no '>'.
  bool Attributes() {
    alt_.clear();
    class_.clear();
    self_closing_ = false;
    while (at_ < html_.size()) {
      const char c = html_[at_];
      if (c == '>') {
        ++at_;
        return true;
      }
      if (IsSpace(c) || c == '/' || c == '=') {
        self_closing_ = c == '/';
        ++at_;
        continue;
      }
      self_closing_ = false;
      Attribute();
    }
    return false;
  }

  void Attribute() {
    const size_t begin = at_;
    while (at_ < html_.size() && !IsSpace(html_[at_]) && html_[at_] != '=' && html_[at_] != '>' &&
           html_[at_] != '/')
      ++at_;
    const absl::string_view name = html_.substr(begin, at_ - begin);
    SkipSpace();
    if (at_ >= html_.size() || html_[at_] != '=') return;
    ++at_;
    SkipSpace();
    if (at_ >= html_.size()) return;
    absl::string_view value;
    if (const char quote = html_[at_]; quote == '"' || quote == '\'') {
      const size_t end = std::min(html_.find(quote, at_ + 1), html_.size());
      value = html_.substr(at_ + 1, end - at_ - 1);
      at_ = std::min(html_.size(), end + 1);
    } else {
      const size_t value_begin = at_;
      while (at_ < html_.size() && !IsSpace(html_[at_]) && html_[at_] != '>') ++at_;
      value = html_.substr(value_begin, at_ - value_begin);
    }
    if (absl::EqualsIgnoreCase(name, "alt")) alt_ = std::string(value);
    if (absl::EqualsIgnoreCase(name, "class")) class_ = std::string(value);
  }

  void SkipSpace() {
    while (at_ < html_.size() && IsSpace(html_[at_])) ++at_;
  }

  bool IsMathClass() const { return class_ == "math" && !alt_.empty(); }

  // Past the end tag of an element whose content is no text, or to the end of the page.
  void SkipElement(absl::string_view name) {
    while (true) {
      const size_t found = html_.find("</", at_);
      if (found == kEnd) {
        at_ = html_.size();
        return;
      }
      at_ = found + 2;
      if (!absl::EqualsIgnoreCase(html_.substr(at_, name.size()), name)) continue;
      const size_t after = at_ + name.size();
      if (after < html_.size() && html_[after] != '>' && html_[after] != '/' &&
          !IsSpace(html_[after]))
        continue;
      return SkipPast(">", after);
    }
  }

  void Text(absl::string_view text) {
    while (!text.empty()) text.remove_prefix(Character(text));
  }

  // Writes the character at the front of `text`: itself, or what "&name;", "&#1234;" or "&#x12ab;"
  // stands for. Returns the bytes it takes.
  size_t Character(absl::string_view text) {
    constexpr size_t kReferenceMax = 12;
    if (text[0] == '&') {
      const absl::string_view window = text.substr(1, kReferenceMax);
      const size_t semicolon = window.find(';');
      if (semicolon != kEnd && semicolon > 0) {
        const absl::string_view name = window.substr(0, semicolon);
        const char32_t code_point = name[0] == '#' ? Number(name.substr(1)) : NamedCharacter(name);
        if (code_point != 0) {
          writer_.CodePoint(code_point);
          return semicolon + 2;
        }
      }
    }
    writer_.Character(text[0]);
    return 1;
  }

  static char32_t Number(absl::string_view digits) {
    uint32_t base = 10;
    if (!digits.empty() && (digits[0] == 'x' || digits[0] == 'X')) {
      base = 16;
      digits.remove_prefix(1);
    }
    if (digits.empty()) return 0;
    uint32_t value = 0;
    for (const char c : digits) {
      const auto byte = static_cast<uint8_t>(c);
      if (!(base == 16 ? absl::ascii_isxdigit(byte) : absl::ascii_isdigit(byte))) return 0;
      const uint32_t digit = absl::ascii_isdigit(byte) ? byte - '0' : (byte | 0x20) - 'a' + 10;
      value = std::min(value * base + digit, uint32_t{0x110000});
    }
    return ReferencedCharacter(value);
  }

  const absl::string_view html_;
  size_t at_ = 0;
  TextWriter writer_;
  std::string alt_;
  std::string class_;
  bool self_closing_ = false;
};

}  // namespace

std::string HtmlToText(absl::string_view html) { return Parser(html).Run(); }

}  // namespace lockstep::engine
