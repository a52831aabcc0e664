#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/verify.md, docs/audit_a_run.md and docs/publish_a_run.md tell people to type (their blocks marked `sh`), typed as it stands
there; only the addresses are others."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from network import COORDINATOR, PATIENCE_S, WORKER, Coordinator
from tool import PROGRAM, ROOT, make_run, output


def blocks(page, heading=None):
    """The commands of a page, or of one of its sections."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        text = file.read()
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def with_free_ports(script):
    """The script, with a coordinator that listens elsewhere than at 7440 to 7442."""
    public, trainers, http = free_ports(3)
    for documented, port in (("7440", public), ("7441", trainers), ("7442", http)):
        script = script.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{port}")
    return script.replace("serve --data", f"serve --listen 127.0.0.1:{public} --trainer-listen 127.0.0.1:{trainers} --http-port {http} --data")


class WalkthroughTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def type(self, commands, change):
        """What each block printed. `change` sets the addresses in the script."""
        script = change("set -e\n" + "echo '----'\n".join(commands))
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(self.folder, "tests"))
        # Where the programs lie is the build's.
        places = []
        for name, program in (("cli", PROGRAM[0]), ("coordinator", COORDINATOR), ("worker", WORKER)):
            places.append(os.path.join(self.folder, "build", "release", name))
            os.makedirs(places[-1])
            os.symlink(os.path.abspath(program), os.path.join(places[-1], os.path.basename(program)))
        with open(os.path.join(self.folder, "typed"), "w", encoding="utf-8") as file:
            file.write(script)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        environment |= {"HOME": self.folder, "PATH": os.pathsep.join([*places, os.environ["PATH"]])}
        # In a session of its own, so that what it starts can be ended with it. -m: %1 is a job.
        log = os.path.join(self.folder, "printed")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                ["bash", "-m", "typed"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True, env=environment,
            )  # fmt: skip
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass
        left = self.end_session(process.pid)
        with open(log, encoding="utf-8") as file:
            printed = file.read()
        self.assertEqual(process.wait(), 0, printed)
        self.assertEqual(left, [], printed)
        parts = printed.split("----\n")
        self.assertEqual(len(parts), len(commands), printed)
        return parts

    def end_session(self, session):
        """Ends all that the script left behind, each by its number."""
        left = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(entry)) == session:
                    left.append(entry)
                    os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left

    def test_verify(self):
        commands = blocks("verify.md", "A walk-through")
        self.assertGreater(len(commands), 3)
        parts = self.type(commands, with_free_ports)
        self.assertIn("confirmed   10 of 10 steps", parts[1])
        self.assertIn("result: the log is sound; no step is disputed", parts[1])
        self.assertIn("provisional 10 of 10 steps", parts[2])
        self.assertIn('registered as "Ada"', parts[2])
        self.assertRegex(parts[3], r"held to [0-9]+ promises that it made before")
        self.assertIn("result: the log is sound", parts[3])
        self.assertIn("match", parts[4])

    def test_publish_a_run(self):
        commands = blocks("publish_a_run.md")
        self.assertGreater(len(commands), 4)
        parts = self.type(commands, with_free_ports)
        self.assertIn("lockstep train", parts[1])  # what `run init` says comes next
        self.assertIn("steps       0 to 9, 10240 tokens", parts[3])
        self.assertTrue(parts[3].startswith("audit.example.com/lockstep+"), parts[3])
        self.assertTrue(os.listdir(os.path.join(self.folder, "mine", "www", "artifact")))

    def test_audit_a_run(self):
        run = make_run(self.folder)
        coordinator = Coordinator(os.path.join(self.folder, "coordinator"))
        self.addCleanup(coordinator.close)
        coordinator.start()
        output("train", run, "--stop-at", "5", "--coordinator", coordinator.trainer_address, "--trainer-key",
               os.path.join(self.folder, "trainer.key"))  # fmt: skip
        with open(os.path.join(run, "publish", "log_key"), encoding="utf-8") as file:
            log_key = file.read().strip()

        def change(script):
            script, keys = re.subn("^log_key=.*$", f"log_key={log_key}", script, flags=re.MULTILINE)
            self.assertEqual(keys, 1)
            script = script.replace("https://audit.example.com:7440", coordinator.address)
            # A test's machine is busy, and may be short of disk.
            script = script.replace("--once", "--once --other-load-max 1 --pause-on-activity false --pause-on-battery false --disk-free-gib 0")
            return script.replace("https://audit.example.com", coordinator.http_address)

        commands = blocks("audit_a_run.md")
        self.assertGreater(len(commands), 4)
        parts = self.type(commands, change)
        self.assertIn("unaudited   5 of 5 steps", parts[0])
        self.assertNotIn("unaudited   5 of 5 steps", parts[-1])
        self.assertRegex(parts[-1], r"held to [0-9]+ promises that it made before")
        self.assertIn("result: the log is sound", parts[-1])


if __name__ == "__main__":
    unittest.main()
