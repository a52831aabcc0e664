# SPDX-License-Identifier: Apache-2.0
"""Running text out of HTML and out of Mallard, the XML of GNOME's help, for scripts/extract-documents. What a reader
sees is kept, in its order; layout is reduced to line ends, bullets and cell borders. No general converter: it knows
what the packages of corpora/packages.toml hold.
"""

import html
import html.parser
import re


class TextBuilder:
    """Collects running text: white space collapses, blocks begin on new lines, preformatted text stays as it is."""

    def __init__(self):
        self._parts = []
        self._newlines = 0  # owed before the next text
        self._space = False  # owed before the next text
        self.pre = 0
        self.cell = 0

    def text(self, data):
        if self.pre:
            if data:
                self._owed()
                self._parts.append(data)
            return
        words = re.split(r"[ \t\n\r\f]+", data)  # a no-break space is not white space here
        for position, word in enumerate(words):
            if position:
                self._space = True
            if word:
                self._owed()
                self._parts.append(word)

    def newlines(self, count):
        """Ends the line; with 2, the paragraph. Inside a table cell it is a space."""
        if self.cell and not self.pre:
            self._space = True
        else:
            self._newlines = max(self._newlines, count)

    def mark(self, mark):
        """A bullet or a cell border: belongs to the text that follows."""
        self._owed()
        self._parts.append(mark)
        self._space = False

    def _owed(self):
        if self._newlines:
            self._parts.append("\n" * self._newlines)
        elif self._space and self._parts and not self._parts[-1].endswith((" ", "\n")):
            self._parts.append(" ")
        self._newlines = 0
        self._space = False

    def result(self):
        text = re.sub(r"[ \t]+(?=\n)", "", "".join(self._parts))
        text = re.sub(r"(?m)^(- |\d+\. |\| )+$\n?", "", text)  # bullets without text
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n ")


class HtmlText(html.parser.HTMLParser):
    """Text of an HTML page. `keep` names the one element that counts, as (attribute, value); `drop` are classes
    and "#"-prefixed ids whose elements do not. Pages are read as they are: unclosed <p> and <li> are usual."""

    BLOCKS = frozenset(
        "p div section article header footer main aside nav h1 h2 h3 h4 h5 h6 ul ol dl pre blockquote table figure "
        "figcaption caption center form address hr title".split()
    )
    LINES = frozenset("li dt dd tr br".split())
    SKIPPED = frozenset("script style head svg template noscript button select iframe object".split())
    VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())

    def __init__(self, keep=None, drop=()):
        super().__init__(convert_charrefs=True)
        self._out = TextBuilder()
        self._keep = keep
        self._drop = frozenset(drop)
        self._region = None  # [tag, depth] of the kept element
        self._hidden = None  # [tag, depth] of the dropped element
        self._lists = []  # per open list: the next number, or None for bullets
        self._math = None  # the delimiter of a formula to close

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        if tag in self.VOID:
            self._void(tag, attributes)
            return
        if self._hidden:
            self._hidden[1] += tag == self._hidden[0]
            return
        if self._keep and self._region is None:
            if attributes.get(self._keep[0]) == self._keep[1]:
                self._region = [tag, 1]
            return
        if self._region:
            self._region[1] += tag == self._region[0]
        labels = {*attributes.get("class", "").split(), "#" + attributes.get("id", "")}
        if tag in self.SKIPPED or labels & self._drop:
            self._hidden = [tag, 1]
            return
        self._open(tag, attributes)

    def _open(self, tag, attributes):
        out = self._out
        if tag in self.BLOCKS:
            out.newlines(1 if tag in ("ul", "ol") and self._lists else 2)
        elif tag in self.LINES:
            out.newlines(1)
        if tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._bullet()
        elif tag in ("td", "th"):
            out.cell += 1
        elif tag == "pre":
            out.pre += 1
        elif tag == "sup" and not attributes.get("class"):
            out.text("^")
        elif tag in ("span", "div") and "math" in attributes.get("class", "").split():
            self._math = tag

    def _bullet(self):
        number = self._lists[-1] if self._lists else None
        self._out.mark("- " if number is None else f"{number}. ")
        if number is not None:
            self._lists[-1] += 1

    def _void(self, tag, attributes):
        if self._hidden or (self._keep and not self._region):
            return
        if tag == "br":
            self._out.newlines(1)
        elif tag == "hr":
            self._out.newlines(2)
        elif tag == "img" and (self._math or "math" in attributes.get("class", "").split()):
            dollars = "$$" if self._math == "div" else "$"
            self._out.text(dollars + " ".join(attributes.get("alt", "").split()) + dollars)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        out = self._out
        if self._hidden:
            self._hidden[1] -= tag == self._hidden[0]
            if self._hidden[1] == 0:
                self._hidden = None
            return
        if self._keep and not self._region:
            return
        if tag == "pre" and out.pre:
            out.pre -= 1
        elif tag in ("td", "th") and out.cell:
            out.cell -= 1
            out.text(" | ")
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == self._math:
            self._math = None
        if tag in self.BLOCKS:
            out.newlines(1 if tag in ("ul", "ol") and self._lists else 2)
        elif tag in self.LINES:
            out.newlines(1)
        if self._region:
            self._region[1] -= tag == self._region[0]
            if self._region[1] == 0:
                self._region = ("", 0)  # closed: nothing after it counts
                self._keep = ("", None)
                self._hidden = ["", 1]

    def handle_data(self, data):
        if self._hidden or (self._keep and not self._region):
            return
        if self._math:  # \(x\) and \[x\], as MathJax takes them, in the dollars of the rest
            data = re.sub(r"\\[()]", "$", data)
            data = re.sub(r"\\[\[\]]", "$$", data)
        self._out.text(data)

    def result(self):
        return re.sub(r"(?m) \|$", "", self._out.result())


def html_text(page, keep=None, drop=()):
    parser = HtmlText(keep, drop)
    parser.feed(page)
    parser.close()
    return parser.result()


def mallard_titles(files):
    """{(folder, page, section): title}, the section "" for the page, to fill links that have no text of their own."""
    titles = {}
    for path, text in files:
        folder, _, name = path.rpartition("/")
        text = re.sub(r"(?s)<info>.*?</info>|<!--.*?-->", "", text)
        heads = re.finditer(r'(?s)<(page|section)\b[^>]*?\bid=["\']([^"\']*)["\'][^>]*>\s*<title\b[^>]*>(.*?)</title>', text)
        for kind, label, title in (head.groups() for head in heads):
            title = html.unescape(" ".join(re.sub(r"<[^>]*>", "", title).split()))
            titles[folder, name.removesuffix(".page"), "" if kind == "page" else label] = title
    return titles


class MallardText:
    """Text of a help page of GNOME: title and body, without the information for authors."""

    BLOCKS = frozenset(
        "title subtitle p section note steps list table terms tree figure example screen listing".split()
    )
    LINES = frozenset("item tr".split())

    def __init__(self, path, titles):
        self._folder, _, name = path.rpartition("/")
        self._page = name.removesuffix(".page")
        self._titles = titles
        self._out = TextBuilder()

    def walk(self, element):
        tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"
        if tag in ("info", "links", "comment"):
            return
        pre = tag in ("screen", "code") and "\n" in "".join(element.itertext()).strip()
        lines = 2 if tag in self.BLOCKS or pre else 1 if tag in self.LINES else 0
        if lines:
            self._out.newlines(lines)
        self._enter(tag, pre)
        self._out.text(element.text or "")
        for child in element:
            self.walk(child)
            self._out.text(child.tail or "")
        if tag == "link" and not "".join(element.itertext()).strip():
            self._out.text(self._link_text(element))
        self._leave(tag, pre)
        if lines:
            self._out.newlines(lines)

    def _enter(self, tag, pre):
        if tag == "item":
            self._out.newlines(1)
            self._out.mark("- ")
        if tag in ("item", "td"):
            self._out.cell += 1
        self._out.pre += pre

    def _leave(self, tag, pre):
        self._out.pre -= pre
        if tag == "title" and self._out.cell:
            self._out.text(":")
        if tag in ("item", "td"):
            self._out.cell -= 1
        if tag == "td":
            self._out.text(" | ")

    def _link_text(self, link):
        page, _, section = link.get("xref", "").partition("#")
        return self._titles.get((self._folder, page or self._page, section)) or link.get("href", "")

    def result(self):
        return re.sub(r"(?m) \|$", "", self._out.result())
