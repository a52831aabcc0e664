#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes fixture.json.gz with the real programs: a small run with one step that was tampered with, published, and audited by two
workers. In it: the log's entries, heads, tiles and receipts, and the artifacts that the documents behind its steps are computed from.

    LOCKSTEP=... LOCKSTEP_COORDINATOR=... LOCKSTEP_WORKER=... LOCKSTEP_DISHONEST_TRAINER=... make_fixture.py OUT

(as in tests/network.py; without them, those of build/release). Keys are new each time, so the bytes are, too. `--steps N` for a larger
one; `--whole` takes all of the built-in sample and a tokenizer of merges, for tests that need no small file."""

import argparse
import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests"))

from network import Coordinator, Worker, counts, wait_for  # noqa: E402 (the path comes first)
from tool import make_corpus, output, run_tool, SAMPLE  # noqa: E402

DISHONEST_TRAINER = os.environ.get("LOCKSTEP_DISHONEST_TRAINER") or os.path.join(
    ROOT, "build", "release", "tests", "lockstep_dishonest_trainer"
)


def make_small_corpus(folder):
    """That of docs/stream.md, section 5, with smaller chunks' worth of documents: a token a byte."""
    stores = [os.path.join(folder, "stores", name) for name in ("code", "edu")]
    run_tool("corpus", "ingest", os.path.join(SAMPLE, "corpus.toml"), "--out", os.path.join(folder, "stores"))
    run_tool("tokenizer", "train", "--from", *stores, "--vocab", "257", "--out", os.path.join(folder, "tokenizer"))
    run_tool("corpus", "build", "--tokenizer", os.path.join(folder, "tokenizer"), "--stores", *stores, "--out",
             os.path.join(folder, "corpus"), "--shard-tokens", "2500", "--chunk-bytes", "4096")  # fmt: skip


def make_run(folder, whole):
    (make_corpus if whole else make_small_corpus)(folder)
    with open(os.path.join(folder, "run.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'preset = "golden"\nname = "fixture"\ncheckpoint_every = 3\n[corpus]\npath = "corpus"\n'
            f'[tokenizer]\npath = "tokenizer"\n[model]\nvocab = {512 if whole else 257}\n'
        )
    run = os.path.join(folder, "run")
    run_tool("run", "init", os.path.join(folder, "run.toml"), "--out", run)
    return run


class Maker:
    def __init__(self, folder, steps, whole):
        self.folder, self.steps = folder, steps
        self.coordinator = Coordinator(self.path("coordinator"))
        self.workers = []
        self.run = make_run(folder, whole)
        self.whole = whole

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def get(self, path):
        with urllib.request.urlopen(f"{self.coordinator.http_address}/{path}") as answer:
            return answer.read()

    def publish(self, stop_at):
        output("train", self.run, "--json", "--threads", "1", "--stop-at", str(stop_at), "--coordinator", self.coordinator.trainer_address,
               "--trainer-key", self.path("trainer.key"), "--openings", "2", "--quorum", "2", "--backends", "2")  # fmt: skip

    def make(self):
        cheated = self.steps // 2
        self.coordinator.start()
        try:
            for isa in ("avx2", "reference"):
                worker = Worker(self.path(isa), f"operator {isa}", self.coordinator.address, isa=isa, options=["--offer-states", "false"])
                self.workers.append(worker)
                worker.start()
            self.publish(cheated)
            subprocess.run([DISHONEST_TRAINER, self.run, "window"], check=True, stdout=subprocess.DEVNULL)
            self.publish(self.steps)
            early = self.get("checkpoint").decode()
            wanted = {"confirmed": self.steps - 1, "provisional": 0, "disputed": 1, "unaudited": 0}
            log_key = self.path("run", "publish", "log_key")
            wait_for(f"the steps to be {wanted}", lambda: counts(self.coordinator.public_folder, log_key) == wanted, every_s=0.5)
            for worker in self.workers:
                worker.stop()
            with open(log_key, encoding="utf-8") as file:
                return self.collect(file.read().strip(), early, cheated)
        finally:
            for worker in self.workers:
                worker.close()
            self.coordinator.close()

    def collect(self, log_key, early, cheated):
        tiles, entries = {}, []
        for folder, _, names in os.walk(os.path.join(self.coordinator.public_folder, "tile")):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    tiles[os.path.relpath(path, self.coordinator.public_folder)] = file.read()
        size = int(self.get("checkpoint").decode().split("\n")[1])
        for path, data in sorted(tiles.items()):
            width = min(256, size - 256 * int(path[13:16]))
            if path.startswith("tile/entries/") and path == f"tile/entries/{path[13:16]}" + (f".p/{width}" if width < 256 else ""):
                while data:
                    length = int.from_bytes(data[:2], "big")
                    entries.append(data[2 : 2 + length].decode())
                    data = data[2 + length :]
        receipts = []
        for worker in self.workers:
            for folder, _, names in os.walk(worker.receipts_folder):
                for name in sorted(names)[:2]:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        receipts.append(json.load(file))
        return {
            "logKey": log_key,
            "checkpoint": self.get("checkpoint").decode(),
            "earlyCheckpoint": early,
            "steps": self.steps,
            "cheatedStep": cheated,
            "entries": entries,
            "tiles": {path: base64.b64encode(data).decode() for path, data in sorted(tiles.items()) if "entries" not in path},
            "receipts": [{"entry": base64.b64decode(r["entry"]).decode(), "proof": r["proof"]} for r in receipts],
            "artifacts": self.artifacts(),
            "traces": [
                json.loads(output("corpus", "trace", self.path("corpus"), "--seq-len", "64", "--batch", "16", "--step", str(step), "--json"))
                for step in range(self.steps)
            ],
        }

    def artifacts(self):
        found = {}
        wanted = [self.path("tokenizer")]
        for folder, _, names in os.walk(self.path("corpus")):
            wanted += [os.path.join(folder, name) for name in names if name.endswith(("tokens", "index", "names", "chunks", "manifest.json"))]
        for folder, _, names in os.walk(os.path.join(self.run, "checkpoints")):
            wanted += [os.path.join(folder, name) for name in names if name == "checkpoint.json"]
        for path in wanted:
            with open(path, "rb") as file:
                data = file.read()
            found[hashlib.sha256(data).hexdigest()] = base64.b64encode(data).decode()
        return dict(sorted(found.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fixture = Maker(folder, options.steps, options.whole).make()
    text = json.dumps(fixture, indent=0, sort_keys=True).encode()
    with open(options.out, "wb") as file:
        file.write(gzip.compress(text, mtime=0))
    print(f"{options.out}: {len(fixture['entries'])} entries, {len(fixture['artifacts'])} artifacts, {os.path.getsize(options.out)} bytes")


if __name__ == "__main__":
    main()
