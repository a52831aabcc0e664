#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/extract-documents on tiny packages of every kind, made here. Needs dpkg-deb, and no network."""

import collections
import gzip
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(ROOT, "scripts", "extract-documents")


def load():
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, "scripts"))
    loader = importlib.machinery.SourceFileLoader("extract_documents", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


extract_documents = load()
LONG = "A sentence that is long enough to count as a document."


class Extraction(unittest.TestCase):
    """What becomes of the files of a package, kind by kind."""

    def run_kind(self, kind, files):
        """([record], counts) of a package with these files, {path: text or bytes}."""
        counts = collections.Counter()
        pattern = extract_documents.re.compile(extract_documents.KINDS[kind].pattern)
        data = [(path, text.encode() if isinstance(text, str) else text) for path, text in sorted(files.items())]
        wanted = [file for file in data if pattern.fullmatch(file[0])]
        return list(extract_documents.documents(extract_documents.KINDS[kind], wanted, "part", "MIT", counts)), counts

    def texts(self, kind, files):
        return [record["text"] for record in self.run_kind(kind, files)[0]]

    def test_record(self):
        records, counts = self.run_kind("typescript", {"src/a.ts": LONG, "src/b.js": LONG, "dist/c.ts": LONG})
        self.assertEqual(records, [{"name": "part/src/a.ts", "licence": "MIT", "text": LONG + "\n"}])
        self.assertEqual(counts, {"files": 1})

    def test_factbook(self):
        country = {
            "Introduction": {"Background": {"text": "Seen from the sea.<br>And twice."}},
            "Geography": {
                "Area": {"total": {"text": "3 sq km"}, "water": {"text": None}},
                "Coast": {"text": "long", "note": {"text": "very"}},
            },
            "Empty": {},
        }
        files = {
            "europe/xx.json": json.dumps(country),
            "meta/categories.json": json.dumps(country),
            "package.json": "{}",
        }
        self.assertEqual(
            self.texts("factbook", files),
            [
                "Introduction\nBackground: Seen from the sea.; And twice.\n\n"
                "Geography\nArea:\ntotal: 3 sq km\nCoast: long\nnote: very\n"
            ],
        )
        with self.assertRaises(extract_documents.BadPackage):
            self.texts("factbook", {"europe/xx.json": "[1]"})
        with self.assertRaises(json.JSONDecodeError):
            self.texts("factbook", {"europe/xx.json": '{"Introduction": {"te'})

    def test_udhr(self):
        page = (
            "<!doctype html>\n<html><head><title>Vietnamese</title></head>\n<body>\n  <h1>Tuyên ngôn</h1>\n  <header>\n"
            "    <h2>Lời nói đầu</h2>\n    <p>Một\u00a0hai\n      ba, bốn &amp; năm</p></header><article><h3>1</h3>"
            "<ol><li>Một</li><li>Hai</li></ol></article></body></html>"
        )
        self.assertEqual(
            self.texts("udhr", {"declaration/vie.html": page, "index.html": page}),
            ["Tuyên ngôn\n\nLời nói đầu\n\nMột\u00a0hai ba, bốn & năm\n\n1\n\n1. Một\n2. Hai\n"],
        )

    def test_foldoc(self):
        dictionary = (
            "00-database-short\n     A dictionary\n\nThe original data was distributed with a notice.\n\n"
            "bit%%%binary\ndigit\n\n   <unit> The smallest unit of data.\n\n   (1994-01-01)\n\nnib\n\n   {nibble}\n\n"
            "byte\n\n   <unit> Eight bits, as a rule, sometimes more.\n"
        )
        records, counts = self.run_kind("foldoc", {"usr/share/dictd/foldoc.dict.dz": gzip.compress(dictionary.encode())})
        self.assertEqual(
            [(record["name"], record["text"]) for record in records],
            [
                (
                    "part/usr/share/dictd/foldoc.dict.dz#0",
                    "bit, binary\ndigit\n\n   <unit> The smallest unit of data.\n\n   (1994-01-01)\n",
                ),
                (
                    "part/usr/share/dictd/foldoc.dict.dz#2",
                    "byte\n\n   <unit> Eight bits, as a rule, sometimes more.\n",
                ),
            ],
        )
        self.assertEqual(counts, {"files": 1, "short": 1})
        with self.assertRaisesRegex(extract_documents.BadPackage, "not a whole gzip file"):
            self.run_kind("foldoc", {"usr/share/dictd/foldoc.dict.dz": gzip.compress(dictionary.encode())[:-9]})

    def test_gzip_bomb(self):
        bomb = gzip.compress(bytes(extract_documents.MEMBER_BYTES_MAX + 1))
        with self.assertRaisesRegex(extract_documents.BadPackage, "unpacks to more than"):
            self.run_kind("foldoc", {"usr/share/dictd/foldoc.dict.dz": bomb})

    def test_cxx_annotations(self):
        links = '<hr>\n<ul>\n <li> <a href="cplusplus.html">Table of Contents</a>\n <li> <a href="x">Next</a>\n</ul>\n<hr>'
        page = (
            f"<html><head><title>C++</title></head><body>\n{links}\n<a name='S'></a><h1 >Chapter 5: Strings</h1>\n"
            "<strong >C++</strong> offers\n<code >std::string</code>, <em>really</em>.\n<p>\n<pre>\n    if (a &lt; b)\n\n"
            "        f();\n</pre>\n<p>\nTwo kinds:\n<ul>\n  <li>short\n  <li>long ones\n</ul>\n"
            "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
            f"{links}</body></html>"
        )
        folder = "usr/share/doc/c++-annotations/html/"
        self.assertEqual(
            self.texts("c++-annotations", {folder + "cplusplus05.html": page, folder + "cplusplus.html": page}),
            [
                "Chapter 5: Strings\n\nC++ offers std::string, really.\n\n    if (a < b)\n\n        f();\n\n"
                "Two kinds:\n\n- short\n- long ones\n\na | b\nc | d\n"
            ],
        )

    def test_sphinx(self):
        page = (
            '<html><body><div class="related">Navigation</div><div class="body" role="main"><div>'
            '<h1>Gamma<a class="headerlink" href="#g">¶</a></h1><p>The factorial, <img class="math" src="1.png" '
            'alt="x!\n = \\Gamma(x+1)"/>, is <span class="math notranslate">\\(n \\ge 0\\)</span>:</p>'
            '<div class="math"><p><img src="2.png" alt="a_0 = 1"/></p></div><div class="math">\\[S = 2\\]</div>'
            '<p>A <img src="plot.png" alt="plot"> plot.</p><script>var x = "<p>no</p>";</script>'
            '<pre><span>&gt;&gt;&gt; </span><span class="n">fac</span>(3)\n6\n</pre></div></div>'
            "<p>Footer</p></body></html>"
        )
        self.assertEqual(
            self.texts("sphinx", {"usr/share/doc/m-doc/html/f/gamma.html": page, "usr/share/doc/m-doc/html/genindex.html": page}),
            [
                "Gamma\n\nThe factorial, $x! = \\Gamma(x+1)$, is $n \\ge 0$:\n\n$$a_0 = 1$$\n\n$$S = 2$$\n\nA plot.\n\n"
                ">>> fac(3)\n6\n"
            ],
        )

    def test_debian_handbook(self):
        def page(title, *paragraphs):
            body = "".join(f'<div class="para">{paragraph}</div>' for paragraph in paragraphs)
            return (
                '<html><body><div id="banner">Download</div><p id="title">Logo</p><ul class="docnav"><li>Next</li></ul>'
                f'<h2 class="title">{title}</h2><a class="indexterm"></a>{body}</body></html>'
            )

        english = [f"Paragraph {number}: {LONG}" for number in range(4)]
        folder = "usr/share/doc/debian-handbook/html/"
        records, counts = self.run_kind(
            "debian-handbook",
            {
                folder + "da-DK/apt.html": page("6.1. Værktøjet", *english),  # untranslated but for the title
                folder + "de-DE/apt.html": page("6.1. Das Werkzeug", "Ein Satz, der übersetzt wurde.", "Noch einer, lang genug."),
                folder + "en-US/apt.html": page("6.1. The tool", *english),
                folder + "en-US/index.html": page("Contents", *english),
            },
        )
        self.assertEqual(
            [record["text"] for record in records],
            [
                "6.1. Das Werkzeug\n\nEin Satz, der übersetzt wurde.\n\nNoch einer, lang genug.\n",
                "6.1. The tool\n\n" + "\n\n".join(english) + "\n",
            ],
        )
        self.assertEqual(counts, {"files": 3, "untranslated": 1})

    def test_mallard(self):
        def page(label, body):
            return (
                f'<?xml version="1.0"?><page xmlns="http://projectmallard.org/1.0/" id="{label}"><info><title type="link">'
                f"Never</title><desc>Never</desc></info>{body}</page>"
            )

        folder = "usr/share/help/C/gnome-help/"
        files = {
            folder + "clock.page": page(
                "clock",
                "<title>Set the <gui>clock</gui></title><!-- never --><p>See <link xref='dates#zone'/>, <link xref='dates'/>\n"
                " and <link xref='dates'>this</link>.</p><steps><item><p>Open it.</p></item>\n<item><p>Press <key>Enter"
                "</key>.</p></item></steps><terms><item><title>Zone</title><p>where you are</p></item></terms>"
                "<screen>$ date\n  now</screen>",
            ),
            folder + "dates.page": page("dates", f"<title>Dates &amp; times</title><section id='zone'><title>The zone</title>"
                                                 f"<p>{LONG}</p></section>"),
            folder + "bad.page": "<page><p>cut",
        }
        records, counts = self.run_kind("mallard", files)
        self.assertEqual(
            [record["text"] for record in records],
            [
                "Set the clock\n\nSee The zone, Dates & times and this.\n\n- Open it.\n- Press Enter.\n\n"
                "- Zone: where you are\n\n$ date\n  now\n",
                f"Dates & times\n\nThe zone\n\n{LONG}\n",
            ],
        )
        self.assertEqual(counts, {"files": 3, "not well-formed": 1})

    def test_tex(self):
        manual = (
            "% a comment\n\\def\\x{macro}\n\\chapter{One}\\label{c:1}\nThe first chapter says what the rest is about.\n"
            "\\subsec{f$(x)$}\\kbdsidx{f}\\label{se:f}\nThe function $f$, which is $x \\mapsto x^2$.\n% a comment\n\\bprog\n"
            "? f(2)\n%1 = 4\n@eprog\n\\subsubsec{More} about it.\n\\section{Two}\nA second section, which is just as long.\n\\eject\n"
        )
        folder = "usr/share/pari/doc/"
        self.assertEqual(
            self.texts("tex", {folder + "users.tex": manual, folder + "parimacro.tex": manual, folder + "users.pdf": "x"}),
            [
                "\\chapter{One}\nThe first chapter says what the rest is about.\n",
                "\\subsec{f$(x)$}\nThe function $f$, which is $x \\mapsto x^2$.\n\\bprog\n? f(2)\n%1 = 4\n@eprog\n"
                "\\subsubsec{More} about it.\n",
                "\\section{Two}\nA second section, which is just as long.\n",
            ],
        )

    def test_set_mm(self):
        database = (
            "$( A file about logic, with $= in a comment, kept as it is. $)\n$( $t typesetting $)\n\n\n"
            "$(\n=-=-=-=-=\n  Section one\n=-=-=-=-=\n$)\n\n  $( A theorem. $)\n  id $p |- ( ph -> ph ) $=\n"
            "    ( wi ax-1 )\n ABC $.\n\n$(\n#*#*#*#\n  Section two\n#*#*#*#\n$)\n  ax-2 $a |- ( ph -> ( ps -> ph ) ) $.\n"
        )
        self.assertEqual(
            self.texts("set.mm", {"usr/share/metamath/databases/set.mm": database}),
            [
                "$( A file about logic, with $= in a comment, kept as it is. $)\n",
                "$(\n=-=-=-=-=\n  Section one\n=-=-=-=-=\n$)\n\n  $( A theorem. $)\n  id $p |- ( ph -> ph ) $.\n",
                "$(\n#*#*#*#\n  Section two\n#*#*#*#\n$)\n  ax-2 $a |- ( ph -> ( ps -> ph ) ) $.\n",
            ],
        )

    def test_source_code(self):
        go = "package main\n\nfunc main() {} // " + LONG
        source = "usr/share/go-1.19/src/"
        records, counts = self.run_kind(
            "go",
            {
                source + "a/main.go": go,
                source + "a/generated.go": "// Code generated by x. DO NOT EDIT.\n" + go,
                source + "a/testdata/x.go": go,
                source + "cmd/vendor/y.go": go,
                source + "vendor/z.go": go,
                "usr/share/go-1.19/test/t.go": go,
            },
        )
        self.assertEqual([record["name"] for record in records], [f"part/{source}a/main.go"])
        self.assertEqual(counts, {"files": 2, "generated": 1})
        cases = {
            "rust": ("usr/src/rustc-1.63.0/library/core/src/a.rs", "usr/src/rustc-1.63.0/library/stdarch/a.rs"),
            "markdown": ("usr/src/rustc-1.63.0/src/doc/book/src/a.md", "usr/src/rustc-1.63.0/src/doc/book/nostarch/a.md"),
            "python": ("usr/lib/python3/dist-packages/n/a.py", "usr/share/doc/n/a.py"),
            "c": ("usr/include/stb/a.h", "usr/share/a.h"),
            "javascript": ("src/math/a.js", "examples/a.js"),
            "r-paper": ("usr/lib/R/site-library/zoo/doc/zoo.Rnw", "usr/lib/R/site-library/zoo/doc/zoo.R"),
            "moby-dick": ("data/chapter_12.txt", "data/etymology.txt"),
            "speeches": ("data/1790_george_washington_n.txt", "data/LICENSE"),
        }
        for kind, (taken, left) in cases.items():
            with self.subTest(kind):
                records, _ = self.run_kind(kind, {taken: LONG, left: LONG + " No."})
                self.assertEqual([record["text"] for record in records], [LONG + "\n"])

    def test_questions(self):
        def file(head, *lines):
            return "\n".join((head, "Which of these?", *lines)) + "\n"

        choices = ("A. One", "B. Two", "C. Three", "D. All of the above")
        ham, fcc = "usr/share/hamexam/T/", "usr/share/fccexam/"
        records, counts = self.run_kind(
            "question",
            {
                ham + "T0A01": file("T0A01 (B) [97.3]", *choices),
                ham + "T0A02": "T0A02 (A)\nWhat is part 3 in Figure T1?\n" + "\n".join(choices) + "\n",
                ham + "T0A03": file("T0A03 (A)", *choices[:3]),
                "usr/share/hamexam/README": "not a question",
                fcc + "E7/7-77I5": file("77I5 D", "A..Ein", "B.Zwei", "C. Drei", "D. Vier"),
                fcc + "E9/9-1": file("9-1 D", "A..Ein", "B.Zwei", "C. Drei", "D. Vier"),
            },
        )
        self.assertEqual(
            records,
            [
                {
                    "name": f"part/{fcc}E7/7-77I5",
                    "licence": "MIT",
                    "id": "7-77I5",
                    "question": "Which of these?",
                    "choices": ["Ein", "Zwei", "Drei", "Vier"],
                    "answer": "D",
                },
                {
                    "name": f"part/{ham}T0A01",
                    "licence": "MIT",
                    "id": "T0A01",
                    "question": "Which of these?",
                    "choices": ["One", "Two", "Three", "All of the above"],
                    "answer": "B",
                },
            ],
        )
        self.assertEqual(
            counts, {"files": 5, "needs a figure": 1, "not a question with four choices": 1, "duplicate": 1}
        )

    def test_encodings(self):
        latin1 = "Le café, où l’on boit du thé, est fermé en février."
        records, counts = self.run_kind(
            "moby-dick",
            {
                "data/chapter_1.txt": latin1.encode("cp1252"),
                "data/chapter_2.txt": b"\xef\xbb\xbf" + (LONG + "\r\nA second line.\r").encode(),
                "data/chapter_3.txt": LONG.encode("utf-16"),
                "data/chapter_4.txt": LONG + " With \x02 and \x7f.\x0cNew page, \t tab, \u0085 next.",
                "data/chapter_5.txt": "\n\n" + LONG + " \n\t\n",
                "data/chapter_6.txt": LONG,
                "data/chapter_7.txt": b"Bytes that Windows-1252 has no character for: \x81 and \x90.",
            },
        )
        self.assertEqual(
            [record["text"] for record in records],
            [
                latin1 + "\n",
                LONG + "\nA second line.\n",
                LONG + " With  and .\nNew page, \t tab, \u0085 next.\n",
                LONG + "\n",
                "Bytes that Windows-1252 has no character for: \x81 and \x90.\n",
            ],
        )
        self.assertEqual(counts, {"files": 7, "was Latin-1": 2, "not text": 1, "duplicate": 1})

    def test_speech(self):
        self.assertEqual(
            self.texts("speeches", {"data/1890_x_r.txt": "The act &quot;directing the purchase of silver&quot; & so on."}),
            ['The act "directing the purchase of silver" & so on.\n'],
        )

    def test_lone_surrogate(self):
        country = '{"Introduction": {"Background": {"text": "' + LONG + ' \\ud800"}}}'
        self.assertEqual(self.texts("factbook", {"europe/xx.json": country}), [f"Introduction\nBackground: {LONG} ?\n"])

    def test_every_kind_of_the_package_list(self):
        with open(os.path.join(ROOT, "corpora", "packages.toml"), "rb") as file:
            packages = tomllib.load(file)
        for name, part in packages["part"].items():
            with self.subTest(name):
                self.assertIn(part["kind"], extract_documents.KINDS)
                self.assertIn(part["archive"], packages["archive"])
        self.assertEqual({part["archive"] for part in packages["part"].values()}, set(packages["archive"]))
        self.assertEqual({part["kind"] for part in packages["part"].values()}, set(extract_documents.KINDS))


class Program(unittest.TestCase):
    """The command line: archives in, whole files out, one line of complaint."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "out.jsonl")

    def tar(self, files, name="package.tgz"):
        path = os.path.join(self.folder, name)
        with tarfile.open(path, "w:gz") as archive:
            for inside, text in files.items():
                member = tarfile.TarInfo(inside)
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        return path

    def run_program(self, kind, package):
        command = [sys.executable, "-B", SCRIPT, kind, package, self.out, "--name", "n", "--licence", "MIT"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def lines(self):
        with open(self.out, "rb") as file:
            return file.read()

    def test_archives_of_any_order_give_the_same_bytes(self):
        files = {"package/src/b.ts": LONG + " b é", "package/src/a/é.ts": LONG + " a", "package/src/a.ts": LONG}
        result = self.run_program("typescript", self.tar(files))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(json.loads(result.stdout)["documents"], 3)
        first = self.lines()
        self.assertIn("é".encode(), first)
        self.assertEqual(
            [json.loads(line)["name"] for line in first.splitlines()], ["n/src/a.ts", "n/src/a/é.ts", "n/src/b.ts"]
        )
        self.run_program("typescript", self.tar(dict(reversed(files.items()))))
        self.assertEqual(self.lines(), first)

    def test_folder(self):
        os.makedirs(os.path.join(self.folder, "p", "src"))
        with open(os.path.join(self.folder, "p", "src", "a.ts"), "w", encoding="utf-8") as file:
            file.write(LONG)
        os.symlink("a.ts", os.path.join(self.folder, "p", "src", "b.ts"))
        self.assertEqual(self.run_program("typescript", os.path.join(self.folder, "p")).returncode, 0)
        self.assertEqual(self.lines(), f'{{"licence":"MIT","name":"n/src/a.ts","text":"{LONG}\\n"}}\n'.encode())

    def test_deb(self):
        root = os.path.join(self.folder, "root")
        os.makedirs(os.path.join(root, "DEBIAN"))
        os.makedirs(os.path.join(root, "usr", "include"))
        with open(os.path.join(root, "DEBIAN", "control"), "w", encoding="utf-8") as file:
            file.write("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n")
        with open(os.path.join(root, "usr", "include", "a.h"), "w", encoding="utf-8") as file:
            file.write(LONG)
        deb = os.path.join(self.folder, "x.deb")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, deb], check=True, capture_output=True)
        self.assertEqual(self.run_program("c", deb).returncode, 0)
        self.assertEqual(json.loads(self.lines())["name"], "n/usr/include/a.h")
        with open(deb, "rb") as file:
            whole = file.read()
        with open(deb, "wb") as file:
            file.write(whole[: len(whole) - 100])
        self.assert_refused(self.run_program("c", deb), "x.deb: ")

    def assert_refused(self, result, complaint):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("extract-documents: ", result.stderr)
        self.assertIn(complaint, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".tmp-")], [])

    def test_bad_packages(self):
        path = self.tar({"package/src/a.ts": LONG * 1000})
        with open(path, "rb") as file:
            whole = file.read()
        for size in (0, 10, len(whole) // 2, len(whole) - 4):
            with self.subTest(size):
                with open(path, "wb") as file:
                    file.write(whole[:size])
                self.assert_refused(self.run_program("typescript", path), "not a whole archive")
                self.assertFalse(os.path.exists(self.out))
        self.assert_refused(self.run_program("typescript", self.tar({"package/x": LONG})), "no file of kind typescript")
        self.assert_refused(self.run_program("typescript", self.tar({"package/src/a.ts": "x"})), "hold no document")
        self.assert_refused(self.run_program("typescript", os.path.join(self.folder, "none.tgz")), "none.tgz")

    def test_failure_leaves_the_old_file(self):
        self.run_program("typescript", self.tar({"package/src/a.ts": LONG}))
        before = self.lines()
        self.assert_refused(self.run_program("typescript", self.tar({"package/src/a.ts": "x"})), "hold no document")
        self.assertEqual(self.lines(), before)

    def test_interrupt(self):
        pipe = os.path.join(self.folder, "pipe.tgz")
        os.mkfifo(pipe)
        command = [sys.executable, "-B", SCRIPT, "typescript", pipe, self.out, "--name", "n", "--licence", "MIT"]
        restore = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # it may be ignored where tests run
        with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=restore) as process:
            with open(pipe, "wb"):  # returns when the program has begun to read, and then keeps it waiting
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(60), 130)
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(os.listdir(self.folder), ["pipe.tgz"])


if __name__ == "__main__":
    unittest.main()
