#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run from text to audit as a user meets it: ingest, tokenizer, shards, `run init`, `train`, kills at any moment, `replay`.
The golden preset on the built-in sample; fewer steps under an emulator. No network."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import unittest

from tool import CODE_BAD_ARTIFACT, CODE_FAILURE, CODE_INTERRUPTED, CODE_MISMATCH, EMULATOR, PROGRAM, RECORD_BYTES
from tool import make_corpus, output, run_tool

STEPS = 4 if EMULATOR else 24
CHECKPOINT_EVERY = 2 if EMULATOR else 5
KILLS = 2 if EMULATOR else 12


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        make_corpus(cls.folder)
        with open(cls.path("run.toml"), "w", encoding="utf-8") as file:
            file.write(
                f'preset = "golden"\nname = "test"\ncheckpoint_every = {CHECKPOINT_EVERY}\n'
                '[corpus]\npath = "corpus"\n[tokenizer]\npath = "tokenizer"\n'
            )
        # The run that all tests look at, and none changes.
        cls.trained = cls.new_run("run")
        cls.summary = json.loads(output("train", cls.trained, "--stop-at", str(STEPS), "--json"))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def new_run(cls, name):
        folder = cls.path(name)
        run_tool("run", "init", cls.path("run.toml"), "--out", folder)
        return folder

    def copy(self, name):
        folder = self.path(name)
        shutil.copytree(self.trained, folder)
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def checkpoints(self, folder=None):
        return sorted(n for n in os.listdir(os.path.join(folder or self.trained, "checkpoints")) if n.isdigit())

    def test_training_leaves_what_it_says(self):
        self.assertEqual(self.summary["next_step"], STEPS)
        self.assertFalse(self.summary["interrupted"])
        self.assertEqual(os.path.getsize(os.path.join(self.trained, "steps.log")), STEPS * RECORD_BYTES)
        expected = sorted({0, STEPS} | set(range(0, STEPS, CHECKPOINT_EVERY)))
        self.assertEqual([int(name) for name in self.checkpoints()], expected)
        report = json.loads(output("run", "inspect", self.trained, "--json"))
        self.assertEqual(report["chain"], self.summary["chain"])
        self.assertEqual(report["steps"], STEPS)
        with open(os.path.join(self.trained, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["step"] for line in lines], list(range(STEPS)))
        self.assertLess(lines[-1]["loss"], lines[0]["loss"])

    def test_a_finished_part_is_not_trained_again(self):
        again = json.loads(output("train", self.copy("again"), "--stop-at", str(STEPS), "--json"))
        self.assertEqual(again["chain"], self.summary["chain"])

    def test_killed_at_any_moment_it_repeats_the_chain(self):
        run = self.new_run("killed")
        generator = random.Random(1)
        log = os.path.join(run, "steps.log")
        for _ in range(KILLS):
            process = subprocess.Popen(
                [*PROGRAM, "train", run, "--stop-at", str(STEPS), "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            # After so many more records, wherever that is; the last tries may finish.
            target = (os.path.getsize(log) if os.path.exists(log) else 0) + generator.randrange(1, 1200)
            while process.poll() is None and (not os.path.exists(log) or os.path.getsize(log) < target):
                pass
            process.kill()
            process.wait()
            process.stderr.close()
        # A kill may leave part of a record and of a checkpoint.
        with open(log, "ab") as file:
            file.write(b"half a record")
        os.mkdir(os.path.join(run, "checkpoints", ".lockstep-1-d1.tmp"))
        summary = json.loads(output("train", run, "--stop-at", str(STEPS), "--json"))
        self.assertEqual(summary["chain"], self.summary["chain"])
        with open(log, "rb") as a, open(os.path.join(self.trained, "steps.log"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertFalse([n for n in os.listdir(os.path.join(run, "checkpoints")) if n.startswith(".")])

    def test_an_interrupt_saves_and_exits(self):
        run = self.new_run("interrupted")
        process = subprocess.Popen([*PROGRAM, "train", run, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        log = os.path.join(run, "steps.log")
        while not os.path.exists(log) or os.path.getsize(log) < RECORD_BYTES:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        self.assertEqual(process.returncode, CODE_INTERRUPTED)
        summary = json.loads(out)
        self.assertTrue(summary["interrupted"])
        self.assertIn(summary["next_step"], [int(name) for name in self.checkpoints(run)])
        # Its checkpoint carries the record of its own step: a replay from there agrees with the other run.
        records = os.path.join(self.trained, "steps.log")
        start = summary["next_step"]
        if start < STEPS:
            checkpoint = os.path.join(run, "checkpoints", f"{start:08d}")
            out = output("replay", run, "--records", records, "--from", checkpoint, "--steps", str(start), "--json")
            self.assertEqual(json.loads(out)["verdict"], "match")

    def test_replay_from_each_checkpoint_matches(self):
        for name in self.checkpoints():
            first = int(name)
            if first == STEPS:
                continue
            last = min(first + CHECKPOINT_EVERY, STEPS) - 1
            report = json.loads(output("replay", self.trained, "--steps", f"{first}..{last}", "--json"))
            self.assertEqual(report["verdict"], "match")
            self.assertEqual(report["start_step"], first)
            self.assertEqual(report["matched_steps"], last - first + 1)
        report = json.loads(output("replay", self.trained, "--from", "init", "--steps", "0..1", "--json", "--threads", "3"))
        self.assertEqual((report["verdict"], report["start"]), ("match", ""))

    def test_memory_choices_change_no_bit(self):
        for choice in (["--recompute"], ["--spill-state", "--spill-partials"]):
            report = json.loads(output("replay", self.trained, "--steps", "0..1", "--json", *choice))
            self.assertEqual(report["verdict"], "match", choice)

    def test_a_forged_record_is_a_mismatch(self):
        # A record with another loss, and the chain made good after it, as a forger would.
        text = output("replay", self.copy("honest"), "--steps", "1", "--json")
        self.assertEqual(json.loads(text)["verdict"], "match")
        run = self.copy("forged")
        log = os.path.join(run, "steps.log")
        with open(log, "r+b") as file:
            file.truncate(2 * RECORD_BYTES)  # the last record has none after it that names it
            file.seek(RECORD_BYTES + 264)  # loss, docs/step_record.md
            file.write(b"\0\0\0\x40")
        done = run_tool("replay", run, "--steps", "1", "--json", code=CODE_MISMATCH)
        report = json.loads(done.stdout)
        self.assertEqual(report["verdict"], "mismatch")
        self.assertEqual(report["difference"]["step"], 1)
        self.assertEqual(report["difference"]["field"], "loss")
        self.assertIn("0x40000000", report["difference"]["published"])

    def test_a_broken_chain_is_told(self):
        run = self.copy("broken")
        with open(os.path.join(run, "steps.log"), "r+b") as file:
            file.seek(264)
            file.write(b"\0\0\0\x40")
        done = run_tool("replay", run, code=CODE_BAD_ARTIFACT)
        self.assertIn("breaks the chain", done.stderr.decode())

    def test_a_changed_checkpoint_is_not_believed(self):
        run = self.copy("changed")
        path = os.path.join(run, "checkpoints", self.checkpoints()[1], "first_moment.safetensors")
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) - 3)
            byte = file.read(1)
            file.seek(os.path.getsize(path) - 3)
            file.write(bytes([byte[0] ^ 1]))
        first = int(self.checkpoints()[1])
        done = run_tool("replay", run, "--steps", str(first), "--json", code=CODE_BAD_ARTIFACT)
        report = json.loads(done.stdout)
        self.assertEqual(report["verdict"], "inconclusive")
        self.assertIn("first moment", report["reason"])

    def test_training_passes_over_a_damaged_checkpoint(self):
        run = self.copy("damaged")
        for name in self.checkpoints()[-2:]:
            path = os.path.join(run, "checkpoints", name, "parameters.safetensors")
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) - 3)
                file.write(b"\x55\xaa")
        os.remove(os.path.join(run, "checkpoints", self.checkpoints()[-3], "second_moment.safetensors"))
        done = run_tool("train", run, "--stop-at", str(STEPS), "--json")
        self.assertEqual(json.loads(done.stdout)["chain"], self.summary["chain"])
        for name in self.checkpoints()[-3:]:
            self.assertIn(f"passed over {run}/checkpoints/{name}", done.stderr.decode())
        # They were made again.
        for name in self.checkpoints():
            run_tool("checkpoint", "verify", os.path.join(run, "checkpoints", name))

    def test_a_segment_goes_on_from_its_parent(self):
        at = int(self.checkpoints()[1])
        with open(self.path("run.toml"), encoding="utf-8") as file:
            text = file.read()
        path = self.path("segment.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + f'[parent]\npath = "run"\nstep = {at}\n[recipe]\npeak_lr = 1e-4\n[topology]\nreplicas = 1\n')
        run = self.path("segment")
        run_tool("run", "init", path, "--out", run)
        summary = json.loads(output("train", run, "--stop-at", str(at + 3), "--json"))
        self.assertEqual(summary["next_step"], at + 3)
        # The chain runs through: the segment's first record names the parent's last before it.
        with open(os.path.join(run, "steps.log"), "rb") as file:
            first = file.read(RECORD_BYTES)
        with open(os.path.join(self.trained, "steps.log"), "rb") as file:
            file.seek(at * RECORD_BYTES)
            beside = file.read(RECORD_BYTES)
        self.assertEqual(int.from_bytes(first[8:16], "little"), at)
        self.assertEqual(first[-32:], beside[-32:])  # the previous chain
        self.assertNotEqual(first, beside)
        # Replay across the boundary: the parent's last steps, then the segment's.
        report = json.loads(output("replay", self.trained, "--steps", f"{at - 1}", "--json"))
        self.assertEqual(report["verdict"], "match")
        report = json.loads(output("replay", run, "--steps", f"{at}..{at + 2}", "--json"))
        self.assertEqual((report["verdict"], report["start_step"]), ("match", at))
        self.assertEqual(report["start"], os.path.join(self.trained, "checkpoints", f"{at:08d}"))
        # Killed and begun again, it goes on from its own checkpoints.
        shutil.rmtree(os.path.join(run, "checkpoints", f"{at + 3:08d}"))
        again = json.loads(output("train", run, "--stop-at", str(at + 3), "--json"))
        self.assertEqual(again["chain"], summary["chain"])
        done = run_tool("replay", run, "--steps", f"{at - 1}", "--json", code=None)
        self.assertNotEqual(done.returncode, 0)
        # Another state of the parent is not taken for the one that is named.
        os.rename(os.path.join(self.copy("swapped"), "checkpoints"), self.path("swapped-checkpoints"))
        self.addCleanup(shutil.rmtree, self.path("swapped-checkpoints"))
        other = self.checkpoints()[2]
        os.makedirs(self.path("swapped/checkpoints"))
        shutil.copytree(self.path(f"swapped-checkpoints/{other}"), self.path(f"swapped/checkpoints/{at:08d}"))
        shutil.rmtree(run)
        run_tool("run", "init", path, "--out", run)
        places = os.path.join(run, "places.json")
        with open(places, encoding="utf-8") as file:
            text = file.read()
        with open(places, "w", encoding="utf-8") as file:
            file.write(text.replace(self.trained, self.path("swapped")))
        done = run_tool("train", run, code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("expected", done.stderr.decode())

    def test_a_parent_that_is_not_there_is_told(self):
        with open(self.path("run.toml"), encoding="utf-8") as file:
            text = file.read()
        for parent, step, words in (("nowhere", 2, "is no run"), ("run", 1, "expected a checkpoint before step 1")):
            path = self.path("orphan.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + f'[parent]\npath = "{parent}"\nstep = {step}\n')
            done = run_tool("run", "init", path, "--out", self.path("orphan"), code=CODE_FAILURE)
            self.assertIn(words, done.stderr.decode())

    def test_two_trainers_of_one_run_are_refused(self):
        run = self.new_run("locked")
        process = subprocess.Popen([*PROGRAM, "train", run, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        log = os.path.join(run, "steps.log")
        while not os.path.exists(log) or os.path.getsize(log) < RECORD_BYTES:
            self.assertIsNone(process.poll())
        done = run_tool("train", run, code=CODE_FAILURE)
        self.assertIn("another process is at work", done.stderr.decode())
        process.kill()
        process.wait()
        process.stderr.close()

    def test_bad_requests_are_explained(self):
        for args, words in (
            (("train", self.path("nowhere")), "is no run"),
            (("replay", self.trained, "--steps", "7..3"), "expected FIRST..LAST"),
            (("replay", self.trained, "--steps", f"0..{STEPS}"), "steps with a record"),
            (("run", "init", self.path("run.toml"), "--out", self.trained), "no folder or an empty one"),
        ):
            done = run_tool(*args, code=CODE_FAILURE)
            self.assertIn(words, done.stderr.decode(), args)


if __name__ == "__main__":
    unittest.main()
