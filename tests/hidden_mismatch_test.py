#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A coordinator that hides a mismatch. A trainer cheats in one step; a worker finds it, and keeps the receipt. The log without the
mismatch, signed with the coordinator's own key, is sound by itself; the worker's receipts show what it was."""

import os
import shutil
import subprocess
import tempfile
import unittest

import log_checker
from network import ORIGIN, Coordinator, Worker, counts, verify, wait_for
from publish_test import test_program
from tool import CODE_BAD_ARTIFACT, CODE_MISMATCH, make_run, output, run_tool

STEPS = 6
CHEATED_STEP = 3


class HiddenMismatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, name, *words):
        done = subprocess.run([test_program(name), *words], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_the_receipt_shows_it(self):
        coordinator = Coordinator(self.path("coordinator"))
        self.addCleanup(coordinator.close)
        coordinator.start()
        run = make_run(self.folder, checkpoint_every=1)
        run_tool("train", run, "--stop-at", str(CHEATED_STEP), "--json")
        self.program("dishonest_trainer", run, "weight")
        publish = ["--coordinator", coordinator.trainer_address, "--trainer-key", self.path("trainer.key"), "--quorum", "1"]
        output("train", run, "--stop-at", str(STEPS), "--json", *publish)
        worker = Worker(self.path("worker"), "Ada", coordinator.address)
        self.addCleanup(worker.close)
        worker.start()

        def audited():
            self.assertTrue(worker.program.running(), worker.program.messages())
            found = counts(coordinator.public_folder, os.path.join(run, "publish", "log_key"))
            return found and found["disputed"] == 1 and found["confirmed"] == STEPS - 1

        wait_for(f"{STEPS - 1} steps to be confirmed and one to be disputed", audited, every_s=0.2)
        # The receipt comes with the answer, or with the next one if that was lost.
        wait_for(f"{STEPS} receipts", lambda: len(self.receipts(worker)) == STEPS, every_s=0.2)
        worker.stop()
        coordinator.stop()

        key = ("--log-key", os.path.join(run, "publish", "log_key"))
        kept = ("--receipts", worker.receipts_folder)
        report = verify(coordinator.public_folder, *key, *kept, code=CODE_MISMATCH)
        self.assertTrue(report["sound"])
        self.assertEqual(report["promises"], STEPS)
        self.assertEqual([step["step"] for step in report["runs"][0]["disputed"]], [CHEATED_STEP])

        # The other log: by itself there is nothing to be seen.
        hiding = self.path("hiding.bundle")
        self.program("log_fixture", "hide-mismatches", coordinator.folder, ORIGIN, hiding)
        report = verify(hiding, *key)
        self.assertEqual(report["runs"][0]["states"]["disputed"], 0)
        self.assertEqual(report["runs"][0]["states"]["confirmed"], STEPS - 1)
        self.assertEqual(report["refused"], 0)

        report = verify(hiding, *key, *kept, code=CODE_BAD_ARTIFACT)
        self.assertFalse(report["sound"])
        hidden = [fault["message"] for fault in report["faults"] if "mismatch" in fault["message"]]
        self.assertTrue(any(f"of step {CHEATED_STEP} of run " in message for message in hidden), report["faults"])
        text = run_tool("verify", hiding, *key, *kept, code=CODE_BAD_ARTIFACT).stdout.decode()
        self.assertIn("NOT SOUND", text)
        # And whoever has only the receipt has the worker's word, with the log's promise over it.
        log_key = log_checker.note_key(key[1])
        receipts = [log_checker.check_receipt(text, log_key) for text in self.receipts(worker)]
        kept = log_checker.Log(log_key, receipts[0].head, "", [receipt.entry for receipt in receipts], [])
        verdicts = [entry.json["predicate"]["verdict"] for entry in log_checker.entries_of(kept, "attestation")]
        self.assertEqual(sorted(verdicts), ["match"] * (STEPS - 1) + ["mismatch"])

    def receipts(self, worker):
        return list(log_checker.receipts_in(worker.receipts_folder).values()) if os.path.isdir(worker.receipts_folder) else []


if __name__ == "__main__":
    unittest.main()
