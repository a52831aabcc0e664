#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --coordinator`, `publish` and `artifacts sync` as a user meets them where there is no coordinator: training goes on, keys
are made, mirrors are filled. The golden preset on the built-in sample. What a coordinator hears: publish/publisher_test.cc."""

import hashlib
import json
import os
import shutil
import socket
import stat
import tempfile
import unittest

from tool import CODE_BAD_ARTIFACT, CODE_FAILURE, CODE_NETWORK, CODE_USAGE, EMULATOR
from tool import error, make_run, output, run_tool

STEPS = 4 if EMULATOR else 12


def nobody():
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


class PublishTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.run_folder = make_run(cls.folder)
        cls.summary = json.loads(output("train", cls.run_folder, "--stop-at", str(STEPS), "--json"))

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    def test_training_does_without_the_coordinator(self):
        run, key = self.path("alone"), self.path("keys", "trainer.key")
        run_tool("run", "init", self.path("run.toml"), "--out", run)
        done = run_tool("train", run, "--stop-at", str(STEPS), "--json", "--coordinator", nobody(), "--trainer-key", key)
        summary = json.loads(done.stdout)
        published = summary.pop("published")
        self.assertEqual(summary, self.summary)
        self.assertEqual(published, {"next_step": 0, "checkpoints": 0, "complete": False})
        self.assertIn("lockstep publish", done.stderr.decode())
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        with open(key, "rb") as file:
            first = file.read()
        # The registration is signed and kept; the same key is taken again.
        with open(os.path.join(run, "publish", "registration.json"), "rb") as file:
            registration = file.read()
        message = error("publish", run, "--coordinator", nobody(), "--trainer-key", key, "--patience", "0.5", code=CODE_NETWORK)
        self.assertIn("not everything is published", message)
        with open(os.path.join(run, "publish", "registration.json"), "rb") as file:
            self.assertEqual(file.read(), registration)
        with open(key, "rb") as file:
            self.assertEqual(file.read(), first)
        error("publish", run, "--coordinator", nobody(), "--trainer-key", self.path("other.key"), "--patience", "5",
              code=CODE_FAILURE)  # fmt: skip
        os.chmod(key, 0o644)
        self.assertIn("chmod 600", error("publish", run, "--coordinator", nobody(), "--trainer-key", key, code=CODE_FAILURE))

    def test_addresses(self):
        key = self.path("a.key")
        for address in ("http://example.com:80", "example.com:443", "https://nowhere/path"):
            run_tool("publish", self.run_folder, "--coordinator", address, "--trainer-key", key, code=CODE_FAILURE)
        run_tool("publish", self.run_folder, code=CODE_USAGE)
        run_tool("publish", self.path("absent"), "--coordinator", nobody(), "--trainer-key", key, code=CODE_FAILURE)

    def test_a_mirror_is_filled(self):
        mirror = self.path("mirror")
        answer = json.loads(output("artifacts", "sync", mirror, "--run", self.run_folder, "--json"))
        files = {}
        for name in os.listdir(os.path.join(mirror, "artifact")):
            with open(os.path.join(mirror, "artifact", name), "rb") as file:
                files[name] = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(list(files), list(files.values()))
        self.assertEqual(answer["copied"], len(files))
        with open(os.path.join(self.run_folder, "run.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        states = os.listdir(os.path.join(self.run_folder, "checkpoints"))
        wanted = {manifest["corpus"], manifest["tokenizer"]}
        for state in states:
            path = os.path.join(self.run_folder, "checkpoints", state, "checkpoint.json")
            with open(path, "rb") as file:
                text = file.read()
            wanted.add(hashlib.sha256(text).hexdigest())
            wanted.update(entry["sha256"] for entry in json.loads(text)["files"])
        corpus = self.path("corpus")
        for folder, _, names in os.walk(corpus):
            for name in names:
                if name.endswith((".tokens", ".index", ".names", ".chunks")) or name == "manifest.json":
                    with open(os.path.join(folder, name), "rb") as file:
                        wanted.add(hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(set(files), wanted)
        again = json.loads(output("artifacts", "sync", mirror, "--run", self.run_folder, "--json"))
        self.assertEqual(again["copied"], 0)
        self.assertEqual(again["artifacts"], answer["artifacts"])

    def test_damaged_files_are_not_copied(self):
        run, mirror = self.path("damaged"), self.path("damaged_mirror")
        shutil.copytree(self.run_folder, run)
        # Not the last: updates were skipped before it, so it has the bytes of another one.
        state = sorted(os.listdir(os.path.join(run, "checkpoints")))[1]
        path = os.path.join(run, "checkpoints", state, "parameters.safetensors")
        with open(path, "r+b") as file:
            file.seek(5000)
            file.write(b"damage")
        self.assertIn("parameters.safetensors", error("artifacts", "sync", mirror, "--run", run, code=CODE_BAD_ARTIFACT))
        for name in os.listdir(os.path.join(mirror, "artifact")):
            self.assertEqual(len(name), 64)


if __name__ == "__main__":
    unittest.main()
