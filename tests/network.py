# SPDX-License-Identifier: Apache-2.0
"""A network of real programs on loopback, for tests: a coordinator, workers, and a small run to audit. LOCKSTEP_COORDINATOR and
LOCKSTEP_WORKER name the programs (tool.py the `lockstep` tool)."""

import hashlib
import json
import os
import re
import select
import signal
import subprocess
import time

from tool import EMULATOR, ROOT, output, run_tool

ORIGIN = "test.example/log"
COORDINATOR = os.environ.get("LOCKSTEP_COORDINATOR") or os.path.join(
    ROOT, "build", "release", "coordinator", "lockstep-coordinator"
)
WORKER = os.environ.get("LOCKSTEP_WORKER") or os.path.join(ROOT, "build", "release", "worker", "lockstep-worker")
PATIENCE_S = 1200  # how long a test waits for what must come: no measure of speed


def wait_for(what, condition, patience_s=PATIENCE_S, every_s=0.05):
    """The first true answer of condition(). AssertionError names `what` never came."""
    end = time.monotonic() + patience_s
    while not (answer := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience_s} s for {what}")
        time.sleep(every_s)
    return answer


class Program:
    """A process that is ended at the latest by close(); its messages go to a file."""

    def __init__(self, words, log, environment=None, stdout=subprocess.DEVNULL, prefix=()):
        self.log = log
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                [*prefix, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=file, env={**os.environ, **(environment or {})}
            )

    def running(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGTERM, patience_s=60):
        """The exit code; negative: the signal that ended it."""
        if self.running():
            self.process.send_signal(number)
        code = self.process.wait(patience_s)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def kill(self):
        return self.end(signal.SIGKILL)

    def messages(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


def loopback_address(folder):
    """A loopback address for the servers of one folder alone: nobody else takes their ports while they are down."""
    return ".".join(["127", *(str(1 + byte % 254) for byte in hashlib.sha256(folder.encode()).digest()[:3])])


class Coordinator:
    """`lockstep-coordinator serve` over a data directory. start() again after it ended: the same address and ports."""

    def __init__(self, folder, options=(), origin=ORIGIN):
        self.folder = folder
        self.options = list(options)
        self.origin = origin
        self.host = loopback_address(folder)
        self.ports = {"public_port": 0, "trainer_port": 0, "http_port": 0}
        self.program = None

    def start(self, prefix=(), environment=None, must=True):
        """False if it ended before it served. `prefix` runs it: strace, faketime, ..."""
        words = [
            COORDINATOR, "--log-level", "warning", "serve", "--data", self.folder, "--origin", self.origin,
            "--listen", f"{self.host}:{self.ports['public_port']}", "--trainer-listen", f"{self.host}:{self.ports['trainer_port']}",
            "--http-address", self.host, "--http-port", str(self.ports["http_port"]), "--calls-per-second", "100000", "--retry-ms", "200", *self.options,
        ]  # fmt: skip
        self.program = Program(words, self.folder + ".log", environment, subprocess.PIPE, prefix)
        if not select.select([self.program.process.stdout], [], [], PATIENCE_S)[0]:
            raise AssertionError(f"the coordinator does not serve\n{self.program.messages()}")
        line = self.program.process.stdout.readline()
        if not line:
            code = self.program.end()
            if must:
                raise AssertionError(f"the coordinator ended with {code}\n{self.program.messages()}")
            return False
        self.ports = {name: port for name, port in json.loads(line).items() if name in self.ports}
        return True

    @property
    def address(self):
        return f"http://{self.host}:{self.ports['public_port']}"

    @property
    def trainer_address(self):
        return f"http://{self.host}:{self.ports['trainer_port']}"

    @property
    def http_address(self):
        return f"http://{self.host}:{self.ports['http_port']}"

    @property
    def public_folder(self):
        return os.path.join(self.folder, "log", "public")

    def stop(self):
        return self.program.end()

    def kill(self):
        return self.program.kill()

    def close(self):
        if self.program and self.program.running():
            self.program.kill()


class Worker:
    """`lockstep-worker` with folders and keys of its own. The guest's rules are off: a test's machine is busy."""

    def __init__(self, folder, operator, coordinator, isa=None, options=(), program=None, emulator=None):
        self.folder = folder
        self.words = (EMULATOR if emulator is None else list(emulator)) + [program or WORKER]
        self.environment = {"LOCKSTEP_ISA": isa} if isa else {}
        self.settings = [
            "--data-folder", os.path.join(folder, "data"), "--cache-folder", os.path.join(folder, "cache"),
            "--runtime-folder", os.path.join(folder, "run"),
        ]  # fmt: skip
        self.options = [
            "--coordinators", coordinator, "--other-load-max", "1", "--pause-on-activity", "false",
            "--pause-on-battery", "false", "--disk-free-gib", "0", "--threads", "1", *options,
        ]  # fmt: skip
        self.program = None
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(os.path.join(folder, "data", "keys")):
            self.command("keys", "init", "--operator", operator, "--revocation-key", os.path.join(folder, "revocation.key"))
            self.command("keys", "certify", "--hardware", "a test's machine")

    def command(self, *words, code=0):
        """What a command that is no daemon prints."""
        # The settings come last: options of a subcommand belong to its words.
        done = subprocess.run([*self.words, *words, *self.settings], capture_output=True, check=False,
                              env={**os.environ, **self.environment})  # fmt: skip
        if done.returncode != code:
            raise AssertionError(f"{words}: exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr.decode()}")
        return done.stdout.decode()

    def start(self, prefix=(), environment=None):
        words = [*self.words, "--log-level", "info", "run", *self.settings, *self.options]
        self.program = Program(words, self.folder + ".log", {**self.environment, **(environment or {})}, prefix=prefix)

    def status(self):
        return json.loads(self.command("status", "--json"))

    @property
    def receipts_folder(self):
        return os.path.join(self.folder, "data", "outbox", "receipts")

    def stop(self):
        return self.program.end()

    def kill(self):
        return self.program.kill()

    def close(self):
        if self.program and self.program.running():
            self.program.kill()


def verify(source, *options, code=0):
    """What `lockstep verify --json` says of a bundle or a folder of tiles."""
    return json.loads(output("verify", source, "--json", *options, code=code))


def counts(source, log_key):
    """The numbers of steps by state of the first run in the log, as `lockstep verify` finds them; None: not to be read yet."""
    done = run_tool("verify", source, "--json", "--log-key", log_key, code=None)
    runs = json.loads(done.stdout).get("runs") if done.stdout else None
    return runs[0]["states"] if runs else None


def metric(text, name):
    """The sum of a metric's values in Prometheus' text."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))
