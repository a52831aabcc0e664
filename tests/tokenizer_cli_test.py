#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of `lockstep tokenizer` as a user meets it: results, JSON, exit codes, messages, and what an interrupt leaves. No network."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import unittest

from tool import PROGRAM, SAMPLE, TOKENIZER

DIGEST = "000bfaae138e2e3a8d2d770c8779e700d7d5970d167035da7caa0bc81d0e4288"


def sample_files():
    files = [os.path.join(SAMPLE, name) for name in ("web.jsonl", "math.jsonl")]
    for folder in ("edu", "code"):
        names = sorted(os.listdir(os.path.join(SAMPLE, folder)))
        files += [os.path.join(SAMPLE, folder, name) for name in names]
    return files


class TokenizerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_tool(self, *args, code=0, stdin=b""):
        done = subprocess.run([*PROGRAM, "tokenizer", *args], input=stdin, capture_output=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def output(self, *args, **options):
        return self.run_tool(*args, **options).stdout

    def error(self, *args, code):
        done = self.run_tool(*args, code=code)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def test_train_gives_the_committed_file(self):
        for threads in ("1", "3"):
            out = self.path(f"trained-{threads}")
            report = json.loads(
                self.output(
                    "train", "--from", *sample_files(), "--vocab", "1024", "--special", "<|endoftext|>", "<|pad|>",
                    "--out", out, "--threads", threads, "--json",
                )
            )  # fmt: skip
            self.assertEqual(report["digest"], DIGEST)
            self.assertEqual(report["entries"], 1024)
            self.assertEqual(report["end_of_text"], 1022)
            with open(out, "rb") as trained, open(TOKENIZER, "rb") as committed:
                self.assertEqual(trained.read(), committed.read())

    def test_train_says_when_the_text_is_too_small(self):
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("aa aa")
        done = self.run_tool("train", "--from", self.path("text"), "--vocab", "300", "--out", self.path("t"))
        self.assertIn("258 entries instead of 300", done.stderr.decode())
        self.assertIn(b"258 entries, 1 of them special", done.stdout)

    def test_encode_and_decode(self):
        text = "Hello, world!\r\n\u00a0\U0001f9ad\0".encode() + b"\xff\xc3"
        with open(self.path("text"), "wb") as file:
            file.write(text)
        ids = self.output("encode", "--tokenizer", TOKENIZER, self.path("text"))
        self.assertEqual(ids, self.output("encode", "--tokenizer", TOKENIZER, stdin=text))
        self.assertEqual(self.output("decode", "--tokenizer", TOKENIZER, stdin=ids), text)
        self.assertEqual(self.output("decode", "--tokenizer", TOKENIZER, *ids.decode().split()), text)
        self.assertEqual(self.output("encode", "--tokenizer", TOKENIZER, "--text", "Hello, world!"),
                         b"72 649 111 44 854 437 33\n")  # fmt: skip
        line = json.loads(self.output("encode", "--tokenizer", TOKENIZER, "--json", "--with-text", self.path("text")))
        self.assertEqual(line["ids"], [int(word) for word in ids.split()])
        self.assertEqual(line["name"], self.path("text"))
        self.assertTrue(line["text"].endswith("\0\ufffd\ufffd"))
        back = json.loads(self.output("decode", "--tokenizer", TOKENIZER, "--json", stdin=json.dumps(line["ids"]).encode()))
        self.assertEqual(base64.b64decode(back["base64"]), text)

    def test_encode_of_ingested_documents(self):
        config = os.path.join(SAMPLE, "corpus.toml")
        out = self.path("ingested")
        subprocess.run([*PROGRAM, "corpus", "ingest", config, "--out", out], check=True, capture_output=True)
        stores = [os.path.join(out, name) for name in sorted(os.listdir(out))]
        lines = {}
        for threads in ("1", "3"):
            lines[threads] = self.output(
                "encode", "--tokenizer", TOKENIZER, "--json", "--with-text", "--threads", threads, *stores
            )
        self.assertEqual(lines["1"], lines["3"])
        documents = [json.loads(line) for line in lines["1"].splitlines()]
        self.assertGreater(len(documents), 500)
        for document in documents[::50]:
            text = document["text"].encode()
            ids = self.output("encode", "--tokenizer", TOKENIZER, stdin=text)
            self.assertEqual([int(word) for word in ids.split()], document["ids"], document["name"])

    def test_export_and_import_lead_back(self):
        for format_name, special in (("huggingface", []), ("tiktoken", ["--special", "<|endoftext|>", "<|pad|>"])):
            exported, back = self.path(format_name), self.path(format_name + ".back")
            self.run_tool("export", "--tokenizer", TOKENIZER, "--format", format_name, "--out", exported)
            report = self.output("import", "--format", format_name, exported, *special, "--out", back, "--json")
            self.assertEqual(json.loads(report)["digest"], DIGEST)

    def test_inspect(self):
        report = json.loads(self.output("inspect", "--tokenizer", TOKENIZER, "--json", "--longest", "3"))
        self.assertEqual(report["digest"], DIGEST)
        self.assertEqual((report["entries"], report["tokens"], report["end_of_text"]), (1024, 1022, 1022))
        self.assertEqual(len(report["longest"]), 3)
        self.assertEqual(sum(report["lengths"].values()), 1022)
        self.assertIn(DIGEST, self.output("inspect", "--tokenizer", TOKENIZER).decode())
        token = json.loads(self.output("inspect", "--tokenizer", TOKENIZER, "--id", "649", "--json"))
        self.assertEqual(token["text"], "ell")
        self.assertEqual(token["special"], False)
        self.assertEqual(len(token["merges"]), 2)
        self.assertIn(b"<|pad|>", self.output("inspect", "--tokenizer", TOKENIZER, "--id", "1023"))

    def test_errors_name_what_is_wrong(self):
        with open(self.path("ranks"), "w", encoding="utf-8") as file:
            file.write("AA== 0\nAQ== 1\nnot base64 2\n")
        message = self.error("import", "--format", "tiktoken", self.path("ranks"), "--out", self.path("t"), code=5)
        self.assertIn(self.path("ranks"), message)
        self.assertIn("line 3", message)
        message = self.error("import", "--format", "huggingface", self.path("ranks"), "--out", self.path("t"), code=5)
        self.assertIn("malformed at byte", message)
        message = self.error("inspect", "--tokenizer", self.path("ranks"), code=5)
        self.assertIn('expected "lockstep-tokenizer 1", found "AA== 0', message)
        self.assertIn("tokenizer import", message)
        with open(TOKENIZER, "rb") as file:
            whole = file.read()
        with open(self.path("cut"), "wb") as file:
            file.write(whole[:5000])
        message = self.error("encode", "--tokenizer", self.path("cut"), "--text", "x", code=5)
        self.assertIn(self.path("cut"), message)
        self.assertIn("the file ends within this line", message)
        self.assertIn("expected 0 to 1023", self.error("decode", "--tokenizer", TOKENIZER, "1024", code=1))
        self.assertIn("expected 0 to 1023", self.error("inspect", "--tokenizer", TOKENIZER, "--id", "1024", code=1))
        self.assertIn("/nowhere", self.error("encode", "--tokenizer", "/nowhere", "--text", "x", code=1))
        self.assertIn("/nowhere", self.error("encode", "--tokenizer", TOKENIZER, "/nowhere", code=1))
        self.assertIn("manifest.json", self.error("encode", "--tokenizer", TOKENIZER, self.folder.name, code=1))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["cut", "ranks"])

    def test_usage(self):
        self.run_tool(code=2)
        self.run_tool("train", code=2)
        self.run_tool("train", "--from", "x", "--vocab", "12", "--out", "y", code=2)
        self.run_tool("export", "--tokenizer", TOKENIZER, "--format", "other", "--out", self.path("x"), code=2)
        for command in ("train", "encode", "decode", "import", "export", "inspect"):
            self.assertIn(b"--json", self.output(command, "--help"))

    def test_an_interrupt_leaves_nothing(self):
        text = self.path("text")
        with open(text, "wb") as file:
            file.write(b" ".join(b"%x" % (i * 2654435761 % 2**40) for i in range(1_000_000)))
        out = self.path("out")
        os.mkdir(out)
        training = subprocess.Popen(
            [*PROGRAM, "tokenizer", "train", "--from", text, "--vocab", "100000", "--out", f"{out}/t"],
            stderr=subprocess.PIPE,
        )
        while text not in self.open_files(training.pid):  # by then its signal handler stands
            os.sched_yield()
        training.send_signal(signal.SIGINT)
        _, message = training.communicate(timeout=120)
        self.assertEqual(training.returncode, 130, message.decode())
        self.assertIn(b"interrupted", message)
        self.assertEqual(os.listdir(out), [])

    @staticmethod
    def open_files(pid):
        files = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                files.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        return files


if __name__ == "__main__":
    unittest.main()
