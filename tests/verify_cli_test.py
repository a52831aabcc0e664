#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep verify` and `lockstep bundle` as a user meets them: good logs, logs that somebody has tampered with in every region,
receipts that show what a coordinator hides, trust lists, and a coordinator's tiles over HTTP. No network but loopback."""

import functools
import http.server
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import unittest

from tool import CODE_BAD_ARTIFACT, CODE_FAILURE, CODE_MISMATCH, CODE_USAGE, EMULATOR
from tool import error, output, run_tool

FIXTURE = EMULATOR + [os.environ["LOCKSTEP_LOG_FIXTURE"]]
FLIPS = 12 if EMULATOR else 60


class VerifyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([*FIXTURE, cls.folder], check=True)
        with open(cls.path("facts.json"), encoding="utf-8") as file:
            cls.facts = json.load(file)
        cls.key = ("--log-key", cls.path("log_key"))

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    def report(self, log, *args, code=0):
        return json.loads(output("verify", self.path(log), *args, "--json", code=code))

    def states(self, report):
        return report["runs"][0]["states"]

    # ---- what a log says

    def test_a_good_log(self):
        for log in ("good.bundle", "good"):
            report = self.report(log, *self.key)
            self.assertTrue(report["sound"])
            self.assertTrue(report["log_key_given"])
            self.assertEqual(report["faults"], [])
            self.assertEqual(report["size"], self.facts["entries"])
            run = report["runs"][0]
            self.assertEqual(run["run"], self.facts["run"])
            self.assertEqual(run["steps"], self.facts["steps"])
            self.assertEqual(
                run["states"], {"confirmed": 5, "provisional": 1, "unaudited": self.facts["steps"] - 6, "disputed": 0}
            )
            self.assertEqual(
                [(r["first"], r["last"], r["state"]) for r in run["ranges"]],
                [(0, 4, "confirmed"), (5, 5, "provisional"), (6, self.facts["steps"] - 1, "unaudited")],
            )
            self.assertEqual([(o["key"], o["matches"]) for o in run["operators"]], list(zip(self.facts["operators"], (5, 6))))
        self.assertEqual(self.report("good", *self.key), self.report("good.bundle", *self.key))

    def test_the_text_says_what_it_shows_and_what_not(self):
        text = output("verify", self.path("good.bundle"), *self.key)
        for line in ("confirmed   5 of 300 steps, 1.7 %", "steps: 0..4 confirmed, 5 provisional, 6..299 unaudited",
                     "what it does not show", "result: the log is sound; no step is disputed"):  # fmt: skip
            self.assertIn(line, text)
        self.assertNotIn("what to do", text)
        self.assertIn("No step is confirmed", output("verify", self.path("good.bundle"), *self.key, "--quorum", "3"))
        unnamed = output("verify", self.path("good.bundle"))
        self.assertIn("not whose it is", unnamed)
        self.assertFalse(self.report("good.bundle")["log_key_given"])

    def test_a_disputed_step_is_a_result(self):
        report = self.report("disputed.bundle", *self.key, code=CODE_MISMATCH)
        self.assertTrue(report["sound"])
        (step,) = report["runs"][0]["disputed"]
        self.assertEqual(step["step"], 7)
        self.assertEqual(len(step["others"]), 1)
        self.assertNotEqual(step["others"][0]["record"], step["published"])
        text = run_tool("verify", self.path("disputed.bundle"), *self.key, code=CODE_MISMATCH).stdout.decode()
        self.assertIn("step 7 is disputed", text)
        self.assertIn("`lockstep replay RUN --steps 7`", text)
        self.assertIn(step["others"][0]["record"], text)

    def test_a_second_history_is_a_dispute(self):
        report = self.report("second.bundle", *self.key, code=CODE_MISMATCH)
        self.assertEqual([step["step"] for step in report["runs"][0]["disputed"]], [11])

    # ---- the verifier's own policy

    def test_quorum_and_backends(self):
        self.assertEqual(self.states(self.report("good.bundle", "--quorum", "1"))["confirmed"], 6)
        self.assertEqual(self.states(self.report("good.bundle", "--quorum", "3"))["confirmed"], 0)
        self.assertEqual(self.states(self.report("good.bundle", "--backends", "2"))["confirmed"], 0)
        self.assertEqual(self.states(self.report("good.bundle", "--openings", "2"))["provisional"], 0)
        for bad in (("--quorum", "0"), ("--quorum", "x"), ("--backends", "9"), ("--openings", "-1")):
            run_tool("verify", self.path("good.bundle"), *bad, code=CODE_USAGE)

    def trust(self, text):
        path = self.path("trust")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_trust(self):
        first, second, third = self.facts["operators"]
        both = self.trust(f"# mine\n\n{first} Ada's lab\n{second}\tBert\n{'1' * 64} nobody\n")
        report = self.report("good.bundle", "--trust", both)
        self.assertEqual(self.states(report)["confirmed"], 5)
        self.assertEqual([t["name"] for t in report["trusted"]], ["Ada's lab", "Bert", "nobody"])
        self.assertEqual([t.get("registered_as") for t in report["trusted"]], ["operator 0", "operator 1", None])
        one = self.trust(f"{second} Bert\n")
        self.assertEqual(self.states(self.report("good.bundle", "--trust", one))["confirmed"], 0)
        self.assertEqual(self.states(self.report("good.bundle", "--trust", one, "--quorum", "1"))["confirmed"], 6)
        # Who does not listen to the third operator does not hear of its mismatch; who does, does.
        self.report("disputed.bundle", "--trust", both)
        self.report("disputed.bundle", "--trust", self.trust(f"{third} Cleo\n"), code=CODE_MISMATCH)

    def test_trust_files_that_are_none(self):
        key = self.facts["operators"][0]
        for text, line in (("", "at least one"), ("# only\n", "at least one"), (f"\n{key[:-1]} x\n", "line 2"), (f"{key}\n{key} again\n", "line 2"),
                           (f"{key.upper()} x\n", "line 1"), ("0" * 64 + " low order\n", "line 1"), (f"{key} a\x1b[2Jb\n", "line 1")):  # fmt: skip
            self.assertIn(line, error("verify", self.path("good.bundle"), "--trust", self.trust(text), code=CODE_FAILURE))
        run_tool("verify", self.path("good.bundle"), "--trust", self.path("absent"), code=CODE_FAILURE)

    # ---- what a coordinator may try

    def faults(self, log, *args):
        report = self.report(log, *args, code=CODE_BAD_ARTIFACT)
        self.assertFalse(report["sound"])
        self.assertGreater(len(report["faults"]), 0)
        return [fault["kind"] for fault in report["faults"]]

    def test_receipts_show_a_hidden_mismatch(self):
        # By itself the log that hides it is sound, and says nothing of a dispute.
        self.assertTrue(self.report("hiding.bundle", *self.key)["sound"])
        self.assertIn("receipt", self.faults("hiding.bundle", *self.key, "--receipt", self.path("mismatch.receipt")))
        text = run_tool("verify", self.path("hiding.bundle"), "--receipt", self.path("mismatch.receipt"),
                        code=CODE_BAD_ARTIFACT).stdout.decode()  # fmt: skip
        self.assertIn("FAULT receipt", text)
        self.assertIn("what to do (receipt): ", text)
        self.assertIn("held to 1 promise that it made before", text)
        self.assertIn("rewritten", text)
        self.assertIn("NOT SOUND", text)
        # The honest log holds it.
        self.report("disputed.bundle", *self.key, "--receipt", self.path("mismatch.receipt"), code=CODE_MISMATCH)
        self.report("good.bundle", *self.key, "--receipt", self.path("good.receipt"))

    def test_a_proof_without_its_entry_shows_it_too(self):
        self.assertEqual(self.faults("hiding.bundle", *self.key, "--receipt", self.path("mismatch.proof")), ["known-checkpoint"])
        self.report("disputed.bundle", *self.key, "--receipt", self.path("mismatch.proof"), code=CODE_MISMATCH)

    def test_a_folder_of_receipts(self):
        folder = ("--receipts", self.path("receipts"))
        report = self.report("hiding.bundle", *self.key, *folder, code=CODE_BAD_ARTIFACT)
        self.assertEqual({fault["kind"] for fault in report["faults"]}, {"receipt"})
        self.assertIn(os.path.join("receipts", "7.json"), report["faults"][0]["message"])
        self.assertIn("an attestation, mismatch, of step 7 of run " + self.facts["run"], report["faults"][0]["message"])
        self.assertEqual((report["promises"], report["promises_of_other_logs"]), (2, 1))
        # The honest log keeps all of them.
        report = self.report("disputed.bundle", *self.key, *folder, code=CODE_MISMATCH)
        self.assertTrue(report["sound"])
        self.assertEqual((report["promises"], report["promises_of_other_logs"]), (2, 1))
        # What is in a folder of receipts and is none is no receipt.
        with open(self.path("receipts", "note"), "w", encoding="utf-8") as file:
            file.write("hello")
        self.addCleanup(os.remove, self.path("receipts", "note"))
        self.assertIn("note", error("verify", self.path("good.bundle"), *folder, code=CODE_BAD_ARTIFACT))
        error("verify", self.path("good.bundle"), "--receipts", self.path("absent"), code=CODE_FAILURE)

    def test_an_older_copy_is_no_way_out(self):
        self.assertEqual(set(self.faults("good.bundle", *self.key, "--receipt", self.path("mismatch.receipt"))), {"newer"})

    def test_known_checkpoints(self):
        self.report("good.bundle", *self.key, "--known-checkpoint", self.path("early.checkpoint"))
        self.report("hiding.bundle", *self.key, "--known-checkpoint", self.path("early.checkpoint"))
        self.assertEqual(
            self.faults("hiding.bundle", *self.key, "--known-checkpoint", self.path("early.checkpoint"),
                        "--known-checkpoint", self.path("honest.checkpoint")),
            ["known-checkpoint"],
        )  # fmt: skip

    def test_refused_entries_and_wrong_roots(self):
        self.assertEqual(self.faults("refused.bundle", *self.key), ["refused-entry"])
        self.assertIn("root", self.faults("swapped.bundle", *self.key))

    def test_another_key(self):
        self.assertIn("signature", self.faults("stranger.bundle"))
        self.assertIn("signature", self.faults("good.bundle", "--log-key", self.facts["stranger"]))
        self.report("stranger.bundle", *self.key)  # the key that you give is the one that counts
        run_tool("verify", self.path("good.bundle"), "--log-key", "no key", code=CODE_FAILURE)
        self.assertIn("--log-key", error("verify", self.path("good"), code=CODE_USAGE))

    # ---- damage

    def test_a_bundle_with_any_byte_changed(self):
        with open(self.path("good.bundle"), "rb") as file:
            good = file.read()
        generator = random.Random(1)
        # Magic, zstd header, key and head; the end with its checksum; and anywhere.
        places = [*range(24), *range(len(good) - 8, len(good)), *(generator.randrange(len(good)) for _ in range(FLIPS))]
        damaged = self.path("damaged.bundle")
        for place in places:
            bytes_ = bytearray(good)
            bytes_[place] ^= 1 << generator.randrange(8)
            with open(damaged, "wb") as file:
                file.write(bytes_)
            with self.subTest(place=place):
                done = run_tool("verify", damaged, *self.key, "--json", code=None)
                # zstd's frame header has bits that a decoder does not need: what comes out is the same.
                if done.returncode == 0 and 8 <= place < 14:
                    self.assertEqual(json.loads(done.stdout), self.report("good.bundle", *self.key))
                else:
                    self.assertEqual(done.returncode, CODE_BAD_ARTIFACT)

    def test_a_bundle_that_is_cut_off_or_goes_on(self):
        with open(self.path("good.bundle"), "rb") as file:
            good = file.read()
        damaged = self.path("damaged.bundle")
        generator = random.Random(2)
        for size in [0, 7, 8, 9, len(good) - 1, *(generator.randrange(len(good)) for _ in range(10))]:
            with open(damaged, "wb") as file:
                file.write(good[:size])
            run_tool("verify", damaged, *self.key, code=CODE_BAD_ARTIFACT)
        for more in (b"x", good):
            with open(damaged, "wb") as file:
                file.write(good + more)
            run_tool("verify", damaged, *self.key, code=CODE_BAD_ARTIFACT)

    def test_tiles_with_any_byte_changed_or_a_file_missing(self):
        tiles = self.path("tiles")
        generator = random.Random(3)
        read = ["checkpoint"]
        for folder, _, names in os.walk(self.path("good", "tile")):
            read += [os.path.relpath(os.path.join(folder, name), self.path("good")) for name in names]
        # Two of entries, two of leaf hashes, one above.
        self.assertEqual(len(read), 1 + 2 + 2 + 1)
        for name in read:
            with open(self.path("good", name), "rb") as file:
                good = file.read()
            for place in [0, 1, len(good) - 1, *(generator.randrange(len(good)) for _ in range(FLIPS // 4))]:
                shutil.copytree(self.path("good"), tiles)
                bytes_ = bytearray(good)
                bytes_[place] ^= 1 << generator.randrange(8)
                with open(os.path.join(tiles, name), "wb") as file:
                    file.write(bytes_)
                with self.subTest(name=name, place=place):
                    run_tool("verify", tiles, *self.key, code=CODE_BAD_ARTIFACT)
                shutil.rmtree(tiles)
        for name in read[1:]:
            shutil.copytree(self.path("good"), tiles)
            os.remove(os.path.join(tiles, name))
            run_tool("verify", tiles, *self.key, code=CODE_BAD_ARTIFACT)
            shutil.rmtree(tiles)
        # The entries alone are enough.
        shutil.copytree(self.path("good"), tiles)
        for level in ("0", "1"):
            shutil.rmtree(os.path.join(tiles, "tile", level))
        self.report("tiles", *self.key)
        shutil.rmtree(tiles)

    def test_receipts_and_heads_that_are_none(self):
        with open(self.path("good.receipt"), "rb") as file:
            good = file.read()
        damaged = self.path("damaged.receipt")
        generator = random.Random(4)
        for place in (generator.randrange(len(good)) for _ in range(FLIPS // 2)):
            bytes_ = bytearray(good)
            bytes_[place] ^= 1 << generator.randrange(8)
            with open(damaged, "wb") as file:
                file.write(bytes_)
            with self.subTest(place=place):
                run_tool("verify", self.path("good.bundle"), *self.key, "--receipt", damaged, code=CODE_BAD_ARTIFACT)
        self.assertIn("known-checkpoint", self.faults("good.bundle", *self.key, "--known-checkpoint", self.path("log_key")))

    # ---- bundle

    def test_a_bundle_of_tiles(self):
        made = self.path("made.bundle")
        answer = json.loads(output("bundle", self.path("good"), *self.key, "--out", made, "--json"))
        self.assertEqual(answer["entries"], self.facts["entries"])
        self.assertEqual(self.report("made.bundle"), self.report("good.bundle"))
        above = self.path("above")
        shutil.copytree(self.path("good"), os.path.join(above, "public"))
        self.addCleanup(shutil.rmtree, above)
        output("bundle", above, *self.key, "--out", made)
        self.assertEqual(self.report("above", *self.key), self.report("good.bundle", *self.key))

    def serve(self, folder):
        handler = functools.partial(QuietHandler, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        return f"http://127.0.0.1:{server.server_port}"

    def test_a_bundle_over_http(self):
        made = self.path("fetched.bundle")
        output("bundle", self.serve(self.path("good")) + "/", *self.key, "--out", made)
        with open(made, "rb") as a, open(self.path("good.bundle"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_what_is_not_the_log_makes_no_bundle(self):
        made = self.path("not_made.bundle")
        tiles = self.path("served")
        shutil.copytree(self.path("good"), tiles)
        self.addCleanup(shutil.rmtree, tiles)
        entries = os.path.join(tiles, "tile", "entries", "000")
        with open(entries, "r+b") as file:
            file.seek(1000)
            byte = file.read(1)
            file.seek(1000)
            file.write(bytes([byte[0] ^ 1]))
        for source in (tiles, self.serve(tiles)):
            run_tool("bundle", source, *self.key, "--out", made, code=CODE_BAD_ARTIFACT)
        run_tool("bundle", self.path("good"), "--log-key", self.facts["stranger"], "--out", made, code=CODE_BAD_ARTIFACT)
        self.assertFalse(os.path.exists(made))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".lockstep")], [])


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    unittest.main()
