#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep corpus ingest` against a second, slow implementation of docs/corpus_format.md, on the built-in sample and on
records made at random; and the command line itself. No network."""

import collections
import gzip
import hashlib
import html.entities
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import tomllib
import unittest

from tool import PROGRAM, ROOT, SAMPLE

OUTCOMES = "kept too_large invalid_utf8 malformed empty score licence too_long duplicate".split()
EXTENSIONS = {  # section 1
    "jsonl": ".jsonl .ndjson",
    "text": ".txt",
    "markdown": ".md .markdown",
    "html": ".html .htm .xhtml",
    "code": ".c .cc .cpp .cs .css .cu .go .h .hpp .hs .java .jl .js .kt .lua .ml .php .pl .py .r .rb .rs .scala .sh .sql "
    ".swift .tex .ts .zig",
}
BLANK = b" \t\n\v\f\r"
PART_BYTES = 64_000_000


# --- The model --------------------------------------------------------------------------------------------------------


def matches(pattern, path):
    """Section 1, "pattern"."""

    def name(text):
        result, at = "", 0
        while at < len(text):
            end = text.find("]", at + 3 if text[at + 1 : at + 2] == "!" else at + 2) if text[at] == "[" else -1
            if text[at] == "*":
                result += "[^/]*"
            elif text[at] == "?":
                result += "[^/]"
            elif end > 0:
                inside = text[at + 1 : end]
                negated = inside.startswith("!")
                result += ("[^/" if negated else "[") + re.sub(r"([\\^\[])", r"\\\1", inside[negated:]) + "]"
                at = end
            else:
                result += re.escape(text[at])
            at += 1
        return result

    names = ["(?:[^/]+/)*" if part == "**" else name(part) + "/" for part in pattern.split("/")]
    return re.fullmatch("".join(names), path + "/") is not None


def input_files(source, folder):
    """[(path below the root, path)] in their order."""
    root = os.path.join(folder, source.get("root", ""))
    extensions = source.get("extensions") or EXTENSIONS[source["format"]].split()
    extensions = [extensions] if isinstance(extensions, str) else extensions
    patterns, excluded = (
        [value] if isinstance(value, str) else value for value in (source["paths"], source.get("exclude", []))
    )
    found = {}
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(parent, name)
            below = os.path.relpath(path, root)
            if name.startswith(".") or not os.path.isfile(path):
                continue
            bare = re.sub(r"\.(gz|zst)$", "", name)
            for pattern in patterns:
                special = re.search(r"[*?\[]", pattern)
                is_folder = not special and (pattern == "." or below.startswith(pattern + "/"))
                if below == pattern or (matches(pattern, below) if special else is_folder and bare.endswith(tuple(extensions))):
                    found[below] = path
    for below in list(found):
        if any(matches(pattern, below) or matches(pattern + "/**", below) for pattern in excluded):
            del found[below]
    return sorted(found.items(), key=lambda item: item[0].encode())


def escaped(text):
    return re.sub(r"[\x00-\x1f\x7f%]", lambda match: f"%{ord(match[0]):02X}", text)


class Malformed(Exception):
    pass


def parse_line(line):
    """An object as a list of pairs; arrays as lists; RFC 8259 with the bounds of section 2.3, rule 3."""

    def integer(digits):
        if not -(2**63) <= int(digits) < 2**64:
            raise Malformed
        return int(digits)

    def number(digits):
        if abs(float(digits)) == float("inf"):
            raise Malformed
        return float(digits)

    def constant(_):
        raise Malformed

    class Pairs(list):
        pass

    try:
        value = json.loads(line, object_pairs_hook=Pairs, parse_int=integer, parse_float=number, parse_constant=constant)
    except (ValueError, RecursionError):
        raise Malformed from None
    if not isinstance(value, Pairs):
        raise Malformed

    def find(path):
        at = value
        for name in path.split("."):
            if not isinstance(at, Pairs):
                return None
            same = [item for key, item in at if key == name]
            if len(same) > 1:
                raise Malformed
            at = same[0] if same else None
        return at

    return find


class Model:
    """What a source's documents and counts are to be."""

    def __init__(self, source, folder):
        self.source = source
        self.filters = source.get("filters", {})
        self.fields = {"text": "text"} | source.get("fields", {})
        self.most = source.get("limits", {}).get("record_bytes_max", 1 << 24)
        self.outcomes = {name: {"documents": 0, "bytes": 0} for name in OUTCOMES}
        self.report = collections.Counter(records=0, mended=0, split=0, pieces=0)
        self.malformed = []
        self.documents = []
        self.seen = set()
        for below, path in input_files(source, folder):
            with (gzip.open if below.endswith(".gz") else open)(path, "rb") as file:
                self.file(escaped(below), file.read())

    def count(self, outcome, size):
        self.outcomes[outcome]["documents"] += 1
        self.outcomes[outcome]["bytes"] += size

    def file(self, name, data):
        if self.source["format"] != "jsonl":
            self.record(name, name, data, data.removeprefix(b"\xef\xbb\xbf"))
            return
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            bare = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if bare.strip(BLANK) or len(line) > self.most:
                self.record(name, f"{name}#{number}", line, bare)

    def record(self, name, place, whole, data):
        self.report["records"] += 1
        is_line = self.source["format"] == "jsonl"
        if len(whole) > self.most:
            return self.count("too_large", len(whole))
        rule = self.source.get("invalid_utf8", "replace")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            if rule == "drop":
                return self.count("invalid_utf8", len(data) if is_line else len(whole))
            text = data.decode("latin-1") if rule == "latin-1" else data.decode(errors="replace")
            self.report["mended"] += 1
        find = {}
        read = len(text.encode()) if is_line else len(whole)
        try:
            if is_line:
                find = {key: parse_line(text)(path) for key, path in self.fields.items()}
                text = find["text"]
                if not isinstance(text, str) or re.search("[\ud800-\udfff]", text):
                    raise Malformed
            elif "\0" in text:
                raise Malformed
            ident = find.get("id")
            ident = str(ident) if isinstance(ident, (str, int)) and not isinstance(ident, bool) else ""
            if len(ident.encode(errors="surrogatepass")) > 1024:
                raise Malformed
        except Malformed:
            self.malformed.append(place if is_line else f"{place}#1")
            return self.count("malformed", read)
        if self.source["format"] == "html":
            text = html_to_text(text)
        self.filter(place, ident, text.encode(), find)

    def filter(self, place, ident, text, find):
        suffix = f" {escaped(ident)}" if ident else ""
        if not text.strip(BLANK):
            return self.count("empty", len(text))
        least = self.filters.get("score_min")
        score = find.get("score")
        has_score = isinstance(score, (int, float)) and not isinstance(score, bool)
        if least is not None and not (has_score and score >= least):
            return self.count("score", len(text))
        allowed = self.filters.get("licences")
        if allowed:
            allowed = [allowed] if isinstance(allowed, str) else allowed
            found = find.get("licence")
            found = found if isinstance(found, list) else [found]
            known = {licence.lower() for licence in allowed}
            if not found or not all(isinstance(licence, str) and licence.lower() in known for licence in found):
                return self.count("licence", len(text))
        most = self.filters.get("bytes_max", 0)
        if most == 0 or len(text) <= most:
            return self.keep(place + suffix, text)
        if self.filters.get("over_long", "drop") == "drop":
            return self.count("too_long", len(text))
        self.report["split"] += 1
        for number, piece in enumerate(split(text, most), 1):
            self.report["pieces"] += 1
            if piece.strip(BLANK):
                self.keep(f"{place}/{number}{suffix}", piece)
            else:
                self.count("empty", len(piece))

    def keep(self, name, text):
        key = hashlib.sha256(text).digest()[:16]
        if self.filters.get("deduplicate") and key in self.seen:
            return self.count("duplicate", len(text))
        self.seen.add(key)
        self.count("kept", len(text))
        self.documents.append((name, text.decode()))


def split(text, most):
    """Section 2.5."""
    pieces = []
    while len(text) > most:
        cut = 0
        for mark in (b"\n\n", b"\n", b" "):
            found = text[:most].rfind(mark)
            if found >= 0 and found + len(mark) > most // 2:
                cut = found + len(mark)
                break
        if not cut:
            cut = most
            while text[cut] & 0xC0 == 0x80:
                cut -= 1
        pieces.append(text[:cut])
        text = text[cut:]
    return pieces + ([text] if text else [])


# --- HTML, section 2.4 ------------------------------------------------------------------------------------------------

PARAGRAPHS = set(
    "address article aside blockquote body details dir dl fieldset figure footer form h1 h2 h3 h4 h5 h6 head header hr html "
    "main menu nav ol p section table title ul".split()
)
LINES = set("caption center dd div dt figcaption legend li option summary tbody tfoot thead tr".split())
DROPPED = set("script style template noscript iframe object svg".split())
WINDOWS_1252 = {n: bytes([n]).decode("cp1252", "ignore") for n in range(0x80, 0xA0)}


def resolve(match):
    body = match[1]
    if body.startswith("#"):
        number = int(body[2:], 16) if body[1] in "xX" else int(body[1:])
        if WINDOWS_1252.get(number):
            return WINDOWS_1252[number]
        return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number < 0xE000 else "\ufffd"
    code = 0x27 if body == "apos" else html.entities.name2codepoint.get(body)
    return chr(code) if code else match[0]


def references(text):
    """The characters of `text`, references resolved."""
    result, at = [], 0
    for match in re.finditer(r"&(#[xX][0-9a-fA-F]+|#[0-9]+|[A-Za-z0-9]+);", text):
        if len(match[1]) > 11 or match.start() < at:
            continue
        result += text[at : match.start()] + resolve(match)
        at = match.end()
    return result + list(text[at:])


ATTRIBUTE = re.compile(r"""[\s/=]*([^\s=>/]+)(?:\s*=\s*("[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>]*))?""", re.ASCII)


def html_to_text(page):
    """Tokens first: characters, and what asks for line feeds; then the layout."""
    tokens, at = [], 0
    while at < len(page):
        rest = page[at:]
        if rest.startswith("<!--"):
            end = page.find("-->", at + 4)
            at = len(page) if end < 0 else end + 3
        elif rest.startswith("<![CDATA["):
            end = page.find("]]>", at + 9)
            end = len(page) if end < 0 else end
            tokens += page[at + 9 : end]
            at = min(len(page), end + 3)
        elif rest.startswith(("<!", "<?")):
            end = page.find(">", at + 2)
            at = len(page) if end < 0 else end + 1
        elif match := re.match(r"<(/?)([A-Za-z][^\s>/]*)", rest, re.ASCII):
            at = tag(page, at + match.end(), match[2].lower(), bool(match[1]), tokens)
        else:
            end = page.find("<", at + 1)
            end = len(page) if end < 0 else end
            tokens += references(page[at:end])
            at = end
    return layout(tokens)


def tag(page, at, name, closing, tokens):
    """Adds what a tag gives; returns where the page goes on."""
    attributes, empty = {}, False
    while True:
        while at < len(page) and page[at] in " \t\n\v\f\r/=":
            empty = page[at] == "/"
            at += 1
        if at >= len(page):
            return at
        if page[at] == ">":
            at += 1
            break
        empty = False
        match = ATTRIBUTE.match(page, at)
        value = match[2] or ""
        attributes[match[1].lower()] = value[1:].rstrip(value[0]) if value[:1] in ("'", '"') else value
        at = match.end()
    if name in DROPPED:
        if not closing and not empty:
            end = re.compile(rf"</{re.escape(name)}(?=[\s/>]|\Z)[^>]*(?:>|\Z)", re.I | re.ASCII).search(page, at)
            return end.end() if end else len(page)
        return at
    if name == "img" and not closing and attributes.get("class") == "math" and attributes.get("alt"):
        tokens += ["$", *references(attributes["alt"]), "$"]
    if name == "br":
        tokens.append(("br",))
    elif name in ("pre", "textarea"):
        if closing or not empty:
            tokens.append(("pre", not closing))
    elif name in ("td", "th"):
        if not closing:
            tokens.append(("cell",))
    elif name in PARAGRAPHS or name in LINES:
        tokens.append(("break", 2 if name in PARAGRAPHS else 1))
    return at


def layout(tokens):
    out, feeds, space, cell, depth, first = "", 0, False, False, 0, False
    for token in tokens:
        if token == ("br",):
            feeds, space = max(feeds, min(feeds + 1, 2)), False
        elif token == ("cell",):
            cell = cell or (feeds == 0 and out != "")
        elif token[0] == "break":
            feeds, space = max(feeds, token[1]), False
        elif token[0] == "pre" and token[1]:
            feeds, space, depth = max(feeds, 2), False, depth + 1
            first = first or depth == 1
        elif token[0] == "pre":
            depth = max(0, depth - 1)
            feeds, space = 2 if depth == 0 else max(feeds, 2), False
            out = out if depth else out.rstrip(" \t\n")
        elif depth == 0 and token in " \t\n\v\f\r":
            space = True
        elif depth and token == "\n":
            feeds, first = feeds + (not first), False
        elif depth and token == "\r":
            pass
        else:
            first = False
            if out and feeds:
                out = out.rstrip(" \t")
                out += "\n" * feeds if out else ""
            elif out and cell:
                out += "\t"
            elif out and space:
                out += " "
            feeds, space, cell = 0, False, False
            out += token
    return out.rstrip(" \t\n")


# --- A reader of stores, section 4 ------------------------------------------------------------------------------------


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def read_store(folder):
    """(manifest, report, [(name, text)]), everything checked that the page says of them."""
    with open(os.path.join(folder, "manifest.json"), "rb") as file:
        data = file.read()
    manifest = json.loads(data)
    assert canonical(manifest) == data
    with open(os.path.join(folder, "report.json"), "rb") as file:
        data = file.read()
    report = json.loads(data)
    assert canonical(report) == data and hashlib.sha256(data).hexdigest() == manifest["report"]
    documents = []
    for number, part in enumerate(manifest["parts"]):
        assert part["file"] == f"part-{number:06d}.docs"
        with open(os.path.join(folder, part["file"]), "rb") as file:
            data = file.read()
        assert len(data) == part["bytes"] and hashlib.sha256(data).hexdigest() == part["digest"]
        assert data[:8] == bytes.fromhex("4C53444F4353310A")
        at, texts, before = 8, 0, len(documents)
        while at < len(data):
            name, text = struct.unpack_from("<II", data, at)
            documents.append((data[at + 8 : at + 8 + name].decode(), data[at + 8 + name : at + 8 + name + text].decode()))
            at += 8 + name + text
            texts += text
        assert at == len(data) and texts == part["text_bytes"] and len(documents) - before == part["documents"]
    assert manifest["documents"] == len(documents)
    assert manifest["text_bytes"] == sum(part["text_bytes"] for part in manifest["parts"])
    left = {"manifest.json", "report.json"} | {part["file"] for part in manifest["parts"]}
    assert set(os.listdir(folder)) == left
    return manifest, report, documents


def expected_digests(source, folder):
    """inputs and config of the manifest."""
    listing, chain, total = hashlib.sha256(), bytes(32), 0
    files = input_files(source, folder)
    for below, path in files:
        with open(path, "rb") as file:
            data = file.read()
        name = escaped(below).encode()
        listing.update(name + b"\0%d\n" % len(data))
        parts = chain, hashlib.sha256(name).digest(), struct.pack("<Q", len(data)), hashlib.sha256(data).digest()
        chain = hashlib.sha256(b"".join(parts)).digest()
        total += len(data)
    inputs = {"bytes": total, "digest": chain.hex(), "files": len(files), "listing": listing.hexdigest()}
    fields, filters = {"text": "text"} | source.get("fields", {}), source.get("filters", {})

    def strings(value):
        return [value] if isinstance(value, str) else list(value)

    least = filters.get("score_min")
    decisive = {
        "version": 1,
        "name": source["name"],
        "licence": source["licence"],
        "format": source["format"],
        "paths": strings(source["paths"]),
        "exclude": strings(source.get("exclude", [])),
        "extensions": strings(source.get("extensions") or EXTENSIONS[source["format"]].split()),
        **{f"{key}_field": fields.get(key, "") for key in ("text", "id", "score", "licence")},
        "score_min": None if least is None else struct.unpack("<Q", struct.pack("<d", least))[0],
        "licences": sorted(licence.lower() for licence in strings(filters.get("licences", []))),
        "bytes_max": filters.get("bytes_max", 0),
        "over_long": filters.get("over_long", "drop"),
        "deduplicate": filters.get("deduplicate", False),
        "invalid_utf8": ["replace", "latin-1", "drop"].index(source.get("invalid_utf8", "replace")),
        "record_bytes_max": source.get("limits", {}).get("record_bytes_max", 1 << 24),
    }
    fingerprint = hashlib.sha256(canonical(decisive)).hexdigest()
    return inputs, hashlib.sha256(f"{fingerprint} {PART_BYTES}".encode()).hexdigest()


# --- Tests ------------------------------------------------------------------------------------------------------------


class IngestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.runs = 0

    def run_ingest(self, *arguments, **options):
        command = [*PROGRAM, "corpus", "ingest", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    def compare(self, config, threads=2):
        """Ingests; every source must be what the model says. Returns {source: report}."""
        self.runs += 1
        out = os.path.join(self.folder, f"out{self.runs}")
        result = self.run_ingest(config, "--out", out, "--json", "--threads", str(threads))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        printed = {line["source"]: line for line in map(json.loads, result.stdout.splitlines())}
        with open(config, "rb") as file:
            sources = tomllib.load(file)["source"]
        reports = {}
        for source in sources:
            name = source["name"]
            with self.subTest(source=name):
                model = Model(source, os.path.dirname(config))
                manifest, report, documents = read_store(os.path.join(out, name))
                self.assertEqual(documents, model.documents)
                self.assertEqual(report["outcomes"], model.outcomes)
                self.assertEqual({key: report[key] for key in model.report}, dict(model.report))
                self.assertEqual([complaint.split(": ")[0] for complaint in report["complaints"]], model.malformed[:10])
                total = sum(count["documents"] for count in report["outcomes"].values())
                self.assertEqual(total, report["records"] - report["split"] + report["pieces"])
                inputs, config_digest = expected_digests(source, os.path.dirname(config))
                self.assertEqual(manifest["inputs"], inputs)
                self.assertEqual(manifest["config"], config_digest)
                self.assertEqual({key: printed[name][key] for key in report}, report)
                self.assertEqual(printed[name]["documents"], len(documents))
                reports[name] = report
        return reports


class ModelTest(IngestCase):
    def test_sample(self):
        reports = self.compare(os.path.join(SAMPLE, "corpus.toml"))
        self.assertEqual(reports["web"]["outcomes"]["kept"]["documents"], 242)

    def test_sample_formats(self):
        reports = self.compare(os.path.join(SAMPLE, "formats.toml"))
        self.assertEqual(reports["notes-replaced"]["mended"], 2)
        self.assertEqual(reports["notes-dropped"]["outcomes"]["invalid_utf8"]["documents"], 2)

    def test_worked_example_of_the_page(self):
        with open(os.path.join(ROOT, "docs", "corpus_format.md"), encoding="utf-8") as file:
            page = file.read()
        out = os.path.join(self.folder, "out")
        result = self.run_ingest(os.path.join(SAMPLE, "corpus.toml"), "--out", out, "--source", "edu")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("manifest.json", "report.json"):
            with open(os.path.join(out, "edu", name), encoding="utf-8") as file:
                self.assertIn(f"\n    {file.read()}\n", page)
        with open(os.path.join(out, "edu", "manifest.json"), "rb") as file:
            self.assertIn(hashlib.sha256(file.read()).hexdigest(), page)

    def test_random_lines(self):
        chance = random.Random(7)
        totals = collections.Counter()
        for round_number in range(12):
            lines = b"".join(self.line(chance) for _ in range(400))
            self.write(f"r{round_number}/a.jsonl", (b"\xef\xbb\xbf" if round_number % 2 else b"") + lines)
            self.write(f"r{round_number}/b.jsonl.gz", gzip.compress(lines[: len(lines) // 2]))
            rules = ["replace", "latin-1", "drop"][round_number % 3]
            over_long = ["drop", "split"][round_number % 2]
            config = self.write(
                f"r{round_number}/corpus.toml",
                f"""
                [[source]]
                name = "everything"
                licence = "MIT"
                format = "jsonl"
                paths = "."
                invalid_utf8 = "{rules}"
                fields = {{ text = "text", id = "meta.id", score = "meta.score", licence = "licence" }}
                filters = {{ score_min = 0.5, licences = ["mit", "CC0-1.0"], bytes_max = {64 + round_number * 20},
                            over_long = "{over_long}", deduplicate = {"true" if round_number % 4 < 2 else "false"} }}
                limits = {{ record_bytes_max = {200 + round_number * 50} }}
                [[source]]
                name = "nothing-asked"
                licence = "MIT"
                format = "jsonl"
                paths = ["a.jsonl"]
                invalid_utf8 = "{rules}"
                """.replace("\n                            ", " "),
            )
            reports = self.compare(config, threads=1 + round_number % 4)
            for report in reports.values():
                totals.update({name: count["documents"] for name, count in report["outcomes"].items()})
                totals.update({name: report[name] for name in ("mended", "split", "pieces")})
        for name, total in totals.items():
            self.assertGreater(total, 5, name)
        self.assertEqual(len(totals), len(OUTCOMES) + 3)

    @staticmethod
    def line(chance):
        """A line that meets some rule or other."""
        words = ["a", "bc ", "é", "\U0001f600", "\n\n", "\n", " ", "\\", '"', "\u2029", "\x7f", "\x00", "end. "]
        text = "".join(chance.choice(words) for _ in range(chance.choice([0, 1, 3, 30, 90])))
        record = {
            "text": chance.choice([text] * 8 + ["same", " \t\n", None, 3, ["x"], "\ud800"]),
            "meta": chance.choice(
                [{"id": chance.choice(["i d%", 7, -1, 2**64 - 1, 1.5, None, "x" * 1025]), "score": value}
                 for value in (0.5, 1, 0.49999999999999994, "1", None, True, 5e-324, 1e300)] + [[], 3]
            ),
            "licence": chance.choice(["MIT", "cc0-1.0", ["MIT", "CC0-1.0"], ["MIT", "GPL"], [], ["MIT", 1], None, "GPL"]),
        }
        data = json.dumps(record, ensure_ascii=chance.random() < 0.5).encode(errors="replace")
        kind = chance.randrange(40)
        if kind == 0:
            data = data[:-2]
        elif kind == 1:
            data = data.replace(b"same", b"sa\xe9me").replace(b"a", b"\xff", 1)
        elif kind == 2:
            data = chance.choice([b"", b" \t", b"[]", b"3", b'"text"', b"{}", b"{} {}", b"\xef\xbb\xbf{}", b"nul", b"{,}"])
        elif kind == 3:
            data = data.replace(b'"text"', b'"text": "twice", "text"', 1)
        elif kind == 4:
            extra = chance.choice([b"1e999", b"18446744073709551616", b"-9223372036854775809", b"NaN", b"01", b"1.", b"-0"])
            data = b'{"number": ' + extra + b"," + data[1:]
        elif kind == 5:
            data = b'{"text": "tab\there"}'
        return data + chance.choice([b"\n", b"\n", b"\r\n", b"\n\n"])

    def test_random_pages(self):
        chance = random.Random(8)
        pieces = (
            "a|b c|  |\n|&amp;|&lt;p&gt;|&#233;|&#x1F600;|&#146;|&#0;|&bogus;|&|&nbsp;|é|<p>|</p>|<div>|</div>|<br>|<br/>|"
            "<pre>|</pre>|\n\nx  y \n| \n\t\n|<table><tr><td>|</td><td>|</table>|<!-- x > -->|<!doctype html>|<?php ?>|"
            "<script>if (a<b) '</p>'</script>|<style>x</STYLE >|<svg/>|<img class=\"math\" alt='x &lt; y'>|<img alt='no'>|"
            "<a href='1>2' title=\"b\">|</a>|<b>|<ul><li>|</ul>|1 < 2|</ |<![CDATA[ <p> &amp; ]]>|\u00a0|\u2003|<h1\n>|<td>|<P CLASS=x>"
        ).split("|")
        for number in range(300):
            page = "".join(chance.choice(pieces) for _ in range(chance.randrange(40)))
            self.write(f"pages/{number:03d}.html", page)
        config = self.write(
            "corpus.toml", '[[source]]\nname = "pages"\nlicence = "MIT"\nformat = "html"\npaths = "pages"\n'
        )
        self.compare(config)

    def test_paths(self):
        for name in ("a.py", "b/c.py", "b/d/e.py", "b/d/f.txt", "b/old/g.py", ".h/i.py", "b/.j.py", "k[1].py", "b2/l.py"):
            self.write(f"in/{name}", f"# {name}\n")
        sources = []
        cases = [
            ('"."', "[]"), ('"b"', "[]"), ('"**/*.py"', "[]"), ('"b/*"', "[]"), ('["*.py", "b/d/f.txt"]', "[]"),
            ('"."', '["b/old"]'), ('"."', '["**/old/**", "a*"]'), ('"b[0-9]/*.py"', "[]"), ('"[!b]*"', "[]"), ('"b/**/e.py"', "[]"),
            ('"b?/*"', "[]"), ('["b", "b/c.py", "**/c.py"]', '["b/d"]'),
        ]
        for number, (paths, exclude) in enumerate(cases):
            sources.append(
                f'[[source]]\nname = "s{number}"\nlicence = "MIT"\nformat = "code"\nroot = "in"\npaths = {paths}\n'
                + (f"exclude = {exclude}\n" if exclude != "[]" else "")
            )
        self.compare(self.write("corpus.toml", "\n".join(sources)))


class ProgramTest(IngestCase):
    def lines(self, count):
        return "".join(json.dumps({"text": f"document {number} " + "word " * 20}) + "\n" for number in range(count))

    def config(self, extra=""):
        return self.write(
            "corpus.toml", f'[[source]]\nname = "s"\nlicence = "MIT"\nformat = "jsonl"\npaths = "a.jsonl"\n{extra}'
        )

    def test_exit_codes(self):
        out = os.path.join(self.folder, "out")
        config = self.config()
        self.assertEqual(self.run_ingest(config).returncode, 2)  # no --out
        result = self.run_ingest(config, "--out", out)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.jsonl", result.stderr)
        self.assertEqual(self.run_ingest(os.path.join(self.folder, "none.toml"), "--out", out).returncode, 1)
        self.write("a.jsonl", self.lines(10))
        result = self.run_ingest(config, "--out", out, "--source", "t")
        self.assertEqual(result.returncode, 1)
        self.assertIn('expected --source to be one of s; found "t"', result.stderr)
        self.assertEqual(self.run_ingest(config, "--out", out).returncode, 0)
        again = self.run_ingest(config, "--out", out)
        self.assertEqual(again.returncode, 0)
        self.assertIn("finished by an earlier run", again.stdout)
        self.write("out/s/manifest.json", "{}")
        self.assertEqual(self.run_ingest(config, "--out", out).returncode, 5)
        self.write("a.jsonl.gz", gzip.compress(self.lines(10).encode())[:-1])
        with open(config, encoding="utf-8") as file:
            config = self.write("gz.toml", file.read().replace("a.jsonl", "a.jsonl.gz"))
        result = self.run_ingest(config, "--out", os.path.join(self.folder, "gz"))
        self.assertEqual(result.returncode, 5)
        self.assertIn("a.jsonl.gz: near byte", result.stderr)

    def test_killed_by_the_system_and_run_again(self):
        self.write("a.jsonl", self.lines(400_000))
        config = self.config()
        whole, killed = os.path.join(self.folder, "whole"), os.path.join(self.folder, "killed")
        self.assertEqual(self.run_ingest(config, "--out", whole).returncode, 0)
        chance = random.Random(9)
        for _ in range(8):
            process = subprocess.Popen(
                [*PROGRAM, "corpus", "ingest", config, "--out", killed, "--threads", "2"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                process.wait(chance.random() * 0.2)
            except subprocess.TimeoutExpired:
                process.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM]))
                process.wait()
        self.assertEqual(self.run_ingest(config, "--out", killed).returncode, 0)
        self.assertEqual(read_store(os.path.join(killed, "s")), read_store(os.path.join(whole, "s")))

    def test_memory_does_not_grow_with_the_corpus(self):
        config = self.config()

        def peak(count):
            self.write("a.jsonl", self.lines(1000) * count)
            code = (
                "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            )
            out = os.path.join(self.folder, f"out{count}")
            command = [sys.executable, "-c", code, *PROGRAM, "corpus", "ingest", config, "--out", out, "--threads", "2"]
            # Of AddressSanitizer's builds, without the memory that it keeps back to catch late uses.
            environment = os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}
            return int(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)

        small, large = peak(80), peak(1600)  # 10 MB, 200 MB
        self.assertLess(large - small, 24 << 10, (small, large))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
