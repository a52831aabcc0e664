#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network from end to end, with real programs: a trainer that publishes, a coordinator, three workers of three operators on
three instruction sets, and what `lockstep verify` finds in a bundle of the log alone. An honest run ends confirmed; one with a step
that was tampered with ends with that step disputed and the others confirmed.

LOCKSTEP_ARM_WORKER names a worker built for 64-bit ARM, which then takes the third place, under qemu; LOCKSTEP_INGESTED a folder of
document stores to train on in the place of the built-in sample, such as that of scripts/fetch-corpus."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from network import ROOT, Coordinator, Worker, counts, verify, wait_for
from tool import CODE_MISMATCH, make_run, output, run_tool

STEPS = 12
CHEATED_STEP = 6
ARM_WORKER = os.environ.get("LOCKSTEP_ARM_WORKER")
INGESTED = os.environ.get("LOCKSTEP_INGESTED")
DISHONEST_TRAINER = os.environ.get("LOCKSTEP_DISHONEST_TRAINER") or os.path.join(
    ROOT, "build", "release", "tests", "lockstep_dishonest_trainer"
)


def instruction_sets():
    """Names for LOCKSTEP_ISA of what this machine has, the fastest first; `reference` is everywhere."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read()
    found = [name for name, flag in (("avx512", "avx512_vnni"), ("avx2", "avx2"), ("neon", "asimddp")) if flag in flags]
    return [*found, "reference"]


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.coordinator = Coordinator(self.path("coordinator"))
        self.addCleanup(self.coordinator.close)
        self.coordinator.start()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def publish(self, run, *options):
        return json.loads(
            output("train", run, "--json", "--coordinator", self.coordinator.trainer_address, "--trainer-key", self.path("trainer.key"),
                   "--openings", "2", *options)
        )  # fmt: skip

    def start_workers(self):
        """Three of them; the backend classes."""
        sets = (instruction_sets() + ["reference"] * 2)[: 2 if ARM_WORKER else 3]
        # The first one offers the states that it reaches, for others to start from.
        self.workers = [
            Worker(self.path(f"worker-{name}"), f"operator {name}", self.coordinator.address, isa=name,
                   options=["--offer-states", "true" if name == sets[0] else "false"])
            for name in sets
        ]  # fmt: skip
        if ARM_WORKER:
            self.workers.append(
                Worker(self.path("worker-arm"), "operator arm", self.coordinator.address, program=ARM_WORKER, emulator=["qemu-aarch64"])
            )
        for worker in self.workers:
            self.addCleanup(worker.close)
            worker.start()
        return len(set(sets)) + (1 if ARM_WORKER else 0)

    def wait_for_counts(self, wanted):
        def reached():
            found = counts(self.coordinator.public_folder, self.log_key())
            for worker in self.workers:
                self.assertTrue(worker.program.running(), worker.program.messages())
            return found == wanted

        try:
            wait_for(f"the steps to be {wanted}", reached, every_s=0.5)
        except AssertionError:
            for worker in self.workers:
                print(worker.program.messages())
            print(self.coordinator.program.messages(), counts(self.coordinator.public_folder, self.log_key()))
            raise

    def bundle(self):
        path = self.path("run.bundle")
        run_tool("bundle", self.coordinator.http_address, "--log-key", self.log_key(), "--out", path)
        return path

    def log_key(self):
        return self.path("run", "publish", "log_key")

    def end(self):
        for worker in self.workers:
            worker.stop()
            refused = os.path.join(worker.folder, "data", "outbox", "refused")
            self.assertEqual(os.listdir(refused) if os.path.isdir(refused) else [], [])
        self.assertEqual(self.coordinator.stop(), 0)

    def test_an_honest_run_is_confirmed(self):
        run = make_run(self.folder, ingested=INGESTED)
        backends = self.start_workers()
        # The workers audit what the trainer has just published.
        summary = self.publish(run, "--stop-at", str(STEPS), "--quorum", "3", "--backends", str(backends))
        self.assertEqual(summary["published"], {"next_step": STEPS, "checkpoints": 4, "complete": True})
        self.wait_for_counts({"confirmed": STEPS, "provisional": 0, "disputed": 0, "unaudited": 0})
        bundle = self.bundle()
        self.end()
        # From here on nothing but the bundle, and the key by which the trainer knows the log.
        report = verify(bundle, "--log-key", self.log_key(), "--quorum", "3", "--backends", str(backends))
        self.assertTrue(report["sound"])
        self.assertEqual(report["runs"][0]["states"]["confirmed"], STEPS)
        self.assertEqual(report["runs"][0]["matches"], 3 * STEPS)
        self.assertEqual(report["runs"][0]["chain"], summary["chain"])
        self.assertGreater(report["accepted"]["checkpoint"], summary["published"]["checkpoints"])  # a worker's state among them
        self.assertEqual({o["name"]: o["matches"] for o in report["runs"][0]["operators"]},
                         {f"operator {os.path.basename(w.folder)[7:]}": STEPS for w in self.workers})  # fmt: skip
        # Each receipt is of this log.
        receipts = [os.path.join(folder, name) for worker in self.workers for folder, _, names in os.walk(worker.receipts_folder)
                    for name in names]  # fmt: skip
        self.assertGreaterEqual(len(receipts), 3 * STEPS)
        options = [word for path in receipts for word in ("--receipt", path)]
        self.assertTrue(verify(bundle, "--log-key", self.log_key(), *options)["sound"])

    def check_tampered(self, what):
        run = make_run(self.folder, ingested=INGESTED)
        backends = self.start_workers()
        self.publish(run, "--stop-at", str(CHEATED_STEP), "--quorum", "3", "--backends", str(backends))
        done = subprocess.run([DISHONEST_TRAINER, run, what], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.publish(run, "--stop-at", str(STEPS), "--quorum", "3", "--backends", str(backends))
        self.wait_for_counts({"confirmed": STEPS - 1, "provisional": 0, "disputed": 1, "unaudited": 0})
        bundle = self.bundle()
        self.end()
        report = verify(bundle, "--log-key", self.log_key(), code=CODE_MISMATCH)
        self.assertTrue(report["sound"])
        disputed = report["runs"][0]["disputed"]
        self.assertEqual([step["step"] for step in disputed], [CHEATED_STEP])
        return report, disputed[0]

    def test_a_tampered_weight_is_disputed(self):
        report, step = self.check_tampered("weight")
        self.assertEqual(report["runs"][0]["mismatches"], 3)
        others = {other["record"] for other in step["others"]}
        self.assertEqual(len(others), 1)  # all three found the same other record
        self.assertNotIn(step["published"], others)
        self.assertTrue(step["places"])

    def test_a_tampered_window_is_disputed(self):
        _, step = self.check_tampered("window")
        self.assertTrue(any("windows" in place for place in step["places"]), step["places"])

    def test_a_tampered_learning_rate_is_disputed(self):
        _, step = self.check_tampered("learning-rate")
        self.assertTrue(any("learning_rate" in place for place in step["places"]), step["places"])


if __name__ == "__main__":
    unittest.main()
