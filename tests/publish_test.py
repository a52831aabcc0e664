#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer and the coordinator that it tells of its run, as real programs: both killed again and again; the coordinator away,
another's, and one that is lied to. What the log must then be is found out by log_checker.py, and by `lockstep verify`.

LOCKSTEP_KILLS says how often the trainer is killed, in tests of the installed programs more often than here."""

import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
import unittest
import urllib.request

import log_checker
from network import ROOT, Coordinator, verify
from tool import CODE_FAILURE, CODE_MISMATCH, CODE_NETWORK, PROGRAM, RECORD_BYTES, error, make_run, output, run_tool

STEPS = 24
TO_THE_END = ("--stop-at", str(STEPS), "--keep-checkpoints", "-1", "--json")
KILLS = int(os.environ.get("LOCKSTEP_KILLS", "50"))
SEED = 20261130


def test_program(name):
    return os.environ.get("LOCKSTEP_" + name.upper()) or os.path.join(ROOT, "build", "release", "tests", "lockstep_" + name)


class PublishTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.untrained = make_run(cls.shared, checkpoint_every=1)
        cls.trained = os.path.join(cls.shared, "trained")
        shutil.copytree(cls.untrained, cls.trained)
        cls.summary = json.loads(output("train", cls.trained, *TO_THE_END))

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.key = self.path("trainer.key")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start_coordinator(self, name="coordinator"):
        coordinator = Coordinator(self.path(name))
        self.addCleanup(coordinator.close)
        coordinator.start()
        return coordinator

    def copy_of(self, run, name="run"):
        shutil.copytree(run, self.path(name))
        return self.path(name)

    def options(self, coordinator):
        return ["--coordinator", coordinator.trainer_address, "--trainer-key", self.key]

    def publish(self, run, coordinator, *more, code=0):
        return run_tool("publish", run, *self.options(coordinator), *more, code=code)

    def log_of(self, coordinator, run):
        return log_checker.check_log(coordinator.public_folder, os.path.join(run, "publish", "log_key"))

    def records_of(self, run):
        with open(os.path.join(run, "steps.log"), "rb") as file:
            data = file.read()
        return [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]

    def receipts_of(self, run):
        return list(log_checker.receipts_in(os.path.join(run, "publish", "receipts")).values())

    def check_complete(self, coordinator, run, receipts=()):
        """All of the run is in the log, once and in order; each receipt is of this log; each state's files are there."""
        log = self.log_of(coordinator, run)
        (history,) = log_checker.check_runs(log).values()
        self.assertEqual([record.bytes for record in history.records], self.records_of(run))
        self.assertEqual(history.second, [])
        states = log_checker.entries_of(log, "checkpoint")
        self.assertEqual(len({state.json["nextStep"] for state in states}), len(states))
        self.assertEqual(log.size, 1 + len(history.records) + len(states))
        for receipt in [*receipts, *self.receipts_of(run)]:
            log_checker.check_receipt(receipt, log.key, log=log)
        report = verify(coordinator.public_folder, "--log-key", os.path.join(run, "publish", "log_key"),
                        "--receipts", os.path.join(run, "publish", "receipts"))  # fmt: skip
        self.assertTrue(report["sound"])
        self.assertEqual(report["runs"][0]["steps"], len(history.records))
        self.assertEqual(report["runs"][0]["chain"], history.records[-1].chain.hex())
        for state in states:
            for digest in [state.json["manifest"], *(file["sha256"] for file in state.json["files"])]:
                self.assertEqual(self.artifact(coordinator, digest), digest)
        return log, sorted(state.json["nextStep"] for state in states)

    def artifact(self, coordinator, digest):
        """The digest of what the coordinator serves under this one."""
        with urllib.request.urlopen(f"{coordinator.http_address}/artifact/{digest}") as answer:
            return hashlib.sha256(answer.read()).hexdigest()

    # ---- killed

    def test_killed_at_any_moment(self):
        generator = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        kills, coordinator_kills, cycles = 0, 0, 0
        while kills < KILLS:
            coordinator = self.start_coordinator(f"coordinator-{cycles}")
            run = self.copy_of(self.untrained, f"run-{cycles}")
            words = [*PROGRAM, "train", run, *self.options(coordinator), *TO_THE_END]
            receipts, earlier = [], None
            while True:
                # From before it opens the run to several steps later; now and then the other goes first.
                kill_after = generator.uniform(0.02, 0.4) if kills < KILLS else None
                coordinator_too = kill_after is not None and generator.random() < 0.2
                trainer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    if coordinator_too:
                        time.sleep(kill_after / 2)
                        coordinator.kill()
                        coordinator_kills += 1
                        time.sleep(kill_after / 2)
                    trainer.wait(0 if coordinator_too else kill_after)  # None: to its end
                except subprocess.TimeoutExpired:
                    trainer.kill()
                    trainer.wait()
                    kills += 1
                if coordinator_too:
                    coordinator.start()
                if os.path.exists(os.path.join(run, "publish", "log_key")):
                    receipts += self.receipts_of(run)
                    log = self.log_of(coordinator, run)
                    if earlier:
                        log_checker.check_grown(earlier, log)
                    earlier = log
                if trainer.returncode == 0:
                    break
                self.assertEqual(trainer.returncode, -9)
            self.publish(run, coordinator)
            log, states = self.check_complete(coordinator, run, receipts)
            log_checker.check_grown(earlier, log)
            self.assertEqual(states, list(range(STEPS + 1)))
            # And these are the bits of a run that nobody has killed.
            self.assertEqual(self.records_of(run), self.records_of(self.trained))
            self.assertEqual(coordinator.stop(), 0)
            cycles += 1
        print(f"{kills} kills of the trainer and {coordinator_kills} of the coordinator, in {cycles} runs", flush=True)
        self.assertGreater(coordinator_kills, 0)

    def test_killed_while_it_publishes(self):
        """The same of `publish` alone, which is at its calls all the time."""
        generator = random.Random(SEED + 1)
        coordinator = self.start_coordinator()
        run = self.copy_of(self.trained)
        words = [*PROGRAM, "publish", run, *self.options(coordinator)]
        kills, receipts = 0, []
        while True:
            publisher = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                publisher.wait(generator.uniform(0.01, 0.15))
            except subprocess.TimeoutExpired:
                publisher.kill()
                publisher.wait()
                kills += 1
            receipts += self.receipts_of(run) if os.path.isdir(os.path.join(run, "publish", "receipts")) else []
            if publisher.returncode == 0 or kills >= KILLS:
                break
            self.assertEqual(publisher.returncode, -9)
        self.publish(run, coordinator)
        _, states = self.check_complete(coordinator, run, receipts)
        self.assertEqual(states, list(range(STEPS + 1)))
        print(f"{kills} kills of the publisher", flush=True)
        self.assertGreater(kills, 3)

    # ---- away

    def seconds_of_steps(self, run):
        with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line)["seconds"] for line in file]

    def test_training_does_not_need_the_coordinator(self):
        coordinator = self.start_coordinator()
        coordinator.stop()
        run = self.copy_of(self.untrained)
        done = run_tool("train", run, *self.options(coordinator), *TO_THE_END)
        summary = json.loads(done.stdout)
        self.assertEqual(summary.pop("published"), {"next_step": 0, "checkpoints": 0, "complete": False})
        self.assertEqual(summary, self.summary)
        self.assertIn("`lockstep publish", done.stderr.decode())
        # A slow machine makes a step slow, and not all of them.
        alone = statistics.median(self.seconds_of_steps(self.trained))
        self.assertLess(statistics.median(self.seconds_of_steps(run)), 4 * alone)
        self.publish(run, coordinator, "--patience", "0.2", code=CODE_NETWORK)
        coordinator.start()
        answer = json.loads(self.publish(run, coordinator, "--json").stdout)
        self.assertEqual((answer["next_step"], answer["checkpoints"], answer["complete"]), (STEPS, STEPS + 1, True))
        self.check_complete(coordinator, run)
        # What is published already is sent no second time.
        size = self.log_of(coordinator, run).size
        self.publish(run, coordinator)
        self.assertEqual(self.log_of(coordinator, run).size, size)

    # ---- another log

    def test_a_coordinator_with_another_log_is_refused(self):
        coordinator = self.start_coordinator()
        run = self.copy_of(self.untrained)
        run_tool("train", run, *self.options(coordinator), "--stop-at", "5", "--json")
        self.check_complete(coordinator, run)
        coordinator.stop()
        other = Coordinator(self.path("other"))
        self.addCleanup(other.close)
        other.host, other.ports = coordinator.host, dict(coordinator.ports)
        other.start()
        done = run_tool("train", run, *self.options(coordinator), *TO_THE_END)
        self.assertEqual(json.loads(done.stdout)["next_step"], STEPS)
        self.assertEqual(json.loads(done.stdout)["published"]["complete"], False)
        self.assertIn("this run was published to the log", done.stderr.decode())
        self.assertIn("this run was published to the log", self.publish(run, coordinator, code=CODE_FAILURE).stderr.decode())
        self.assertFalse(os.path.exists(os.path.join(other.public_folder, "tile", "entries")))
        other.stop()
        coordinator.start()
        self.publish(run, coordinator)
        self.check_complete(coordinator, run)

    # ---- another history

    def other_history(self, name):
        """The same run, with the same key, cheated in step 5: from there on all is different."""
        run = self.copy_of(self.untrained, name)
        run_tool("train", run, "--stop-at", "5", "--json")
        done = subprocess.run([test_program("dishonest_trainer"), run, "learning-rate"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        run_tool("train", run, "--stop-at", "8", "--json")
        return run

    def test_a_second_history_is_never_sent(self):
        coordinator = self.start_coordinator()
        run = self.copy_of(self.untrained)
        run_tool("train", run, *self.options(coordinator), "--stop-at", "10", "--json")
        log, _ = self.check_complete(coordinator, run)
        other = self.other_history("other")
        # Shorter than what the coordinator has: nothing is said that could contradict it.
        self.publish(other, coordinator)
        self.assertIn("up to step 8", self.publish(other, coordinator).stderr.decode())
        # As long, and longer.
        for steps in ("10", "12"):
            run_tool("train", other, "--stop-at", steps, "--json")
            self.assertIn("another history", self.publish(other, coordinator, code=CODE_FAILURE).stderr.decode())
        done = run_tool("train", other, *self.options(coordinator), *TO_THE_END)
        self.assertIn("another history", done.stderr.decode())
        after = self.log_of(coordinator, run)
        (history,) = log_checker.check_runs(after).values()
        self.assertEqual((len(history.records), history.second), (10, []))
        # The states that both have until step 5 are the same entries.
        self.assertEqual([e.kind for e in log_checker.entries_of(after)[log.size :]], [])

    def test_a_second_history_that_is_sent_is_disputed(self):
        coordinator = self.start_coordinator()
        run = self.copy_of(self.untrained)
        run_tool("train", run, *self.options(coordinator), "--stop-at", "10", "--json")
        other = self.other_history("other")
        words = [test_program("dishonest_publisher"), other, coordinator.trainer_address, self.key]
        for first, end in ((5, 6), (5, 6), (7, 8)):
            done = subprocess.run([*words, str(first), str(end)], capture_output=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("SECOND_HISTORY", done.stderr.decode())
        key = os.path.join(run, "publish", "log_key")
        log = self.log_of(coordinator, run)
        (history,) = log_checker.check_runs(log).values()
        self.assertEqual([record.step for record in history.records], list(range(10)))
        self.assertEqual([record.step for record in history.second], [5, 7])
        # Both are kept, and said to be what they are.
        mine, theirs = self.records_of(run), self.records_of(other)
        self.assertEqual([record.bytes for record in history.second], [theirs[5], theirs[7]])
        disputes = log_checker.entries_of(log, "dispute")
        self.assertEqual([(d.json["step"], d.json["reason"]) for d in disputes], [(5, "second-history"), (7, "second-history")])
        for dispute, second in zip(disputes, history.second):
            self.assertTrue(dispute.is_signed_by(log.key.key))
            self.assertEqual(dispute.json["evidence"], [{"entry": log.leaves[second.index].hex()}])
        report = verify(coordinator.public_folder, "--log-key", key, code=CODE_MISMATCH)
        self.assertTrue(report["sound"])
        for step, found in zip((5, 7), report["runs"][0]["disputed"]):
            self.assertEqual((found["step"], found["published"]), (step, hashlib.sha256(mine[step]).hexdigest()))
            self.assertEqual([o["record"] for o in found["others"]], [hashlib.sha256(theirs[step]).hexdigest()])
        # The honest part goes on.
        run_tool("train", run, *self.options(coordinator), *TO_THE_END)
        (history,) = log_checker.check_runs(self.log_of(coordinator, run)).values()
        self.assertEqual(len(history.records), STEPS)

    # ---- another key

    def test_records_by_another_key_are_nobodys(self):
        coordinator = self.start_coordinator()
        run = self.copy_of(self.untrained)
        run_tool("train", run, *self.options(coordinator), "--stop-at", "4", "--json")
        other = self.other_history("other")
        self.key, mine = self.path("stranger.key"), self.key
        error("publish", other, *self.options(coordinator), code=CODE_FAILURE)
        done = subprocess.run([test_program("dishonest_publisher"), other, coordinator.trainer_address, self.key, "4", "5"],
                              capture_output=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("ENVELOPE_INVALID", done.stderr.decode())
        self.key = mine
        self.check_complete(coordinator, run)


if __name__ == "__main__":
    unittest.main()
