#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/demo does once everything is built: a network of real programs on loopback, two runs on real text, and the bundle.

Each program is started with the command line that a person would type; `commands` in the demo's folder has them all. Programs write
to logs of their own, and end with the demo, however it ends."""

import argparse
import ctypes
import fcntl
import json
import os
import platform
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

SHARED = os.path.join("build", "demo")  # tokenizer and shards, for all demos
LOCKSTEP = os.path.join("build", "release", "cli", "lockstep")
COORDINATOR = os.path.join("build", "release", "coordinator", "lockstep-coordinator")
WORKER = os.path.join("build", "release", "worker", "lockstep-worker")
DISHONEST_TRAINER = os.path.join("build", "release", "tests", "lockstep_dishonest_trainer")
HELD_OUT = os.path.join("build", "corpus", "ci", "held-out")

OPERATORS = ("Ada's lab", "Grace's desk")
TOKENS_PER_STEP = 16 * 256  # windows by tokens of the preset
TAMPERED_STEP, TAMPERED_STEPS = 4, 8
# Name: steps (None: the preset's), steps between checkpoints.
SIZES = {"fast": (16, 8), "usual": (150, 25), "full": (None, 100)}

CODE_MISMATCH, CODE_INTERRUPTED = 3, 130


class DemoError(Exception):
    """What went wrong, for people."""


class Screen:
    """Phases, each with its time at the end, and below them one line of what happens now: rewritten on a terminal, and printed
    every ten seconds elsewhere."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()
        self.begin = time.monotonic()
        self.shown = ""
        self.shown_at = 0.0

    def elapsed(self):
        seconds = int(time.monotonic() - self.begin)
        return f"{seconds // 60}:{seconds % 60:02}"

    def say(self, text=""):
        self.clear()
        print(text, flush=True)

    def phase(self, text):
        self.say(f"\n== {text} ({self.elapsed()})")

    def now(self, text):
        if text == self.shown or (not self.terminal and time.monotonic() < self.shown_at + 10):
            return
        self.shown, self.shown_at = text, time.monotonic()
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r   {text}"[:width] + "\033[K", end="", flush=True)
        else:
            print(f"   {self.elapsed()} {text}", flush=True)

    def clear(self):
        if self.terminal and self.shown:
            print("\r\033[K", end="", flush=True)
        self.shown = ""


def end_with_parent():
    """In a new process: the kernel ends it when the demo is gone, even if that was killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Programs:
    """What the demo runs. In a session of their own, so that Ctrl-C is the demo's, which ends them in order."""

    def __init__(self, screen, folder):
        self.screen = screen
        self.folder = folder
        self.running = []  # [(name, process)], in the order of their start

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def start(self, name, words, environment=None, stdout=None):
        with open(os.path.join(self.folder, "commands"), "a", encoding="utf-8") as file:
            file.write(shlex.join([*(f"{key}={value}" for key, value in (environment or {}).items()), *words]) + "\n")
        with open(self.log(name), "ab") as log:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log, env={**os.environ, **(environment or {})},
                start_new_session=True, preexec_fn=end_with_parent,
            )  # fmt: skip
        self.running.append((name, process))
        return process

    def finished(self, name):
        """Whether a program has done its work. DemoError with what it said if it failed."""
        process = dict(self.running)[name]
        if process.poll() is None:
            return False
        self.running.remove((name, process))
        if process.returncode != 0:
            raise self.failed(name, process.returncode)
        return True

    def failed(self, name, code):
        with open(self.log(name), encoding="utf-8", errors="replace") as file:
            last = "".join(file.readlines()[-5:])
        return DemoError(f"{name} ended with {code}; the end of {self.log(name)}:\n{last}")

    def check(self, name):
        """DemoError if a program that is to stay has ended."""
        process = dict(self.running)[name]
        if process.poll() is not None:
            raise self.failed(name, process.returncode)

    def run(self, name, words, environment=None):
        """One command to its end, with the last line of its log on the screen meanwhile."""
        self.start(name, words, environment)
        while not self.finished(name):
            self.screen.now(self.last_line(name))
            time.sleep(0.2)
        self.screen.clear()

    def last_line(self, name):
        with open(self.log(name), "rb") as file:
            file.seek(max(0, os.path.getsize(self.log(name)) - 400))
            lines = file.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def end(self):
        """Asks all of them to end, the last one first, and waits; what does not end within half a minute is killed."""
        for _, process in reversed(self.running):
            process.terminate()
        for _, process in reversed(self.running):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running = []


def instruction_sets():
    """Of this machine, as LOCKSTEP_ISA names them, the two fastest; `reference`, which is slow, is everywhere."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read().split()
    if platform.machine() != "x86_64":
        return ["neon", "neon"]
    found = [name for name, flag in (("avx512", "avx512_vnni"), ("avx2", "avx2")) if flag in flags]
    return (found * 2 or ["reference"] * 2)[:2]


def free_port(wanted):
    """`wanted`, if nobody has it on 127.0.0.1; otherwise 0, for any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted


class Demo:
    def __init__(self, size, screen, folder):
        self.screen = screen
        self.folder = folder
        self.size = size
        self.programs = Programs(screen, folder)
        self.sets = instruction_sets()
        self.ports = {}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def get(self, path):
        """What the coordinator's JSON API answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http_port']}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)

    def start_coordinator(self):
        words = [
            COORDINATOR, "serve", "--data", self.path("coordinator"), "--origin", "demo.example/lockstep", "--web-root", os.path.join("web", "dist"),
            "--listen", f"127.0.0.1:{free_port(7440)}", "--trainer-listen", f"127.0.0.1:{free_port(7441)}",
            "--http-port", str(free_port(7442)), "--retry-ms", "500",
        ]  # fmt: skip
        process = self.programs.start("coordinator", words, stdout=subprocess.PIPE)
        line = process.stdout.readline()
        if not line:
            raise self.programs.failed("coordinator", process.wait())
        self.ports = json.loads(line)
        self.screen.say(f"   the dashboard: http://127.0.0.1:{self.ports['http_port']}/")

    def make_shards(self):
        self.programs.run("corpus", ["scripts/ci-shards", SHARED], {"LOCKSTEP": LOCKSTEP})

    def start_workers(self):
        for index, (operator, isa) in enumerate(zip(OPERATORS, self.sets)):
            home = self.path(f"worker-{index}")
            folders = [
                "--data-folder", os.path.join(home, "data"), "--cache-folder", os.path.join(home, "cache"), "--runtime-folder", os.path.join(home, "run"),
            ]  # fmt: skip
            if not os.path.exists(os.path.join(home, "data", "keys")):
                os.makedirs(home, exist_ok=True)
                self.programs.run(
                    "keys", [WORKER, "keys", "init", "--operator", operator, "--revocation-key", os.path.join(home, "revocation.key"), *folders]
                )
                self.programs.run("keys", [WORKER, "keys", "certify", "--hardware", f"{platform.machine()}, {isa}", *folders])
            # Guests give way to other work, and here the other work is the training and the other guest.
            words = [
                WORKER, "run", "--coordinator", f"http://127.0.0.1:{self.ports['public_port']}", "--threads", "1", "--other-load-max", "1",
                "--pause-on-activity", "false", "--pause-on-battery", "false", *folders,
            ]  # fmt: skip
            self.programs.start(f"worker-{index}", words, {"LOCKSTEP_ISA": isa})

    def make_run(self, name, title, steps, checkpoint_every):
        """A run folder, if it is not there. Four logical ranks: two replicas of two shards each."""
        if os.path.exists(self.path(name, "run.json")):
            return
        lines = [
            'preset = "tiny"', f'name = "{title}"', f"checkpoint_every = {checkpoint_every}",
            "[corpus]", f'path = "{os.path.abspath(os.path.join(SHARED, "corpus"))}"',
            "[tokenizer]", f'path = "{os.path.abspath(os.path.join(SHARED, "tokenizer"))}"',
            "[topology]", "replicas = 2", "shards = 2", "micro_batch = 2",
        ]  # fmt: skip
        if steps:
            lines += ["[recipe]", "peak_lr = 0.001", f"warmup_tokens = {steps // 5 * TOKENS_PER_STEP}"]  # a short run needs a gentle one
            lines += ["[[batch.phases]]", "windows_per_step = 16", f"until_tokens = {steps * TOKENS_PER_STEP}"]
        config = self.path(name + ".toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.programs.run(name, [LOCKSTEP, "run", "init", config, "--out", self.path(name)])

    def train(self, name, *options):
        """Starts the training of a run that is published as it goes."""
        self.programs.start(
            name,
            [LOCKSTEP, "train", self.path(name), "--coordinator", f"http://127.0.0.1:{self.ports['trainer_port']}", "--trainer-key",
             self.path("trainer.key"), "--quorum", str(len(OPERATORS)), "--backends", str(len(set(self.sets))), "--openings", "2", *options],
        )  # fmt: skip

    def inspect(self, name):
        """What a run's folder says of itself."""
        return json.loads(subprocess.run([LOCKSTEP, "run", "inspect", self.path(name), "--json"], capture_output=True, check=True).stdout)

    def status(self, id):
        """What the coordinator says of a run; None: not registered yet, or no answer now."""
        try:
            return self.get(f"runs/{id}")
        except (urllib.error.URLError, OSError):
            return None

    def watch(self, id, done, what):
        """Shows how far a run is audited until done(its status)."""
        while True:
            self.programs.check("coordinator")
            for index in range(len(OPERATORS)):
                self.programs.check(f"worker-{index}")
            run = self.status(id)
            if run:
                counts = run["counts"]
                planned = run["steps_planned"]
                line = f"{what}: {run['steps']} of {planned} steps published"
                if run["last_step"]:
                    line += f", loss {run['last_step']['loss']:.3f}"
                line += f"; {counts['confirmed']} confirmed, {counts['provisional']} by one operator, {counts['disputed']} disputed"
                self.screen.now(line)
            if done(run):
                self.screen.clear()
                if run:
                    self.screen.say(f"   {line}")
                return
            time.sleep(0.5)

    def audited(self, run):
        return run and run["steps"] == run["steps_planned"] and run["counts"]["confirmed"] + run["counts"]["disputed"] == run["steps"]

    def honest_run(self):
        steps, checkpoint_every = SIZES[self.size]
        self.make_run("run", "demo", steps, checkpoint_every)
        self.id = self.inspect("run")["run"]
        self.train("run", "--held-out", os.path.join(HELD_OUT, "moby-dick.jsonl"), os.path.join(HELD_OUT, "sotu.jsonl"), "--held-out-limit", "8")
        self.watch(self.id, lambda _: self.programs.finished("run"), "training")

    def tampered_run(self):
        """A run like any other, but that in one step the trainer flips a bit of a weight and goes on as if nothing were."""
        self.make_run("tampered", "demo-tampered", TAMPERED_STEPS, TAMPERED_STEP)
        self.tampered_id = self.inspect("tampered")["run"]
        if self.inspect("tampered")["steps"] <= TAMPERED_STEP:
            self.train("tampered", "--stop-at", str(TAMPERED_STEP))
            self.watch(self.tampered_id, lambda _: self.programs.finished("tampered"), "training")
            self.programs.run("tampered", [DISHONEST_TRAINER, self.path("tampered"), "weight"])
        self.train("tampered")
        self.watch(self.tampered_id, lambda _: self.programs.finished("tampered"), "training")

    def caught(self):
        """Says what the auditors found of the tampered step."""
        for dispute in self.get(f"runs/{self.tampered_id}/disputes")["disputes"]:
            difference = dispute.get("first_difference")
            if difference:
                place = f" ({difference['place']})" if difference["place"] else ""
                self.screen.say(
                    f"   caught: step {dispute['step']} parts in \"{difference['field']}\"{place}\n"
                    f"     published  {difference['expected']}\n     computed   {difference['found']}"
                )
                return

    def bundle(self):
        log_key, path = self.path("run", "publish", "log_key"), self.path("run.bundle")
        self.programs.run("bundle", [LOCKSTEP, "bundle", f"http://127.0.0.1:{self.ports['http_port']}", "--log-key", log_key, "--out", path])
        words = [LOCKSTEP, "verify", path, "--log-key", log_key]
        self.screen.say(f"   $ {shlex.join(words)}")
        sys.stdout.flush()
        code = subprocess.run(words, check=False).returncode
        report = json.loads(subprocess.run([*words, "--json"], capture_output=True, check=False).stdout)
        runs = {run["run"]: run for run in report["runs"]}
        honest, tampered = runs[self.id], runs[self.tampered_id]
        disputed = [step["step"] for step in tampered["disputed"]]
        if (code != CODE_MISMATCH or not report["sound"] or honest["states"]["confirmed"] != honest["steps"] or disputed != [TAMPERED_STEP]):
            raise DemoError(f"verify: expected the first run confirmed and step {TAMPERED_STEP} of the second disputed, exit code {CODE_MISMATCH}; "
                            f"found the above, exit code {code}")  # fmt: skip
        self.screen.say(
            f"\n   That is what should come out: every step of the first run is confirmed, and of the second, step {TAMPERED_STEP}, and no other, is\n"
            "   disputed. Try it on any machine with the file and the key: neither this network nor this program is needed."
        )

    def play(self):
        screen = self.screen
        screen.phase("a coordinator")
        self.start_coordinator()
        screen.phase("real text, a tokenizer of 4,096 entries, token shards")
        self.make_shards()
        screen.phase(f"auditors of two operators, on {' and '.join(self.sets)}")
        self.start_workers()
        screen.phase("a run: trained on four logical ranks, and audited while the training goes on")
        self.honest_run()
        screen.phase(f"a second run, with one step tampered with: a bit of a weight, in step {TAMPERED_STEP}")
        self.tampered_run()
        screen.phase("the auditors finish")
        self.watch(self.id, self.audited, "the run")
        self.watch(self.tampered_id, self.audited, "the one tampered with")
        self.caught()
        screen.phase("the public log in one file, verified by itself")
        self.bundle()
        screen.phase("done")

    def stay(self):
        """Leaves the network up until somebody ends it."""
        self.screen.say(f"   the dashboard: http://127.0.0.1:{self.ports['http_port']}/ until Ctrl-C; docs/audit_a_run.md says how to join in")
        try:
            while True:
                self.programs.check("coordinator")
                time.sleep(1)
        except KeyboardInterrupt:
            self.screen.say("\ndemo: ended")


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true", help="16 steps")
    size.add_argument("--full", action="store_true", help="all steps of the preset")
    parser.add_argument("--exit", action="store_true", help="end after the verified bundle")
    parser.add_argument("--clean", action="store_true", help="forget the last such demo first")
    arguments = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
    name = "fast" if arguments.fast else "full" if arguments.full else "usual"
    folder = os.path.join(SHARED, name)
    os.makedirs(SHARED, exist_ok=True)
    lock = open(os.path.join(SHARED, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("demo: another demo is running in this tree; end it first", file=sys.stderr)
        return 1
    if arguments.clean:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    screen = Screen()
    demo = Demo(name, screen, folder)
    try:
        demo.play()
        if not arguments.exit:
            demo.stay()
        return 0
    except KeyboardInterrupt:
        screen.say("\ndemo: ending what it started; what is there is used again by the next one")
        return CODE_INTERRUPTED
    except (DemoError, OSError) as error:  # the latter: a full disk, a coordinator that does not answer
        screen.clear()
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        demo.programs.end()


if __name__ == "__main__":
    sys.exit(main())
