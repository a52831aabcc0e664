#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The walk-through of docs/verify.md, typed as it stands there; only the ports are others."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from network import COORDINATOR, PATIENCE_S, WORKER
from tool import PROGRAM, ROOT


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class WalkthroughTest(unittest.TestCase):
    def test_verify(self):
        with open(os.path.join(ROOT, "docs", "verify.md"), encoding="utf-8") as file:
            text = file.read()
        section = text.split("\n## A walk-through\n")[1].split("\n## ")[0]
        blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 3)
        script = "set -e\n" + "echo '----'\n".join(blocks)
        public, trainers, http = free_ports(3)
        for documented, port in (("7440", public), ("7441", trainers), ("7442", http)):
            script = script.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{port}")
        script = script.replace(
            "serve --data", f"serve --listen 127.0.0.1:{public} --trainer-listen 127.0.0.1:{trainers} --http-port {http} --data"
        )
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
        # Where the programs lie is the build's.
        for name, program in (("cli", PROGRAM[0]), ("coordinator", COORDINATOR), ("worker", WORKER)):
            os.makedirs(os.path.join(folder, "build", "release", name))
            os.symlink(os.path.abspath(program), os.path.join(folder, "build", "release", name, os.path.basename(program)))
        with open(os.path.join(folder, "typed"), "w", encoding="utf-8") as file:
            file.write(script)
        # In a session of its own, so that what it starts can be ended with it. -m: %1 is a job.
        log = os.path.join(folder, "printed")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                ["bash", "-m", "typed"], cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True, env={**os.environ, "HOME": folder, "XDG_CONFIG_HOME": os.path.join(folder, "config")},
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
        self.assertEqual(len(parts), len(blocks))
        self.assertIn("confirmed   10 of 10 steps", parts[1])
        self.assertIn("result: the log is sound; no step is disputed", parts[1])
        self.assertIn("provisional 10 of 10 steps", parts[2])
        self.assertIn('registered as "Ada"', parts[2])
        self.assertRegex(parts[3], r"held to [0-9]+ promises that it made before")
        self.assertIn("result: the log is sound", parts[3])
        self.assertIn("match", parts[4])

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


if __name__ == "__main__":
    unittest.main()
