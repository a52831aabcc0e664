#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log checker itself: it takes a good log, with its receipts and earlier heads, and nothing that somebody has changed."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import log_checker
from log_checker import LogError
from tool import EMULATOR

FIXTURE = EMULATOR + [os.environ["LOCKSTEP_LOG_FIXTURE"]]


class LogCheckerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([*FIXTURE, cls.folder], check=True)
        with open(cls.path("facts.json"), encoding="utf-8") as file:
            cls.facts = json.load(file)
        cls.log = log_checker.check_log(cls.path("good"), cls.path("log_key"))

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_a_good_log(self):
        self.assertEqual(self.log.size, self.facts["entries"])
        histories = log_checker.check_runs(self.log)
        self.assertEqual(list(histories), [self.facts["run"]])
        history = histories[self.facts["run"]]
        self.assertEqual([record.step for record in history.records], list(range(self.facts["steps"])))
        self.assertEqual(history.second, [])
        early = log_checker.check_head(self.text("early.checkpoint"), self.log.key)
        log_checker.check_head_in_log(early, self.log)
        receipt = log_checker.check_receipt(self.text("good.receipt"), self.log.key, log=self.log)
        self.assertEqual(receipt.entry, self.log.entries[receipt.index])

    def test_what_the_log_did_not_promise(self):
        key = self.log.key
        # Of a later log, with a mismatch that this one has not.
        hidden = self.text("mismatch.receipt")
        log_checker.check_receipt(hidden, key)
        for receipt in (hidden, self.text("mismatch.proof")):
            with self.assertRaises(LogError):
                log_checker.check_receipt(receipt, key, log=self.log)
        with self.assertRaises(LogError):
            log_checker.check_receipt(self.text("mismatch.proof"), key, entry=self.log.entries[0])
        with self.assertRaises(LogError):
            log_checker.check_log(self.path("good"), self.facts["stranger"])

    def test_a_receipt_with_any_character_changed(self):
        good = self.text("mismatch.proof")
        entry = log_checker.base64_of(json.loads(self.text("mismatch.receipt"))["entry"], "entry")
        log_checker.check_receipt(good, self.log.key, entry=entry)
        generator = random.Random(1)
        for place in sorted(generator.sample(range(len(good)), 60)):
            with self.subTest(place=place), self.assertRaises(LogError):
                changed = good[:place] + chr(ord(good[place]) ^ 1) + good[place + 1 :]
                log_checker.check_receipt(changed, self.log.key, entry=entry)

    def test_a_log_with_any_file_changed_or_missing(self):
        generator = random.Random(2)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.path("good")) for name in names]
        self.assertEqual(len(files), 6)
        for path in files:
            with open(path, "rb") as file:
                good = file.read()
            for place in [0, len(good) - 1, *(generator.randrange(len(good)) for _ in range(4)), None]:
                os.remove(path)
                if place is not None:
                    with open(path, "wb") as file:
                        file.write(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
                with self.subTest(path=path, place=place), self.assertRaises(LogError):
                    log_checker.check_log(self.path("good"), self.log.key)
                with open(path, "wb") as file:
                    file.write(good)

    def test_what_lies_beside_the_tiles(self):
        other = self.path("other")
        shutil.copytree(self.path("good"), other)
        self.addCleanup(shutil.rmtree, other)
        older = os.path.join(other, "tile", "0", "001.p", "3")
        with open(older, "wb") as file:
            file.write(b"".join(self.log.leaves[256:259]))
        log_checker.check_log(other, self.log.key)
        with open(older, "wb") as file:
            file.write(b"".join(self.log.leaves[255:258]))
        with self.assertRaises(LogError):
            log_checker.check_log(other, self.log.key)

    def test_the_tree_is_rfc_6962s(self):
        """Vectors of the Certificate Transparency reference code, as in base/merkle_test.cc."""
        leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
        hashes = [log_checker.leaf_hash(bytes.fromhex(leaf)) for leaf in leaves]
        root = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
        self.assertEqual(log_checker.root_of(hashes).hex(), root)
        self.assertEqual(log_checker.root_of([]).hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        path = [bytes.fromhex(one) for one in ("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                                               "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                                               "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7")]  # fmt: skip
        self.assertEqual(log_checker.root_by_proof(5, 8, hashes[5], path).hex(), root)
        for index, size, proof in ((4, 8, path), (5, 8, path[:2]), (5, 8, path[::-1])):
            try:
                self.assertNotEqual(log_checker.root_by_proof(index, size, hashes[5], proof).hex(), root)
            except LogError:
                pass

    def test_records_out_of_order(self):
        records = [entry.index for entry in log_checker.entries_of(self.log, "record")]
        for order in ([0, 2], [1], [0, 0], [0, 1, 0]):
            entries = self.log.entries[: records[0]] + [self.log.entries[records[n]] for n in order]
            log = log_checker.Log(self.log.key, self.log.head, "", entries, [])
            with self.subTest(order=order), self.assertRaises(LogError):
                log_checker.check_runs(log)


if __name__ == "__main__":
    unittest.main()
