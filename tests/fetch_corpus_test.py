#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/fetch-corpus: what it does about pins, digests, damage and second runs. npm is a stand-in made here;
no network."""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONG = "A sentence that is long enough to count as a document."

# Packs versions found under $NPM_SHELF, says so in $NPM_SHELF/log, and fails for others, as npm does.
NPM = """#!/bin/sh
for target; do :; done
echo "$target" >> "$NPM_SHELF/log"
case "$target" in *@*) ;; *) target="$target@$(cat "$NPM_SHELF/latest")" ;; esac
[ -f "$NPM_SHELF/$target.tgz" ] || { echo "npm error notarget No matching version found for $target." >&2; exit 1; }
cp "$NPM_SHELF/$target.tgz" "$5"
"""


def load(name):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, "scripts"))
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "scripts", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


fetch_corpus = load("fetch-corpus")


class Shelf(unittest.TestCase):
    """A folder for the test, with packages that the stand-in for npm finds."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        with open(os.path.join(programs, "npm"), "w", encoding="utf-8") as file:
            file.write(NPM)
        os.chmod(os.path.join(programs, "npm"), 0o755)
        environment = {"PATH": programs + os.pathsep + os.environ["PATH"], "NPM_SHELF": self.folder}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def publish(self, package, version, files):
        """Puts a version on the shelf; returns what corpora/packages.toml would say of it."""
        path = os.path.join(self.folder, f"{package}@{version}.tgz")
        files = {"package.json": json.dumps({"version": version}), **files}
        with tarfile.open(path, "w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo("package/" + name)
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        with open(os.path.join(self.folder, "latest"), "w", encoding="utf-8") as file:
            file.write(version)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        return {"from": "npm", "package": package, "version": version, "sha256": digest}

    def log(self):
        """What npm was asked for since the last call."""
        path = os.path.join(self.folder, "log")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            lines = file.read().split()
        os.unlink(path)
        return lines


class DownloadsTest(Shelf):
    def setUp(self):
        super().setUp()
        self.kept = os.path.join(self.folder, "downloads")
        self.downloads = fetch_corpus.Downloads(self.kept)

    def archive(self, wanted):
        """(record, whether it was downloaded, warnings)."""
        warnings = io.StringIO()
        with contextlib.redirect_stderr(warnings):
            record, fresh = self.downloads.archive("part", wanted)
        return record, fresh, warnings.getvalue()

    def test_pinned_is_fetched_once(self):
        wanted = self.publish("p", "1.0.0", {"src/a.ts": LONG})
        self.publish("p", "2.0.0", {"src/a.ts": LONG})
        record, fresh, warnings = self.archive(wanted)
        self.assertEqual((record["version"], record["pinned"], fresh, warnings), ("1.0.0", True, True, ""))
        self.assertEqual(record["sha256"], wanted["sha256"])
        again, fresh, _ = self.archive(wanted)
        self.assertEqual((again, fresh, self.log()), (record, False, ["p@1.0.0"]))

    def test_damaged_is_fetched_anew(self):
        wanted = self.publish("p", "1.0.0", {"src/a.ts": LONG})
        record, _, _ = self.archive(wanted)
        with open(self.downloads.path(record), "r+b") as file:
            file.truncate(40)
        self.assertTrue(self.archive(wanted)[1])
        os.unlink(self.downloads.path(record))
        self.assertTrue(self.archive(wanted)[1])
        with open(os.path.join(self.kept, "part.json"), "w", encoding="utf-8") as file:
            file.write('{"file": ')
        self.assertTrue(self.archive(wanted)[1])
        self.assertFalse(self.archive(wanted)[1])

    def test_other_bytes_are_refused(self):
        wanted = self.publish("p", "1.0.0", {"src/a.ts": LONG})
        self.publish("p", "1.0.0", {"src/a.ts": LONG + " Or not."})
        with self.assertRaisesRegex(fetch_corpus.Failure, f"expects {wanted['sha256']}"):
            self.archive(wanted)
        self.assertEqual(os.listdir(self.kept), [])

    def test_lost_pin(self):
        wanted = self.publish("p", "2.0.0", {"src/a.ts": LONG}) | {"version": "1.0.0"}
        record, fresh, warnings = self.archive(wanted)
        self.assertEqual((record["version"], record["pinned"], fresh), ("2.0.0", False, True))
        self.assertIn("WARNING: part: version 1.0.0 could not be had; 2.0.0 stands for it", warnings)
        self.assertEqual(self.log(), ["p@1.0.0", "p"])
        record, fresh, warnings = self.archive(wanted)
        self.assertEqual((fresh, self.log()), (False, []))
        self.assertIn("version 2.0.0 stands for the pinned 1.0.0", warnings)
        # A new pin is tried again.
        self.assertTrue(self.archive(self.publish("p", "3.0.0", {"src/a.ts": LONG}))[1])

    def test_no_version_at_all(self):
        with open(os.path.join(self.folder, "latest"), "w", encoding="utf-8") as file:
            file.write("9.9.9")
        wanted = {"from": "npm", "package": "p", "version": "1.0.0", "sha256": "0" * 64}
        with self.assertRaisesRegex(fetch_corpus.Failure, "part: npm pack p@1.0.0 failed: .*No matching version"):
            self.archive(wanted)
        self.assertEqual(os.listdir(self.kept), [])


class BuildTest(Shelf):
    """A whole run over a package list of our own."""

    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.folder, "root")
        self.out = os.path.join(self.folder, "out")
        os.makedirs(os.path.join(self.root, "corpora"))
        with open(os.path.join(self.root, "corpora", "ci.toml"), "w", encoding="utf-8") as file:
            file.write("# a configuration\n")
        patch = mock.patch.object(fetch_corpus, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def describe(self, roles):
        """A package list of parts {name: role}, each an npm package with two documents, one of them in every package."""
        lines = []
        for name, role in roles.items():
            wanted = self.publish(name, "1.0.0", {"src/a.ts": LONG, "src/b.ts": f"{LONG} From {name}."})
            lines.append(f"[archive.{name}]")
            lines += [f'{key} = "{value}"' for key, value in wanted.items()]
            lines.append(f'[part.{name}]\narchive = "{name}"\nkind = "typescript"\nrole = "{role}"\ntier = "ci"')
            lines.append('licence = "MIT"\ndocuments = 4')
        lines.append("[planned.ci]\nweb = { documents = 3 }")
        with open(os.path.join(self.root, "corpora", "packages.toml"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))

    def build(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            fetch_corpus.build("ci", self.out, os.path.join(self.folder, "downloads"))
        return said.getvalue()

    def texts(self, file):
        with open(os.path.join(self.out, file), encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines]

    def test_sources_held_out_and_report(self):
        self.describe({"one": "web", "two": "web", "three": "held-out"})
        said = self.build()
        self.assertEqual(
            self.texts("web.jsonl"), [LONG + "\n", LONG + " From one.\n", LONG + " From two.\n"]
        )  # the common document once
        self.assertEqual(self.texts("edu.jsonl"), [])
        self.assertEqual(self.texts("held-out/three.jsonl"), [LONG + "\n", LONG + " From three.\n"])
        self.assertRegex(said, r"(?m)^one +2 +0\.00 +4 +-  documents -50 %$")
        self.assertRegex(said, r"(?m)^web +3 +0\.00 +3 +-  as planned$")
        self.assertIn("1 duplicate", said)
        with open(os.path.join(self.out, "corpus.toml"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "# a configuration\n")

    def test_second_run_writes_nothing_anew(self):
        self.describe({"one": "web", "two": "code"})
        self.build()
        path = os.path.join(self.out, "web.jsonl")
        before = os.stat(path).st_ino
        with mock.patch.object(fetch_corpus, "assemble", side_effect=AssertionError):
            self.assertIn("(have it)", self.build())
        self.assertEqual(os.stat(path).st_ino, before)
        os.unlink(path)  # what is missing is made again
        self.build()
        self.assertEqual(self.texts("web.jsonl"), [LONG + "\n", LONG + " From one.\n"])

    def test_changed_list(self):
        self.describe({"one": "web", "two": "web"})
        self.build()
        self.describe({"one": "web", "two": "code"})
        self.build()
        self.assertEqual(self.texts("web.jsonl"), [LONG + "\n", LONG + " From one.\n"])
        self.assertEqual(self.texts("code.jsonl"), [LONG + "\n", LONG + " From two.\n"])

    def test_leftovers_are_swept(self):
        self.describe({"one": "web"})
        os.makedirs(os.path.join(self.out, "parts", ".tmp-folder"))
        with open(os.path.join(self.out, ".tmp-cut"), "w", encoding="utf-8") as file:
            file.write("{")
        self.build()
        found = [name for _, folders, files in os.walk(self.out) for name in folders + files]
        self.assertEqual([name for name in found if name.startswith(".tmp-")], [])

    def ingest(self, program):
        """What lockstep, here a shell script, is called with: its words, or the failure."""
        path = os.path.join(self.folder, "lockstep")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$@" > {self.folder}/words\nmkdir -p "$5" && {program}\n')
        os.chmod(path, 0o755)
        with mock.patch.object(fetch_corpus, "LOCKSTEP", path), contextlib.redirect_stdout(io.StringIO()):
            fetch_corpus.ingest(self.out)
        with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
            return file.read().split()

    def test_ingest(self):
        self.describe({"one": "web"})
        self.build()
        ingested = os.path.join(self.out, "ingested")
        words = self.ingest(f"touch {ingested}/first")
        self.assertEqual(words, ["corpus", "ingest", os.path.join(self.out, "corpus.toml"), "--out", ingested])
        self.ingest("true")  # the same again: the folder stays, for lockstep to find its work there
        self.assertEqual(os.listdir(ingested), ["first"])
        with self.assertRaisesRegex(fetch_corpus.Failure, "ended with status 5"):
            self.ingest("exit 5")
        self.assertEqual(os.listdir(ingested), ["first"])
        with open(os.path.join(self.out, "corpus.toml"), "a", encoding="utf-8") as file:
            file.write("# changed\n")
        self.ingest("true")
        self.assertEqual(os.listdir(ingested), [])  # begun anew
        with mock.patch.object(fetch_corpus, "LOCKSTEP", os.path.join(self.folder, "none")):
            with self.assertRaisesRegex(fetch_corpus.Failure, "not ingested: .*none is not there"):
                fetch_corpus.ingest(self.out)

    def test_two_runs_in_one_folder(self):
        with fetch_corpus.only_one(self.out):
            with self.assertRaisesRegex(fetch_corpus.Failure, "another run is at work"):
                with fetch_corpus.only_one(self.out):
                    self.fail("both runs were let in")


if __name__ == "__main__":
    unittest.main()
