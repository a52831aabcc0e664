#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep-worker` as the machine it is a guest of treats it: killed, copied, out of disk, with failing system calls, a clock that
is set, a coordinator that goes away, mirrors that lie; and as its owner meets it. Real programs on loopback, a real small run.

LOCKSTEP_SEED chooses the random moments (it is printed). Longer: LOCKSTEP_KILLS=500, and LOCKSTEP_FULL_FAULTS=1 for every system call
of the daemon on its outbox instead of a sample."""

import base64
import glob
import http.server
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import network
from network import ROOT, Coordinator, verify, wait_for
from tool import CODE_BAD_ARTIFACT, CODE_INTERRUPTED, CODE_NETWORK, CODE_USAGE, make_run, output

STEPS = 12
OPENINGS = 2
SEED = int(os.environ.get("LOCKSTEP_SEED") or random.SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get("LOCKSTEP_KILLS") or 50)
KILLED_WORKERS = 5
FULL_FAULTS = os.environ.get("LOCKSTEP_FULL_FAULTS") == "1"
OUTBOX_PROCESS = os.environ.get("LOCKSTEP_OUTBOX_PROCESS") or os.path.join(ROOT, "build", "release", "worker", "worker_outbox_kill_test")
FILE_CALLS = "openat,read,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,getdents64,close"

# Its own mount namespace; of a user who is not root, a user namespace too.
NAMESPACE = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-Urm"]


class Worker(network.Worker):
    def fails(self, *words, code):
        """What a command that ends with this exit code says."""
        done = subprocess.run([*self.words, *words, *self.settings], capture_output=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"{words}: exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr.decode()}")
        return done.stderr.decode()


class Outbox:
    """What lies in a worker's outbox, by step."""

    def __init__(self, worker):
        self.folder = os.path.join(worker.folder, "data", "outbox")
        self.signed = {}  # step -> envelope, all that were ever seen
        self.tests = set()  # envelopes about made-up records

    def files(self, name):
        folder = os.path.join(self.folder, name)
        found = []
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if file.endswith(".json"):
                with open(os.path.join(folder, file), encoding="utf-8") as text:
                    found.append(json.load(text))
        return found

    def look(self, test, refusals=False):
        """Called while no daemon runs: whatever is there is whole, and nothing is signed twice (but what was refused, if that may
        be)."""
        for item in self.files("refused") if refusals else []:
            test.assertIn("LEASE_", item["reason"])
            self.signed = {step: envelope for step, envelope in self.signed.items() if envelope != item["envelope"]}
        for item in self.files("pending"):
            if not item["trainerSigned"]:
                self.tests.add(item["envelope"])
                continue
            test.assertEqual(self.signed.setdefault(item["step"], item["envelope"]), item["envelope"], "signed twice")
        for receipt in self.files("receipts"):
            step = json.loads(base64.b64decode(json.loads(base64.b64decode(receipt["entry"]))["payload"]))["predicate"]["step"]
            test.assertEqual(self.signed.setdefault(step, receipt["entry"]), receipt["entry"], "signed twice")

    def receipts(self):
        return [os.path.join(self.folder, "receipts", name) for name in sorted(os.listdir(os.path.join(self.folder, "receipts")))]

    def check_all_sent(self, test, steps):
        """Everything signed is in the log, by the receipts; nothing waits, nothing was refused but answers to made-up records."""
        self.look(test)
        test.assertEqual(self.files("pending"), [])
        test.assertEqual({receipt["entry"] for receipt in self.files("receipts")}, set(self.signed.values()))
        test.assertEqual(sorted(self.signed), list(range(steps)))
        for item in self.files("refused"):
            test.assertIn(item["envelope"], self.tests, item["reason"])


class Mirror:
    """A web server whose answers a test makes: answer(request, digest) writes them, or returns False for those of a good one."""

    def __init__(self, folder, answer):
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                digest = self.path.rsplit("/", 1)[-1]
                mirror.requests.append((self.path, self.headers.get("Range")))
                try:
                    if answer(self, digest):
                        self.close_connection = True
                    else:
                        mirror.serve(self, digest)
                except ConnectionError:
                    self.close_connection = True  # it had enough of this

            def log_message(self, *_):
                pass

        self.folder = folder
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def read(self, digest):
        path = os.path.join(self.folder, digest)
        if not re.fullmatch("[0-9a-f]{64}", digest) or not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def serve(self, request, digest):
        data = self.read(digest)
        if data is None:
            request.send_response(404)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        first, last, code = 0, len(data) - 1, 200
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", "")):
            first, last, code = int(match[1]), min(int(match[2] or last), last), 206
        request.send_response(code)
        if code == 206:
            request.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        request.send_header("Content-Length", str(last + 1 - first))
        request.end_headers()
        request.wfile.write(data[first : last + 1])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class WorkerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"LOCKSTEP_SEED={SEED}", flush=True)
        os.environ["no_proxy"] = "*"
        cls.base = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.base)
        cls.runs = {}

    @classmethod
    def published(cls, quorum):
        """The data directory of a coordinator that knows a whole run of STEPS steps, made once for each quorum."""
        if not cls.runs:
            cls.run_folder = make_run(cls.base, checkpoint_every=6)
        if quorum not in cls.runs:
            folder = os.path.join(cls.base, f"coordinator-{quorum}")
            run = os.path.join(cls.base, f"run-{quorum}")
            shutil.copytree(cls.run_folder, run)
            coordinator = Coordinator(folder)
            coordinator.start()
            try:
                output("train", run, "--json", "--coordinator", coordinator.trainer_address, "--trainer-key",
                       os.path.join(cls.base, "trainer.key"), "--quorum", str(quorum), "--openings", str(OPENINGS),
                       "--stop-at", str(STEPS))  # fmt: skip
            finally:
                coordinator.stop()
            cls.runs[quorum] = folder
        return cls.runs[quorum]

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run(self, result=None):
        began = time.monotonic()
        answer = super().run(result)
        print(f"{self._testMethodName}: {time.monotonic() - began:.1f} s", flush=True)
        return answer

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def serve(self, quorum=1, options=()):
        shutil.copytree(self.published(quorum), self.path("coordinator"))
        coordinator = Coordinator(self.path("coordinator"), options)
        self.addCleanup(coordinator.close)
        coordinator.start()
        coordinator.log_key = os.path.join(self.base, f"run-{quorum}", "publish", "log_key")
        return coordinator

    def worker(self, coordinator, name="worker", options=()):
        worker = Worker(self.path(name), f"operator {name}", coordinator.address, options=options)
        self.addCleanup(worker.close)
        return worker

    def verify(self, coordinator, *options):
        report = verify(coordinator.public_folder, "--log-key", coordinator.log_key, *options)
        self.assertTrue(report["sound"])
        return report["runs"][0]

    def confirmed(self, coordinator):
        return self.verify(coordinator)["states"]["confirmed"] == STEPS

    def wait_until_confirmed(self, coordinator, *workers):
        def reached():
            for worker in workers:
                self.assertTrue(worker.program.running(), worker.program.messages())
            return self.confirmed(coordinator)

        try:
            wait_for("all steps to be confirmed", reached, every_s=0.1)
        except AssertionError:
            print(coordinator.program.messages(), *(worker.program.messages()[-5000:] for worker in workers))
            raise

    def await_status(self, worker, what, condition):
        """The first status for which condition(status) holds."""

        def status():
            self.assertTrue(worker.program.running(), worker.program.messages())
            try:
                found = worker.status()
            except AssertionError:
                return None  # it does not listen yet
            return found if condition(found) else None

        try:
            return wait_for(what, status)
        except AssertionError:
            print(worker.program.messages()[-5000:])
            raise

    # The machine takes it down.

    def test_killed_at_random_moments(self):
        """Workers killed under load: what they signed is in the log, once for each step and key."""
        coordinator = self.serve(quorum=KILLED_WORKERS)
        workers = [self.worker(coordinator, f"worker-{i}", ["--checkpoint-minutes", "0.01"]) for i in range(KILLED_WORKERS)]
        boxes = [Outbox(worker) for worker in workers]
        kills = busy = 0
        longest_s = 0.5  # of life at work; as fast as this machine finishes a step or two
        while kills < KILLS:
            for worker, box in zip(workers, boxes):
                before = len(box.signed)
                log_bytes = len(worker.program.messages()) if worker.program else 0
                worker.start()
                # Most moments are in its work, which begins when it names its lease; some are before that.
                end = time.monotonic() + (2 if before < STEPS and self.random.random() < 0.9 else 0)
                while time.monotonic() < end and len(worker.program.messages()) == log_bytes:
                    time.sleep(0.005)
                time.sleep(self.random.uniform(0, longest_s))  # the moment, not a wait for anything
                worker.kill()
                kills += 1
                box.look(self)
                signed = len(box.signed) > before
                busy += signed
                if before < STEPS:
                    longest_s = max(0.1, longest_s * 0.8) if signed else min(5, longest_s * 1.2)
        self.assertGreater(busy, KILLS // 4, "hardly any kill met a worker at work")
        for worker, box in zip(workers, boxes):
            worker.start()
            self.await_status(worker, "it to answer", lambda status: True)
            wait_for("all steps to be attested", lambda: len(box.receipts()) == STEPS and not box.files("pending"))
            self.assertEqual(worker.stop(), CODE_INTERRUPTED)
            box.check_all_sent(self, STEPS)
            for folder, _, names in os.walk(box.folder):
                self.assertEqual([name for name in names if not name.endswith(".json")], [], folder)
        receipts = [word for box in boxes for path in box.receipts() for word in ("--receipt", path)]
        run = self.verify(coordinator, *receipts)
        self.assertEqual((run["matches"], run["states"]["confirmed"]), (len(workers) * STEPS, STEPS))
        self.assertEqual(coordinator.stop(), 0)
        print(f"{kills} kills, {busy} of them met new work", flush=True)

    # Its folder is copied.

    def test_a_copied_folder_does_not_work(self):
        coordinator = self.serve()
        original = self.worker(coordinator)
        original.start()
        self.await_status(original, "work", lambda status: status["state"] == "working")
        original.command("pause")
        self.await_status(original, "a pause", lambda status: status["state"] == "paused" and "lease" in status)
        # The copy: another place on this machine, its data and its cache, while the original lives.
        copy_folder = self.path("copy")
        shutil.copytree(original.folder, copy_folder, ignore=shutil.ignore_patterns("*.socket"))
        copy = self.worker(coordinator, "copy")

        def outbox_of_copy():
            # A file that the original was just writing is none: the copy removes it.
            receipts = os.listdir(os.path.join(copy.folder, "data", "outbox", "receipts"))
            return Outbox(copy).files("pending"), sorted(name for name in receipts if not name.startswith(".lockstep-"))

        before = outbox_of_copy()
        copy.start()
        status = self.await_status(copy, "advice", lambda status: "advice" in status["coordinators"][0])
        self.assertIn("copied", status["coordinators"][0]["advice"])
        self.assertGreater(status["coordinators"][0]["asked_again_in_ms"], 0)
        self.assertEqual(status["steps_attested"], 0)
        text = copy.command("status")
        self.assertIn("what it means: another process works with this worker's key", text)
        # Another machine, the folder itself (a disk that was moved): likewise.
        copy.stop()
        moved = Worker(copy_folder, "", coordinator.address)
        self.addCleanup(moved.close)
        with open(self.path("machine-id"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef0123456789abcdef\n")
        moved.start(prefix=self.with_file("/etc/machine-id", self.path("machine-id")))
        self.await_status(moved, "advice", lambda status: "advice" in status["coordinators"][0])
        moved.stop()
        original.command("resume")
        self.wait_until_confirmed(coordinator, original)
        self.await_status(original, "an empty outbox", lambda status: status["outbox"]["pending"] == 0)
        original.stop()
        Outbox(original).check_all_sent(self, STEPS)
        self.assertEqual(before, outbox_of_copy())
        self.assertEqual(self.verify(coordinator)["matches"], STEPS)

    def with_file(self, path, content_path):
        """Runs a program that finds another file at `path`."""
        return [*NAMESPACE, "sh", "-c", f'mount --bind {content_path} {path} && exec "$@"', "sh"]

    # Its disk is full.

    def with_small_disk(self, folder, free_kib):
        """Runs a program for which `folder` is a file system with so much space free, beside what lies in it."""
        held = self.path("held")
        script = (
            f'mkdir -p {held} && cp -a {folder}/. {held} && mount -t tmpfs -o size=64m,mode=0700 tmpfs {folder} && cp -a {held}/. {folder} && '
            f'fallocate -l $(( $(df --output=avail -k {folder} | tail -n 1) - {free_kib} ))K {folder}/ballast && exec "$@"'
        )
        return [*NAMESPACE, "sh", "-c", script, "sh"]

    def check_full_disk(self, which, free_kib):
        coordinator = self.serve()
        worker = self.worker(coordinator)
        folder = os.path.join(worker.folder, which)
        os.makedirs(folder, exist_ok=True)
        worker.start(prefix=self.with_small_disk(folder, free_kib))

        def errors(status):
            return [status.get("reason"), status["outbox"].get("last_error"), status["coordinators"][0].get("last_error")]

        full = "No space left on device"
        status = self.await_status(worker, "its owner to be told", lambda status: any(full in (text or "") for text in errors(status)))
        self.assertIn(full, worker.command("status"))
        # Its owner makes room.
        os.remove(f"/proc/{worker.program.process.pid}/root{folder}/ballast")
        worker.command("resume")
        self.wait_until_confirmed(coordinator, worker)
        status = self.await_status(worker, "an empty outbox", lambda status: status["outbox"]["pending"] == 0)
        self.assertEqual(status["outbox"]["refused"], 0)
        self.assertEqual(worker.stop(), CODE_INTERRUPTED)
        self.assertEqual(self.verify(coordinator)["matches"], STEPS)

    def test_a_full_disk_for_its_data(self):
        self.check_full_disk("data", free_kib=60)

    def test_a_full_disk_for_its_cache(self):
        self.check_full_disk("cache", free_kib=300)


    # Its system calls fail.

    def traced(self, options, output_path):
        return ["strace", "-f", "-qq", "-y", "-o", output_path, "-e", f"trace={FILE_CALLS}", *options]

    def outbox_calls(self, trace, folder):
        """[(name, n)]: which calls of each name, as strace counts them for each thread, are on the outbox."""
        numbers, found = {}, []
        with open(trace, encoding="utf-8", errors="replace") as file:
            for line in file:
                if match := re.match(r"(\d+) +(\w+)\(", line):
                    numbers[match[0]] = numbers.get(match[0], 0) + 1
                    if folder in line:
                        found.append((match[2], numbers[match[0]]))
        return sorted(set(found))

    def test_system_calls_of_the_outbox_fail_and_kill(self):
        """The outbox by itself, in a process that notes what it was promised."""
        def process(*words, prefix=()):
            return subprocess.run([*prefix, OUTBOX_PROCESS, *words], capture_output=True, check=False)

        folder, trace = self.path("box"), self.path("trace")
        os.mkdir(folder)
        self.assertEqual(process("--work", folder, "4", prefix=self.traced([], trace)).returncode, 0)
        calls = self.outbox_calls(trace, os.path.join(folder, "outbox"))
        self.assertGreater(len(calls), 40)
        faults = [(*call, fault) for call in calls for fault in ("error=EIO", "error=ENOSPC", "signal=KILL")]
        if not FULL_FAULTS:
            faults = self.random.sample(faults, 60)
        for name, number, fault in faults:
            what = f"{name} {number} {fault}"
            shutil.rmtree(folder)
            os.mkdir(folder)
            done = process("--work", folder, "4", prefix=self.traced(["-e", f"inject={name}:{fault}:when={number}"], trace))
            if fault == "signal=KILL":
                self.assertEqual(done.returncode, -signal.SIGKILL, what)
            elif name == "close":
                # Nothing hangs on it: the data was brought to the disk before.
                self.assertIn(done.returncode, (0, 1), f"{what}: {done.stderr.decode()}")
            else:
                self.assertEqual(done.returncode, 1, f"{what}: {done.stderr.decode()}")
            if os.path.exists(os.path.join(folder, "notes")):
                checked = process("--check", folder)
                self.assertEqual(checked.returncode, 0, f"{what}\n{checked.stdout.decode()}")
            # And it goes on from there.
            self.assertEqual(process("--work", folder, "6").returncode, 0, what)
            self.assertEqual(process("--check", folder).returncode, 0, what)
        print(f"{len(faults)} of {3 * len(calls)} faults", flush=True)

    def test_system_calls_of_the_daemon_on_its_outbox_fail_and_kill(self):
        """The whole daemon: a sample of the same. An attestation that it could not be sure to have written is refused after its lease
        was given back, and nothing else."""
        coordinator = self.serve()
        worker = self.worker(coordinator, options=["--once", "--steps-max", "2"])
        box = Outbox(worker)
        trace = self.path("trace")
        worker.start(prefix=self.traced([], trace))
        self.assertEqual(worker.program.process.wait(60), 0)
        calls = self.outbox_calls(trace, box.folder)
        self.assertGreater(len(calls), 20)
        chosen = [(call, fault) for call in calls for fault in ("error=EIO", "signal=KILL")]
        if not FULL_FAULTS:
            chosen = self.random.sample(chosen, 4)
        for (name, number), fault in chosen:
            if self.confirmed(coordinator):
                break
            worker.start(prefix=self.traced(["-e", f"inject={name}:{fault}:when={number}"], trace))
            self.until_idle(worker)
            box.look(self, refusals=True)
            worker.start()
            self.until_idle(worker)
            box.look(self, refusals=True)
        # What was signed gets there, whatever it was.
        worker.options.remove("--once")
        worker.start()
        self.await_status(worker, "an empty outbox", lambda status: status["outbox"]["pending"] == 0)
        worker.stop()
        box.look(self, refusals=True)
        receipts = {receipt["entry"] for receipt in box.files("receipts")}
        self.assertEqual(set(box.signed.values()) - receipts, set())
        # The rest is another's, who need not wait after that many failures.
        other = self.worker(coordinator, "other")
        other.start()
        self.wait_until_confirmed(coordinator, other)
        other.stop()
        self.assertEqual(self.verify(coordinator)["mismatches"], 0)

    def until_idle(self, worker):
        """Until it has ended, or has nothing to do."""

        def idle():
            if not worker.program.running():
                return True
            try:
                site = worker.status()["coordinators"][0]
            except AssertionError:
                return False  # between beginning and end
            return "no_work" in site or "last_error" in site

        wait_for("a lease to end", idle)
        if worker.program.running():
            worker.stop()

    # Its clock is set.

    def test_clocks_a_day_off(self):
        """The wall clock a day ahead, a day behind, and set by a day while it works: nothing depends on it."""
        [library] = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        coordinator = self.serve(quorum=2)
        workers = []
        for name, first, second in (("ahead", "+1d", "-1d"), ("behind", "-1d", "+1d")):
            worker = self.worker(coordinator, name)
            setting = self.path(f"{name}.time")
            with open(setting, "w", encoding="utf-8") as file:
                file.write(first)
            # Not by `faketime`, which would stand between the test and the program's process.
            worker.start(environment={"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": setting, "FAKETIME_CACHE_DURATION": "1",
                                      "FAKETIME_DONT_FAKE_MONOTONIC": "1"})  # fmt: skip
            workers.append((worker, setting, second))
        for worker, setting, second in workers:
            self.await_status(worker, "steps", lambda status: status["steps_attested"] >= 4)
            with open(setting, "w", encoding="utf-8") as file:
                file.write(second)
        self.wait_until_confirmed(coordinator, *(worker for worker, _, _ in workers))
        for worker, _, _ in workers:
            self.await_status(worker, "an empty outbox", lambda status: status["outbox"]["pending"] == 0)
            worker.stop()
            Outbox(worker).check_all_sent(self, STEPS)

    # Its coordinator goes away.

    def test_a_coordinator_that_goes_away(self):
        """Killed while work is out, away for a while (an hour: daemon_test.cc), and back."""
        coordinator = self.serve()
        worker = self.worker(coordinator)
        worker.start()
        self.await_status(worker, "steps", lambda status: status["steps_attested"] >= 4)
        coordinator.kill()
        time.sleep(self.random.uniform(0, 2))  # the moment, not a wait for anything
        self.assertIn(worker.status()["state"], ("working", "idle", "asking"))
        coordinator.start()
        self.wait_until_confirmed(coordinator, worker)
        self.await_status(worker, "an empty outbox", lambda status: status["outbox"]["pending"] == 0)
        worker.stop()
        Outbox(worker).check_all_sent(self, STEPS)
        self.assertEqual(self.verify(coordinator)["matches"], STEPS)

    # Its owner looks at it.

    def test_what_its_owner_sees(self):
        coordinator = self.serve()
        worker = self.worker(coordinator)
        self.assertIn("no daemon listens at", worker.fails("status", code=CODE_NETWORK))
        self.assertIn("`lockstep-worker run` starts one", worker.fails("pause", code=CODE_NETWORK))
        doctor = worker.command("doctor", *worker.options[:8])
        for line in ("keys                  good", "disk                  good", "coordinator           good", "This machine can work. The daemon does not run."):
            self.assertIn(line, doctor)
        worker.start()
        self.await_status(worker, "work", lambda status: status["state"] == "working")
        self.assertIn("state        paused: asked to\n             `lockstep-worker resume` has it go on", worker.command("pause"))
        # A second one in the same folder is not let in.
        message = worker.fails("run", *worker.options, code=1)
        self.assertIn("another lockstep-worker runs here", message)
        self.assertIn("stop the daemon first", worker.fails("keys", "rotate", code=1))
        self.assertNotIn("paused", worker.command("resume").splitlines()[0])
        self.wait_until_confirmed(coordinator, worker)
        status = self.await_status(worker, "its lease to end", lambda status: status["state"] == "idle" and "lease" not in status)
        self.assertEqual(status["steps_attested"] - status["tests_passed"], STEPS)
        text = worker.command("status")
        self.assertRegex(text, r"coordinator  http://127[.0-9]+:\d+: no work now; asked again in ")
        doctor = json.loads(worker.command("doctor", "--json", *worker.options[:8]))
        self.assertTrue(doctor["can_work"])
        self.assertEqual(doctor["daemon"]["state"], "idle")
        self.assertIn("stopping", worker.command("stop"))
        self.assertEqual(worker.program.process.wait(60), 0)
        self.assertEqual(worker.program.messages().count(" W "), 0, worker.program.messages())
        # Another key, in the place of the old one: it is told, and works.
        before = json.loads(worker.command("keys", "show", "--json"))
        worker.command("keys", "rotate")
        after = json.loads(worker.command("keys", "show", "--json"))
        self.assertNotEqual(before["worker"], after["worker"])
        worker.start()
        self.await_status(worker, "an answer", lambda status: "no_work" in status["coordinators"][0])
        self.assertEqual(worker.status()["worker_key"], after["worker"])
        worker.stop()
        self.assertIn("expected --operator NAME and --revocation-key", worker.fails("keys", "init", "--operator", "x", code=CODE_USAGE))
        self.assertIn("idle_minuts", worker.fails("status", "--config", self.write("bad.toml", "idle_minuts = 1\n"), code=CODE_USAGE))

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def on_terminal(self, worker, environment):
        """What `run --once` writes to a terminal."""
        leader, follower = pty.openpty()
        process = subprocess.Popen([*worker.words, "run", *worker.settings, *worker.options, "--once"], stdin=subprocess.DEVNULL,
                                   stdout=follower, stderr=follower, env={**os.environ, **environment})  # fmt: skip
        os.close(follower)
        text = b""
        try:
            while select.select([leader], [], [], 60)[0]:
                piece = os.read(leader, 65536)
                if not piece:
                    break
                text += piece
        except OSError:
            pass  # the other end is closed
        os.close(leader)
        self.assertEqual(process.wait(60), 0, text)
        return text.decode()

    def test_a_line_of_progress_on_a_terminal_only(self):
        coordinator = self.serve()
        worker = self.worker(coordinator, options=["--steps-max", "2"])
        text = self.on_terminal(worker, {"NO_COLOR": "", "TERM": "xterm"})
        self.assertRegex(text, "\r\033\\[K(starting|asking|idle|steps? [0-9])")
        self.assertTrue(text.endswith("\r\033[K"), repr(text[-200:]))
        self.assertNotIn("\033", self.on_terminal(worker, {"NO_COLOR": "1", "TERM": "xterm"}))

    # Mirrors lie.

    def mirror(self, answer):
        self.published(1)
        mirror = Mirror(os.path.join(self.published(1), "artifacts", "artifact"), answer)
        self.addCleanup(mirror.close)
        return mirror

    def test_mirrors_that_lie(self):
        """The first mirror that is asked lies about each artifact in another way; the second is good."""
        kinds = ["wrong", "short", "long", "half", "gone", "error", "elsewhere", "range", "empty"]
        seen = set()

        def answer(request, digest):
            data = mirror.read(digest) or b""
            kind = kinds[int(digest[:8], 16) % len(kinds)] if re.fullmatch("[0-9a-f]{64}", digest) else "gone"
            seen.add(kind)
            length, body, code, headers = len(data), data, 200, {}
            if kind == "wrong":
                body = bytes(byte ^ 1 for byte in data)
            elif kind == "short":
                body, length = data[: len(data) // 2], len(data) // 2
            elif kind == "long":
                body, length = data + b"x" * 1000, len(data) + 1000
            elif kind == "half":
                body = data[: len(data) // 2]  # and then the connection ends
            elif kind == "gone":
                body, length, code = b"", 0, 404
            elif kind == "error":
                body, length, code = b"", 0, 500
            elif kind == "elsewhere":
                body, length, code, headers = b"", 0, 302, {"Location": good.address + request.path}
            elif kind == "range":
                code, headers = 206, {"Content-Range": f"bytes 7-{len(data) + 6}/{len(data) + 7}"}
            elif kind == "empty":
                body, length = b"", 0
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(length))
            request.end_headers()
            request.wfile.write(body)
            return True

        good = self.mirror(lambda request, digest: False)
        mirror = self.mirror(answer)
        coordinator = self.serve(options=["--artifact-url", mirror.address])
        worker = self.worker(coordinator, options=["--mirrors", good.address + "/"])
        worker.start()
        self.wait_until_confirmed(coordinator, worker)
        worker.stop()
        self.assertGreater(len(seen), 4, seen)
        self.assertTrue(all(path.startswith("/artifact/") for path, _ in good.requests + mirror.requests))
        self.assertEqual(self.verify(coordinator)["mismatches"], 0)

    def test_lies_alone_come_to_nothing(self):
        """Nothing but wrong bytes: no verdict, no attestation, and the owner is told."""
        def answer(request, digest):
            data = bytes(byte ^ 1 for byte in mirror.read(digest) or b"?")
            request.send_response(200)
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)
            return True

        mirror = self.mirror(answer)
        coordinator = self.serve(options=["--artifact-url", mirror.address])
        worker = self.worker(coordinator, options=["--once"])
        worker.start()
        self.assertEqual(worker.program.process.wait(60), CODE_BAD_ARTIFACT, worker.program.messages())
        self.assertIn("wrong bytes: expected digest", worker.program.messages())
        self.assertEqual(Outbox(worker).files("pending") + Outbox(worker).files("receipts"), [])

    def test_a_download_that_was_cut_off_is_gone_on_with(self):
        """Killed while a mirror stalls half way through the largest file: the next life asks for the rest of it."""
        stalled = threading.Event()
        stall = [True]

        def answer(request, digest):
            data = mirror.read(digest)
            if not stall[0] or data is None or len(data) < 100_000 or request.headers.get("Range"):
                return False
            request.send_response(200)
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data[:60_000])
            stalled.set()
            ended.wait()
            return True

        ended = threading.Event()
        self.addCleanup(ended.set)
        mirror = self.mirror(answer)
        coordinator = self.serve(options=["--artifact-url", mirror.address])
        worker = self.worker(coordinator)
        worker.start()
        self.assertTrue(stalled.wait(60), worker.program.messages())
        cache = os.path.join(worker.folder, "cache")

        def halves():
            files = [os.path.join(folder, name) for folder, _, names in os.walk(cache) for name in names if name.endswith(".partial")]
            return [path for path in files if os.path.getsize(path) > 0]

        wait_for("half a file", halves)
        worker.kill()
        stall[0] = False
        before = len(mirror.requests)
        worker.start()
        self.wait_until_confirmed(coordinator, worker)
        worker.stop()
        self.assertTrue(any(re.fullmatch(r"bytes=[1-9]\d*-", spoken or "") for _, spoken in mirror.requests[before:]), mirror.requests)
        self.assertEqual(halves(), [])



if __name__ == "__main__":
    unittest.main()
