#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the units in deploy/ would let their service do to its host, by `systemd-analyze security`: 0 (nothing) to 100. Debian's
package systemd; no running systemd is asked."""

import os
import re
import subprocess
import unittest

DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "deploy")
# A service of the system's can be shut in almost whole; one of a user's session cannot have a user, a file system or a
# device list of its own.
EXPOSURE_MAX = {"lockstep-worker.service": 15, "lockstep-worker.user.service": 65}


class DeployTest(unittest.TestCase):
    def test_exposure(self):
        for name, most in EXPOSURE_MAX.items():
            done = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", f"--threshold={most}", "--no-pager", os.path.join(DEPLOY, name)],
                capture_output=True, check=False, text=True,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, f"{name}: expected {most} at most\n{done.stdout}\n{done.stderr}")
            self.assertRegex(done.stdout, r"exposure level for .*: \d", done.stderr)

    def test_no_setting_is_misspelt(self):
        """Of a key that it does not know, systemd says so and goes on without."""
        for name in EXPOSURE_MAX:
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(DEPLOY, name)],
                                  capture_output=True, check=False, text=True)  # fmt: skip
            text = done.stdout + done.stderr
            self.assertIsNone(re.search(r"Unknown key|Unknown section|Failed to parse|Invalid", text), f"{name}\n{text}")


if __name__ == "__main__":
    unittest.main()
