#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small network of real programs for the browser tests: a trainer with one step that was tampered with, a coordinator that serves the
dashboard, and two workers whose operators have hostile names. Tells where it is as a line of JSON once all steps are audited, and
then does what it is told, a line each, and answers with a line of JSON:

    publish N    train and publish up to step N; the workers audit it
    stop, start  the coordinator
    rest         the second worker ends
    new          another one begins in its place, of an operator that was not there before

Ends when its standard input does. LOCKSTEP, LOCKSTEP_COORDINATOR, LOCKSTEP_WORKER and LOCKSTEP_DISHONEST_TRAINER name the programs
(tests/network.py)."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
sys.path.insert(0, os.path.join(ROOT, "tests"))

from network import Coordinator, Worker, counts, wait_for  # noqa: E402 (the path comes first)
from tool import make_run, output  # noqa: E402

DISHONEST_TRAINER = os.environ.get("LOCKSTEP_DISHONEST_TRAINER") or os.path.join(
    ROOT, "build", "release", "tests", "lockstep_dishonest_trainer"
)
STEPS, CHEATED = 12, 6
# What a page must show as text: markup, a change of direction, letters of four scripts, and as long as a name may be.
NAMES = ["<img src=x onerror=alert(1)>", "\u2066\u05d0\u05d1\u05d2\u2069 & 計算研究室 \u202e", "N" * 64]
HARDWARE = ["</title><script>alert(2)</script>", 'a "quoted" machine; $(reboot)', "H" * 128]


class NamedWorker(Worker):
    """One whose hardware is described as the test wants."""

    def __init__(self, *args, hardware, **options):
        self.hardware = hardware
        super().__init__(*args, **options)

    def command(self, *words, code=0):
        if words[:2] == ("keys", "certify"):
            words = ("keys", "certify", "--hardware", self.hardware)
        return super().command(*words, code=code)


class World:
    def __init__(self, folder, web_root, isas):
        self.folder = folder
        self.coordinator = Coordinator(self.path("coordinator"), options=["--web-root", web_root])
        self.isas = isas
        self.workers = []
        self.run = make_run(folder, checkpoint_every=3, name="walk")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def add_worker(self):
        number = len(self.workers)
        worker = NamedWorker(
            self.path(f"worker-{number}"), NAMES[number], self.coordinator.address, isa=self.isas[min(number, 1)],
            options=["--offer-states", "false"], hardware=HARDWARE[number],
        )  # fmt: skip
        self.workers.append(worker)
        worker.start()

    def publish(self, stop_at):
        return json.loads(
            output("train", self.run, "--json", "--threads", "1", "--stop-at", str(stop_at), "--coordinator", self.coordinator.trainer_address,
                   "--trainer-key", self.path("trainer.key"), "--openings", "2", "--quorum", "2", "--backends", "2")
        )  # fmt: skip

    def begin(self):
        self.coordinator.start()
        self.add_worker()
        self.add_worker()
        self.publish(CHEATED)
        subprocess.run([DISHONEST_TRAINER, self.run, "window"], check=True, stdout=subprocess.DEVNULL)
        self.publish(STEPS)
        wanted = {"confirmed": STEPS - 1, "provisional": 0, "disputed": 1, "unaudited": 0}
        log_key = self.path("run", "publish", "log_key")
        wait_for(f"the steps to be {wanted}", lambda: counts(self.coordinator.public_folder, log_key) == wanted, every_s=0.3)
        with open(log_key, encoding="utf-8") as file:
            return {
                "http_address": self.coordinator.http_address,
                "worker_address": self.coordinator.address,
                "log_key": file.read().strip(),
                "steps": STEPS,
                "cheated": CHEATED,
                "names": NAMES,
                "hardware": HARDWARE,
                "receipts": self.receipts(),
            }

    def receipts(self):
        found = []
        for folder, _, names in os.walk(self.workers[0].receipts_folder):
            for name in sorted(names)[:1]:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.append(file.read())
        return found

    def obey(self, line):
        words = line.split()
        if words[0] == "publish":
            return self.publish(int(words[1]))["published"]
        if words[0] == "stop":
            return {"code": self.coordinator.stop()}
        if words[0] == "start":
            return {"started": self.coordinator.start()}
        if words[0] == "rest":
            return {"code": self.workers[1].stop()}
        if words[0] == "new":
            self.add_worker()
            return {"operator": NAMES[len(self.workers) - 1]}
        raise ValueError(f"no such command: {line}")

    def end(self):
        for worker in self.workers:
            worker.close()
        self.coordinator.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--web-root", required=True)
    parser.add_argument("--isas", default="avx2,reference", help="instruction sets of the two workers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, arguments.web_root, arguments.isas.split(","))
        try:
            print(json.dumps(world.begin()), flush=True)
            for line in sys.stdin:
                print(json.dumps(world.obey(line)), flush=True)
        finally:
            world.end()


if __name__ == "__main__":
    main()
