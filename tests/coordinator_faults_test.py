#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The coordinator's program while what it stands on fails: each system call that changes files in turn, by strace (error, or killed at
it); a disk that is full; a clock that jumps by a day; a database that another process holds. After each: what it says, and that a
start goes on with all that was acknowledged, in a log that a checker of its own (log_checker.py) finds whole.

LOCKSTEP_FULL_FAULTS=1 takes every call that a good run makes, instead of a sample of them (LOCKSTEP_FAULTS_SEED: another one)."""

import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import traceback
import unittest
import urllib.error
import urllib.request

import log_checker
from network import ORIGIN, Coordinator, wait_for

LOAD = os.environ["LOCKSTEP_COORDINATOR_LOAD"]
FULL = os.environ.get("LOCKSTEP_FULL_FAULTS") == "1"
SEED = int(os.environ.get("LOCKSTEP_FAULTS_SEED", "1"))
SAMPLE = 120  # injections of one run of this test
AT_ONCE = 3  # they mostly wait: for batches to fill, and for strace
DAY_S = 86_400
# All that changes files. The second is what glibc makes of the first on other machines.
CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "openat", "ftruncate", "unlink", "unlinkat", "mkdir", "mkdirat")
EFFECTS = ("error=EIO", "error=ENOSPC", "signal=KILL")
ENDED = "nothing could be written any more, and the coordinator has ended"
# In memory where there is such a place: what a real disk does is not what is tried here, and a thousand fsyncs take long.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Service:
    """A coordinator, what it has acknowledged in all its lives, and the load on it."""

    def __init__(self, folder):
        self.folder = folder
        self.coordinator = Coordinator(os.path.join(folder, "data"))
        self.acknowledged = {}
        self.log_key = None
        self.root = ""  # where we see its files
        self.round = 0

    def start(self, environment=None, **options):
        return self.coordinator.start(environment=environment, **options)

    def popen_load(self, iterations=1, offset_s=0, hold=False):
        """The next round, by operators of its own, as a process."""
        ports = self.coordinator.ports
        words = [LOAD, self.coordinator.host, ports["public_port"], ports["trainer_port"], ORIGIN, self.round, iterations, offset_s * 1000]
        self.round += 1
        return subprocess.Popen([*map(str, words), *(["hold"] if hold else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, line):
        """A line of the load's, which may be what was acknowledged."""
        line = json.loads(line)
        self.log_key = line.get("log_key", self.log_key)
        if "index" in line:
            before = self.acknowledged.setdefault(line["index"], line["leaf_hash"])
            if before != line["leaf_hash"]:
                raise AssertionError(f"two entries were given index {line['index']}")
        return line

    def load(self, **options):
        """How the next round ended: its last line."""
        with self.popen_load(**options) as process:
            lines = [self.read(line) for line in process.communicate()[0].splitlines()]
        return lines[-1]

    def load_well(self, **options):
        end = self.load(**options)
        if end != {"end": "done"}:
            raise AssertionError(f"{end}\n{self.messages()}")

    def clock_offset_s(self):
        """How far the coordinator's clock is ahead of ours."""
        with self.popen_load(iterations=-1) as process:
            self.round -= 1
            return json.loads(process.communicate()[0].splitlines()[0])["time_ms"] / 1000 - time.time()

    def stop_well(self):
        code = self.coordinator.stop()
        if code != 0:
            raise AssertionError(f"ended with {code} when asked to\n{self.messages()}")

    def messages(self):
        return self.coordinator.program.messages()

    def last_message(self):
        return self.messages().strip().splitlines()[-1]

    def wait_for_end(self):
        return self.coordinator.program.process.wait(60)

    def check(self):
        """The log on the disk is whole and has what was acknowledged."""
        entries = log_checker.check_log(self.root + self.coordinator.public_folder, self.log_key).entries
        for index, leaf_hash in self.acknowledged.items():
            if index >= len(entries) or log_checker.leaf_hash(entries[index]).hex() != leaf_hash:
                raise AssertionError(f"entry {index} was acknowledged, and is not in the log of {len(entries)}")
        return entries

    def go_on(self, **options):
        """A start after a fault has all that was acknowledged, and goes on."""
        self.start(**options)
        self.load_well()
        self.stop_well()
        return self.check()

    def writer_thread(self):
        tasks = f"/proc/{self.coordinator.program.process.pid}/task"

        def find():
            for task in os.listdir(tasks):
                with contextlib.suppress(FileNotFoundError), open(f"{tasks}/{task}/comm", encoding="ascii") as file:
                    if file.read().strip() == "log-writer":
                        return task
            return None

        return wait_for("the thread log-writer, which names itself", find)

    def close(self):
        self.coordinator.close()


@contextlib.contextmanager
def attached(task, log, inject=None):
    """strace on one thread, counting its calls from now on."""
    words = ["strace", "-p", task, "-y", "-o", log, "-e", "trace=" + ",".join(CALLS), *(["-e", inject] if inject else [])]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as strace:
        line = strace.stderr.readline()
        if "attached" not in line:
            raise AssertionError(f"strace cannot attach, which this test needs: {line}")
        try:
            yield
        finally:
            if strace.poll() is None:
                strace.send_signal(signal.SIGINT)
            strace.communicate()


class Injection(collections.namedtuple("Injection", "family call number effect")):
    """At the number-th `call` of the writer's thread (family "write"), or of the main thread of a first start ("first") or of a start
    that has something to recover ("again")."""

    def option(self):
        return f"inject={self.call}:{self.effect}:when={self.number}"


class FaultsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=MEMORY)
        self.addCleanup(shutil.rmtree, self.folder)
        self.names = iter(range(10**6))
        self.lock = threading.Lock()

    def service(self, folder=None):
        with self.lock:
            folder = folder or os.path.join(self.folder, str(next(self.names)))
        os.makedirs(folder, exist_ok=True)
        service = Service(folder)
        self.addCleanup(service.close)
        return service

    # ---- system calls, one after the other

    def traced_start(self, service, inject=None):
        """Whether it serves; the main thread's calls are in the folder's "trace" and perhaps one of them fails. The program, and not
        strace, is our child (-D)."""
        words = ["strace", "-D", "-q", "-y", "-o", os.path.join(service.folder, "trace"), "-e", "trace=" + ",".join(CALLS)]
        return service.start(prefix=[*words, *(["-e", inject] if inject else [])], must=False)

    def recorded(self, service):
        """Of each call in the trace, at which of its numbers it was on the data folder."""
        counts, places = collections.Counter(), collections.defaultdict(list)
        with open(os.path.join(service.folder, "trace"), encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.match(r"(\w+)\(", line)
                if match:
                    counts[match[1]] += 1
                    if service.coordinator.folder in line:
                        places[match[1]].append(counts[match[1]])
        return places

    def with_something_to_recover(self):
        """A data folder that was killed between the store's commit and the log's."""
        service = self.service()
        service.start()
        service.load_well()
        with attached(service.writer_thread(), os.path.join(service.folder, "trace"), "inject=rename:signal=KILL:when=2"):
            self.assertEqual(service.load()["end"], "unanswered")
            service.wait_for_end()
        return service

    def injections(self):
        """Those of a good run."""
        places = {}
        service = self.service()
        self.assertTrue(self.traced_start(service))
        places["first"] = self.recorded(service)
        with attached(service.writer_thread(), os.path.join(service.folder, "trace")):
            service.load_well()
        places["write"] = self.recorded(service)
        service.stop_well()
        service.check()
        service = self.with_something_to_recover()
        self.assertTrue(self.traced_start(service))
        places["again"] = self.recorded(service)
        service.stop_well()
        service.check()
        for family, call in (("write", "pwrite64"), ("write", "fdatasync"), ("write", "rename"), ("first", "fsync"), ("again", "unlink")):
            self.assertIn(call, places[family], "the recorded run")
        return [
            Injection(family, call, number, effect)
            for family, calls in places.items()
            for call, numbers in calls.items()
            for number in numbers
            for effect in EFFECTS
        ]

    def chosen(self, injections):
        """All, or a sample with something of each family, call and effect."""
        if FULL:
            return injections
        generator = random.Random(SEED)
        groups = collections.defaultdict(list)
        for injection in injections:
            groups[injection.family, injection.call, injection.effect].append(injection)
        for group in groups.values():
            generator.shuffle(group)
        queues, chosen = list(groups.values()), []
        generator.shuffle(queues)
        # What commits has the most of it.
        queues.sort(key=lambda queue: queue[0].family != "write")
        while len(chosen) < SAMPLE and queues:
            chosen += [queue.pop() for queue in queues][: SAMPLE - len(chosen)]
            queues = [queue for queue in queues if queue]
        return chosen

    def check_injection(self, injection):
        """Whether it came to pass: which batches come together varies a little from run to run."""
        killed = injection.effect == "signal=KILL"
        service = self.with_something_to_recover() if injection.family == "again" else self.service()
        trace = os.path.join(service.folder, "trace")
        if injection.family == "write":
            service.start()
            with attached(service.writer_thread(), trace, injection.option()):
                end = service.load()
                serves = service.coordinator.program.running() and end == {"end": "done"}
                if serves:
                    service.stop_well()
                else:
                    code = service.wait_for_end()
        else:
            serves = self.traced_start(service, injection.option())
            if serves:
                end = service.load()
                code = service.coordinator.stop()
                serves = end == {"end": "done"} and code == 0
            else:
                end, code = None, service.coordinator.program.process.returncode
        with open(trace, encoding="utf-8", errors="replace") as file:
            text = file.read()
        happened = "killed by SIGKILL" in text if killed else "(INJECTED)" in text
        if not serves:
            self.assertTrue(happened, f"it failed of itself: {end}, {code}\n{service.messages()}")
            if killed:
                self.assertEqual(code, -signal.SIGKILL)
            else:
                # It says what happened, and why.
                self.assertEqual(code, 1, service.messages())
                last = service.last_message()
                self.assertRegex(last, "lockstep-coordinator: .*(Input/output error|No space left|disk I/O error|is full|unable to open|SQLite code)")
                if injection.family == "write":
                    self.assertIn(ENDED, last)
                    self.assertEqual(end["reason"], "UNAVAILABLE", end)
        service.go_on()
        shutil.rmtree(service.folder)
        return happened

    def test_every_file_call_of_the_commit_path_fails_in_turn(self):
        chosen = self.chosen(self.injections())

        failures = []

        def attempt(injection):
            try:
                return self.check_injection(injection)
            except Exception:
                failures.append(f"{injection}, seed {SEED}\n{traceback.format_exc()}")
                return False

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            happened = list(pool.map(attempt, chosen))
        print(f"{sum(happened)} of {len(chosen)} injections came to pass")
        self.assertFalse(failures, f"{len(failures)} failures:\n" + "\n".join(failures[:5]))
        self.assertGreater(sum(happened), 0.85 * len(chosen))

    # ---- the disk

    def mounted(self, path, mebibytes):
        """A disk of its own on a folder, in a mount namespace that a sleeping process keeps: the words that run a program there, and
        where we see its files."""
        os.mkdir(path)
        holder = subprocess.Popen(
            ["unshare", "-Urm", "sh", "-c", f"mount -t tmpfs -o size={mebibytes}m none {path} && echo mounted && exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(holder.communicate)
        self.assertEqual(holder.stdout.readline(), "mounted\n", "this test needs a mount namespace (unshare -Urm)")
        enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", str(holder.pid)]
        return enter, f"/proc/{holder.pid}/root"

    def test_a_full_disk(self):
        disk = os.path.join(self.folder, "disk")
        enter, root = self.mounted(disk, 6)
        service = self.service(disk)  # its messages lie on the disk below
        service.root = root
        service.start(prefix=enter)
        end = service.load(iterations=1000)
        self.assertEqual((end["end"], end["reason"]), ("unanswered", "UNAVAILABLE"))
        self.assertEqual(service.wait_for_end(), 1)
        full = "No space left on device|database or disk is full"
        self.assertRegex(service.last_message(), f"{ENDED}.*({full})")
        self.assertGreater(len(service.acknowledged), 50)
        # Without space a start says so, and changes nothing; or it manages.
        if service.start(prefix=enter, must=False):
            service.coordinator.stop()
        else:
            self.assertRegex(service.last_message(), full)
        subprocess.run([*enter, "mount", "-o", "remount,size=64m", disk], check=True)
        before = len(service.acknowledged)
        service.go_on(prefix=enter)
        self.assertGreater(len(service.acknowledged), before)

    def test_it_ends_when_it_cannot_write(self):
        service = self.service()
        service.start()
        service.load_well()
        stages = os.path.join(service.coordinator.folder, "log", "stage")
        os.rename(stages, stages + ".gone")
        end = service.load()
        self.assertEqual((end["end"], end["reason"]), ("unanswered", "UNAVAILABLE"))
        self.assertIn("not available now", end["message"])  # what is broken here is nobody else's business
        self.assertEqual(service.wait_for_end(), 1)
        self.assertIn(ENDED, service.last_message())
        self.assertIn("No such file or directory", service.last_message())
        service.go_on()

    # ---- the clock

    def test_a_clock_that_jumps_by_a_day(self):
        libraries = [f"/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1" for machine in ("x86_64", "aarch64")]
        library = next(path for path in libraries if os.path.exists(path))
        offset = os.path.join(self.folder, "offset")

        def set_clock(seconds, service=None):
            with open(offset + ".new", "w", encoding="ascii") as file:
                file.write(f"{seconds:+d}s\n")
            os.rename(offset + ".new", offset)
            if service:  # Abseil counts cycles for up to four seconds before it looks at the clock again
                wait_for("the new time", lambda: abs(service.clock_offset_s() - seconds) < 60)

        environment = {
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": offset, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
        for day in (DAY_S, -DAY_S):
            with self.subTest(day=day):
                service = self.service()
                set_clock(0)
                service.start(environment=environment)
                service.load_well()
                with service.popen_load(hold=True) as process:
                    while "lease" not in service.read(process.stdout.readline()):
                        pass
                    # While a lease is out, the server's clock jumps. The worker follows, as server_time_ms tells it to; its lease,
                    # which lives by service time, has not ended, and neither have the answers by request id.
                    set_clock(day, service)
                    process.stdin.write(f"{day * 1000}\n")
                    process.stdin.flush()
                    lines = [service.read(line) for line in process.stdout]
                self.assertEqual(lines[-1], {"end": "done"})
                # Who does not follow is told so, and nothing happens.
                end = service.load()
                self.assertEqual((end["end"], end["reason"]), ("refused", "CLOCK_SKEW"))
                service.load_well(offset_s=day)
                # And back.
                set_clock(0, service)
                service.load_well()
                service.stop_well()
                service.check()
                # A start with the other clock.
                set_clock(-day)
                service.start(environment=environment)
                service.load_well(offset_s=-day)
                service.stop_well()
                service.check()

    # ---- the databases

    def test_a_database_that_another_process_holds(self):
        service = self.service()
        service.start()
        service.load_well()

        def hold(*path):
            database = sqlite3.connect(os.path.join(service.coordinator.folder, *path), isolation_level=None)
            database.execute("BEGIN IMMEDIATE")
            return database

        # Requests are refused after five seconds, to be tried again, and no more.
        database = hold("store.sqlite")
        end = service.load()
        self.assertEqual((end["end"], end["reason"]), ("unanswered", "UNAVAILABLE"))
        self.assertTrue(service.coordinator.program.running())
        with urllib.request.urlopen(service.coordinator.http_address + "/healthz") as answer:
            self.assertEqual(answer.read(), b"ok\n")
        database.execute("ROLLBACK")
        database.close()
        service.load_well()
        # A reader holds nobody up.
        database = sqlite3.connect(os.path.join(service.coordinator.folder, "store.sqlite"), isolation_level=None)
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM entries").fetchone()
        service.load_well()
        database.close()
        # Nobody may hold the log's database: the entries are in the store already, and the start after it brings them to the log.
        database = hold("log", "checkpoint.sqlite")
        end = service.load()
        self.assertEqual((end["end"], end["reason"]), ("unanswered", "UNAVAILABLE"))
        self.assertEqual(service.wait_for_end(), 1)
        self.assertRegex(service.last_message(), f"{ENDED}.*locked")
        database.execute("ROLLBACK")
        database.close()
        service.go_on()

    def test_metrics_and_health_as_promtool_and_probes_read_them(self):
        service = self.service()
        service.start()
        service.load_well()
        self.assertEqual(service.load(offset_s=DAY_S)["reason"], "CLOCK_SKEW")  # reasons are labels
        with urllib.request.urlopen(service.coordinator.http_address + "/healthz") as answer:
            self.assertEqual(answer.status, 200)
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(service.coordinator.http_address + "/nothing")
        with urllib.request.urlopen(service.coordinator.http_address + "/metrics") as answer:
            metrics = answer.read()
        done = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))
        text = metrics.decode()
        for name in ("lockstep_rpc_calls_total", "lockstep_log_entries", "lockstep_http_requests_total"):
            self.assertIn(f"\n# TYPE {name} ", text)
        self.assertIn('reason="CLOCK_SKEW"', text)
        service.stop_well()


if __name__ == "__main__":
    unittest.main()
