#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards and stream as the program makes them, against a second, slow implementation of docs/shards.md and docs/stream.md, Philox
included, that shares no code with it: corpora built here are read and checked byte for byte, windows and cursors are compared
step by step, and corpora are fetched from a web server. The examples of docs/stream.md are what the program prints. No network but loopback."""

import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from tool import PROGRAM, ROOT, SAMPLE

SEPARATOR = 256  # of the bytewise tokenizer


def lockstep(*args, expect=0, cwd=None):
    """Standard output, or with another exit code expected, standard error."""
    environment = dict(os.environ, no_proxy="127.0.0.1")
    run = subprocess.run([*PROGRAM, *map(str, args)], capture_output=True, text=True, cwd=cwd, env=environment)
    if run.returncode != expect:
        raise AssertionError(f"{args}: exit code {run.returncode}, expected {expect}\n{run.stderr}")
    return run.stdout if expect == 0 else run.stderr


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- docs/stream.md, section 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second & 0xFFFFFFFF, (first >> 32) ^ c[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def halves(number):
    return number & 0xFFFFFFFF, number >> 32


def integer(seed, name, index):
    stream = int.from_bytes(sha256(name.encode())[:8], "little")
    words = philox((*halves(index), *halves(stream)), halves(seed))
    return words[0] | words[1] << 32


def below(seed, name, index, bound):
    return integer(seed, name, index) * bound >> 64


def permutation(seed, name, n):
    order = list(range(n))
    for k in range(n - 1, 0, -1):
        other = below(seed, name, k, k + 1)
        order[k], order[other] = order[other], order[k]
    return order


# ---- docs/shards.md


def tree(leaves):
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + tree(leaves[:split]) + tree(leaves[split:]))


class Corpus:
    """A corpus folder, read whole and checked by every rule of the page."""

    def __init__(self, folder):
        self.folder = folder
        data = self.read("manifest.json")
        self.digest = sha256(data)
        self.manifest = json.loads(data)
        assert data == json.dumps(self.manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert self.manifest["format"] == "lockstep-corpus-1"
        self.width = self.manifest["token_bytes"]
        assert self.width == (2 if self.manifest["tokenizer"]["vocab_size"] <= 65536 else 4)
        self.sources = self.manifest["sources"]
        names = [source["name"] for source in self.sources]
        assert names == sorted(set(names))
        self.documents = {}  # (source, shard): list of token tuples
        self.names = {}
        self.begins = {}
        files = {"manifest.json"}
        for s, source in enumerate(self.sources):
            for n, shard in enumerate(source["shards"]):
                files |= {f"{source['name']}/{n:05}.{kind}" for kind in ("tokens", "index", "names", "chunks")}
                self.read_shard(s, n, f"{source['name']}/{n:05}", shard)
            assert source["documents"] == sum(shard["documents"] for shard in source["shards"])
            assert source["tokens"] == sum(shard["tokens"]["count"] for shard in source["shards"])
        assert files == {os.path.relpath(os.path.join(at, name), folder) for at, _, found in os.walk(folder) for name in found}

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def read_shard(self, s, n, path, shard):
        data = {kind: self.read(f"{path}.{kind}") for kind in ("tokens", "index", "names", "chunks")}
        for kind, content in data.items():
            assert len(content) == shard[kind]["bytes"], (path, kind)
            assert sha256(content).hex() == shard[kind]["sha256"], (path, kind)
        count, documents = shard["tokens"]["count"], shard["documents"]
        size = self.manifest["chunk_bytes"]
        leaves = [sha256(b"\x00" + data["tokens"][at : at + size]) for at in range(0, len(data["tokens"]), size)]
        assert data["chunks"] == b"".join(leaves)
        assert tree(leaves).hex() == shard["tokens"]["root"]

        assert data["index"][:24] == b"LSINDEX1" + struct.pack("<QQ", documents, count)
        begins = struct.unpack(f"<{documents + 1}I", data["index"][24:])
        assert begins[0] == 0 and begins[-1] == count and list(begins) == sorted(set(begins))
        tokens = struct.unpack(f"<{count}{'H' if self.width == 2 else 'I'}", data["tokens"])
        self.documents[s, n] = [tokens[a:b] for a, b in zip(begins, begins[1:])]
        self.begins[s, n] = begins
        for document in self.documents[s, n]:
            assert document[-1] == self.manifest["separator"] not in document[:-1]

        text = len(data["names"]) - 28 - 4 * documents
        assert data["names"][:24] == b"LSNAMES1" + struct.pack("<QQ", documents, text)
        ends = struct.unpack(f"<{documents + 1}I", data["names"][24 : 28 + 4 * documents])
        assert ends[0] == 0 and ends[-1] == text
        names = data["names"][28 + 4 * documents :]
        self.names[s, n] = [names[a:b].decode() for a, b in zip(ends, ends[1:])]


# ---- docs/stream.md, sections 2 to 4


class Model:
    """Every document ever drawn, laid end to end."""

    def __init__(self, corpus, seed, seq_len):
        self.corpus, self.seed, self.length = corpus, seed, seq_len + 1
        shares = sum(source["share"] for source in corpus.sources if source["documents"])
        self.weights = [
            (source["share"] << 63) // shares * source["documents"] // source["tokens"] if source["documents"] else 0
            for source in corpus.sources
        ]
        self.drawn = []  # (source, shard, document, begin in the line, source's epoch and place after)
        self.line = []  # tokens
        self.places = [(0, 0)] * len(corpus.sources)
        self.orders = {}

    def order(self, source, epoch):
        if (source, epoch) not in self.orders:
            entry = self.corpus.sources[source]
            name = f"data/{sha256(entry['name'].encode()).hex()}/epoch.{epoch}"
            self.orders[source, epoch] = [
                (shard, document)
                for shard in permutation(self.seed, f"{name}/shards", len(entry["shards"]))
                for document in permutation(self.seed, f"{name}/shard.{shard}/documents", entry["shards"][shard]["documents"])
            ]
        return self.orders[source, epoch]

    def draw(self):
        u = below(self.seed, "data/mix", len(self.drawn), sum(self.weights))
        source = 0
        while u >= sum(self.weights[: source + 1]):
            source += 1
        epoch, place = self.places[source]
        shard, document = self.order(source, epoch)[place]
        place += 1
        self.places[source] = (epoch, place) if place < len(self.order(source, epoch)) else (epoch + 1, 0)
        self.drawn.append((source, shard, document, len(self.line), self.places[source]))
        self.line.extend(self.corpus.documents[source, shard][document])

    def need(self, windows):
        while len(self.line) < windows * self.length:
            self.draw()

    def window(self, m):
        """Tokens, and spans as `trace --json` has them."""
        self.need(m + 1)
        begin, end = m * self.length, (m + 1) * self.length
        spans = []
        for source, shard, document, at, _ in self.drawn:
            size = len(self.corpus.documents[source, shard][document])
            first, last = max(begin, at), min(end, at + size)
            if first < last:
                spans.append({
                    "source": self.corpus.sources[source]["name"],
                    "shard": shard,
                    "document": document,
                    "name": self.corpus.names[source, shard][document],
                    "begin": first - at,
                    "end": last - at,
                    "shard_begin": self.corpus.begins[source, shard][document] + first - at,
                })
        return self.line[begin:end], spans

    def cursor(self, m):
        """Before window m."""
        self.need(m)
        places, draws, carry = [(0, 0)] * len(self.places), 0, None
        for source, shard, document, at, place in self.drawn:
            if at >= m * self.length:
                break
            places[source], draws = place, draws + 1
            size = len(self.corpus.documents[source, shard][document])
            cut = m * self.length - at
            carry = (source, shard, document, cut) if cut < size else None
        data = b"LSCURSR1" + self.corpus.digest
        data += struct.pack("<QQQQI", self.seed, self.length - 1, m, draws, len(places))
        for epoch, documents in places:
            data += struct.pack("<QQ", epoch, documents)
        return data + (b"\x01" + struct.pack("<IIII", *carry) if carry else b"\x00")


def windows_of_steps(phases, seq_len):
    """(first, end) of each step, by taking one step after another."""
    window = 0
    while window * seq_len < phases[-1][1]:
        count = next(count for count, until in phases if window * seq_len < until)
        yield window, window + count
        window += count


class RangeServer(http.server.BaseHTTPRequestHandler):
    """Files of self.folder by range; remembers what was sent."""

    def __init__(self, folder, log, *args):
        self.folder, self.log = folder, log
        super().__init__(*args)

    def do_GET(self):
        path = os.path.join(self.folder, self.path.lstrip("/"))
        if not os.path.isfile(path):
            self.send_error(404)
            return
        with open(path, "rb") as file:
            data = file.read()
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(match[1]), int(match[2])) if match else (0, len(data) - 1)
        self.log.append((self.path.lstrip("/"), first, last + 1))
        self.send_response(206 if match else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[first : last + 1])

    def log_message(self, *_):
        pass


class StreamTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="lockstep-stream-")
        cls.addClassCleanup(shutil.rmtree, cls.work)
        at = functools.partial(os.path.join, cls.work)
        lockstep("corpus", "ingest", os.path.join(SAMPLE, "corpus.toml"), "--out", at("in"))
        lockstep("tokenizer", "train", "--from", at("in/code"), at("in/edu"), "--vocab", 257, "--out", at("bytes.tok"))
        cls.stores = [at("in", name) for name in ("web", "code", "math", "edu")]
        cls.build("c", "--shard-tokens", 8000, "--chunk-bytes", 4096, "--share", "edu=20000", "--share", "math=30000")
        cls.corpus = Corpus(at("c"))

    @classmethod
    def build(cls, out, *options, stores=None, expect=0):
        return lockstep("corpus", "build", "--tokenizer", os.path.join(cls.work, "bytes.tok"), "--stores", *(stores or cls.stores),
                        "--out", os.path.join(cls.work, out), *options, expect=expect)

    def path(self, *names):
        return os.path.join(self.work, *names)

    def trace(self, corpus, step, seq_len, batch, *options):
        return json.loads(lockstep("corpus", "trace", corpus, "--seq-len", seq_len, "--batch", batch, "--step", step, "--json", *options))

    def test_philox_is_the_published_generator(self):
        # Known-answer vectors of the Random123 distribution.
        self.assertEqual(philox((0, 0, 0, 0), (0, 0)), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])
        self.assertEqual(philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
                         [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])

    def test_shards_hold_the_texts(self):
        """Corpus() has checked the format; the tokens are the documents' bytes."""
        texts = {}
        for source in range(len(self.corpus.sources)):
            for shard, _ in enumerate(self.corpus.sources[source]["shards"]):
                for name, tokens in zip(self.corpus.names[source, shard], self.corpus.documents[source, shard]):
                    texts[name] = bytes(tokens[:-1])
        self.assertEqual(len(texts), sum(source["documents"] for source in self.corpus.sources))
        with open(os.path.join(SAMPLE, "code", "heap.py"), "rb") as file:
            self.assertIn(file.read().strip(), [text.strip() for text in texts.values()])
        self.assertGreater(len(self.corpus.sources[3]["shards"]), 5)

    def test_windows_and_cursors_step_by_step(self):
        for seed, seq_len, steps in ((42, 64, 50), (2**64 - 1, 1000, 40), (0, 4096, 90), (7, 1, 20)):
            with self.subTest(seed=seed, seq_len=seq_len):
                model = Model(self.corpus, seed, seq_len)
                for step in sorted({0, 1, 2, steps // 2, steps - 1, steps}):
                    found = self.trace(self.path("c"), step, seq_len, "3", "--seed", seed, "--tokens", "--ranks", 2)
                    self.assertEqual(found["cursor_before"], model.cursor(3 * step).hex())
                    self.assertEqual(found["cursor_after"], model.cursor(3 * step + 3).hex())
                    self.assertEqual(found["tokens_before"], 3 * step * seq_len)
                    for m, window in enumerate(found["windows"]):
                        tokens, spans = model.window(3 * step + m)
                        self.assertEqual(window["window"], 3 * step + m)
                        self.assertEqual(window["rank"], m % 2)
                        self.assertEqual(window["tokens"], tokens)
                        self.assertEqual(window["spans"], spans)
                epochs = [epoch for epoch, _ in model.places]
                if seq_len == 4096:  # one source has ended several epochs, another none
                    self.assertGreater(max(epochs), 2)
                    self.assertEqual(min(epochs), 0 if steps < 30 else min(epochs))

    def test_phases(self):
        phases = [(2, 2000), (5, 9000), (9, 20000)]
        batch = ",".join(f"{count}@{until}" for count, until in phases)
        model = Model(self.corpus, 42, 100)
        steps = list(windows_of_steps(phases, 100))
        for step, (first, end) in enumerate(steps):
            if step % 5 and step != len(steps) - 1:
                continue
            found = self.trace(self.path("c"), step, 100, batch)
            self.assertEqual([window["window"] for window in found["windows"]], list(range(first, end)))
            self.assertEqual(found["cursor_after"], model.cursor(end).hex())
        error = lockstep("corpus", "trace", self.path("c"), "--seq-len", 100, "--batch", batch, "--step", len(steps), expect=1)
        self.assertIn("past the end of the run", error)
        last = json.loads(lockstep("corpus", "cursor", self.path("c"), "--seq-len", 100, "--batch", batch, "--step", len(steps), "--json"))
        self.assertEqual(last["cursor"], model.cursor(steps[-1][1]).hex())

    def test_resuming_by_a_cursor_file(self):
        stream = (self.path("c"), "--seq-len", 64, "--batch", 4)
        at = self.path("cursor")
        lockstep("corpus", "cursor", *stream, "--step", 30, "--out", at)
        with open(at, "rb") as file:
            cursor = file.read()
        self.assertEqual(cursor, Model(self.corpus, 42, 64).cursor(120))
        whole = lockstep("corpus", "trace", *stream, "--step", 33, "--json")
        self.assertEqual(lockstep("corpus", "trace", *stream, "--step", 33, "--json", "--cursor", at), whole)
        # Behind it, between steps, of another seed, and damaged.
        self.assertIn("cannot skip back", lockstep("corpus", "trace", *stream, "--step", 29, "--cursor", at, expect=1))
        self.assertIn("different checkpoints", lockstep("corpus", "trace", *stream[:-1], 7, "--step", 33, "--cursor", at, expect=1))
        self.assertIn("seed: expected 1, found 42", lockstep("corpus", "trace", *stream, "--seed", 1, "--step", 33, "--cursor", at, expect=1))
        with open(at, "wb") as file:
            file.write(cursor[:-1])
        self.assertIn(at, lockstep("corpus", "trace", *stream, "--step", 33, "--cursor", at, expect=5))

    def test_same_bytes_after_a_kill_and_for_any_number_of_threads(self):
        options = ("--shard-tokens", 1000, "--chunk-bytes", 4096)
        self.build("whole", *options, "--threads", 1)
        whole = Corpus(self.path("whole"))
        for signum in (signal.SIGKILL, signal.SIGINT):
            run = subprocess.Popen([*PROGRAM, "corpus", "build", "--tokenizer", self.path("bytes.tok"), "--stores", *self.stores,
                                    "--out", self.path(f"killed{signum}"), *map(str, options)], stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
            while run.poll() is None and not os.path.exists(self.path(f"killed{signum}", ".build", "math.3")):
                pass
            run.send_signal(signum)
            run.wait()
            self.build(f"killed{signum}", *options, "--threads", 3)
            self.assertEqual(Corpus(self.path(f"killed{signum}")).digest, whole.digest)
            self.assertFalse([name for _, _, names in os.walk(self.path(f"killed{signum}")) for name in names if name.startswith(".")])

    def test_verify_names_the_first_bad_chunk(self):
        shutil.copytree(self.path("c"), self.path("bad"))
        good = lockstep("corpus", "verify", self.path("bad"), "--manifest", self.corpus.digest.hex())
        self.assertIn(self.corpus.digest.hex(), good)
        tokens = self.path("bad", "web", "00003.tokens")
        with open(tokens, "r+b") as file:
            file.seek(5000)
            file.write(b"??")
        error = lockstep("corpus", "verify", self.path("bad"), expect=5)
        self.assertIn(f"{tokens}: chunk 1 at byte offset 4096: expected digest", error)
        self.assertIn("another corpus", lockstep("corpus", "verify", self.path("bad"), "--manifest", "0" * 64, expect=5))

    def serve(self, folder):
        log = []
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(RangeServer, folder, log))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}", log

    def test_fetching_what_a_replay_needs(self):
        address, log = self.serve(self.path("c"))
        stream = ("--seq-len", 64, "--batch", 4, "--manifest", self.corpus.digest.hex())
        at = self.path("fetch.cursor")
        lockstep("corpus", "cursor", self.path("c"), *stream[:4], "--step", 40, "--out", at)
        plan = json.loads(lockstep("corpus", "fetch-plan", self.path("c"), *stream, "--steps", "40..41", "--cursor", at, "--json"))
        lockstep("corpus", "fetch", address, *stream, "--steps", "40..41", "--cursor", at, "--cache", self.path("part"))
        planned = {(file["file"], *span) for file in plan["files"] for span in file["ranges"]}
        self.assertEqual(set(log) - {("manifest.json", 0, os.path.getsize(self.path("c", "manifest.json")))}, planned)
        self.assertEqual(len(log), len(planned) + 1)
        self.assertLess(plan["bytes"], sum(source["tokens"] for source in self.corpus.sources))
        # The plan is the model's: chunks of the spans' tokens, and the digests and indices of those shards.
        model, chunks = Model(self.corpus, 42, 64), set()
        for m in range(160, 168):
            for span in model.window(m)[1]:
                begin, end = 2 * span["shard_begin"], 2 * (span["shard_begin"] + span["end"] - span["begin"])
                chunks |= {(span["source"], span["shard"], chunk) for chunk in range(begin // 4096, (end - 1) // 4096 + 1)}
        self.assertEqual({(f"{source}/{shard:05}.tokens", chunk) for source, shard, chunk in chunks},
                         {(file, chunk) for file, begin, end in planned if file.endswith(".tokens")
                          for chunk in range(begin // 4096, -(-end // 4096))})
        # The folder serves alone, for these steps and no others. (Names are no part of a replay.)
        for name in {file.split(".")[0] for file, _, _ in planned}:
            shutil.copy(self.path("c", f"{name}.names"), self.path("part", f"{name}.names"))
        window = self.trace(self.path("part"), 41, 64, 4, "--cursor", at, "--tokens")["windows"][3]
        self.assertEqual(window["tokens"], model.window(167)[0])
        lockstep("corpus", "trace", self.path("part"), *stream, "--step", 2000, "--tokens", expect=1)

    def test_addresses_need_a_digest_and_bad_servers_are_told(self):
        address, _ = self.serve(self.path("in"))
        stream = ("--seq-len", 64, "--batch", 4, "--step", 0)
        self.assertIn("digest", lockstep("corpus", "trace", address, *stream, expect=1))
        error = lockstep("corpus", "trace", address, *stream, "--manifest", self.corpus.digest.hex(), expect=1)
        self.assertIn(f"{address}/manifest.json: the server answered 404", error)

    def test_examples_of_the_documentation(self):
        """Each block of commands in docs/stream.md, section 5, gives the lines that follow it there."""
        with open(os.path.join(ROOT, "docs", "stream.md"), encoding="utf-8") as file:
            section = file.read().split("## 5.")[1].split("## 6.")[0]
        folder = self.path("example")
        os.mkdir(folder)
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
        commands = 0
        for block in re.findall(r"```\n(\$ .*?)```", section, re.DOTALL):
            printed = ""
            for line in block.splitlines():
                if not line.startswith("$ "):
                    self.assertIn(line.rstrip() + "\n", printed, "not what the program prints")
                    continue
                commands += 1
                printed = lockstep(*line.split()[2:], cwd=folder)
                printed = "".join(text.rstrip() + "\n" for text in printed.splitlines())
        self.assertGreater(commands, 3)


if __name__ == "__main__":
    unittest.main()
