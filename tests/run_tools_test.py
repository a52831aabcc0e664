#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people look at of a run: metrics.jsonl, TensorBoard events (walked here byte by byte), `run diff`, `run plot` (read with
an XML parser) and `doctor`. The golden preset on the built-in sample. No network."""

import glob
import json
import math
import os
import shutil
import struct
import tempfile
import unittest
import xml.etree.ElementTree

from tool import CODE_BAD_ARTIFACT, CODE_FAILURE, CODE_MISMATCH, CODE_USAGE, EMULATOR, RECORD_BYTES
from tool import error, make_corpus, output, run_tool

STEPS = 4 if EMULATOR else 24
NORMS_EVERY = 20
SVG = "{http://www.w3.org/2000/svg}"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records_of(data):
    """The contents of a TFRecord file, their checksums held."""
    at = 0
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert length_crc == masked(crc32c(data[at : at + 8])), at
        content = data[at + 12 : at + 12 + length]
        (content_crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert content_crc == masked(crc32c(content)), at
        yield content
        at += 16 + length
    assert at == len(data)


def fields_of(message):
    """Fields of a protocol-buffer message by number; each at most once here."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        assert number not in fields, number
        if kind == 0:
            fields[number] = varint()
        elif kind == 1:
            (fields[number],) = struct.unpack_from("<d", message, at)
            at += 8
        elif kind == 2:
            length = varint()
            fields[number] = message[at : at + length]
            assert len(fields[number]) == length
            at += length
        elif kind == 5:
            (fields[number],) = struct.unpack_from("<f", message, at)
            at += 4
        else:
            raise AssertionError(f"wire type {kind}")
    return fields


class RunToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        make_corpus(cls.folder)
        cls.a = cls.new_run("a", "")
        # Another learning rate: the first step's gradient is the same, its update is not.
        cls.b = cls.new_run("b", "[recipe]\npeak_lr = 0.001\n")
        # Another interval of checkpoints: no step computes anything else.
        cls.c = cls.new_run("c", "checkpoint_every = 7\n", top=True)
        cls.empty = cls.path("empty")
        run_tool("run", "init", cls.path("a.toml"), "--out", cls.empty)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def new_run(cls, name, extra, top=False):
        with open(cls.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(
                f'preset = "golden"\nname = "test"\n{extra if top else ""}'
                f'[corpus]\npath = "corpus"\n[tokenizer]\npath = "tokenizer"\n{"" if top else extra}'
            )
        run_tool("run", "init", cls.path(name + ".toml"), "--out", cls.path(name))
        run_tool("train", cls.path(name), "--stop-at", str(STEPS), "--json")
        return cls.path(name)

    def lines(self, run):
        with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    # ---- metrics

    def test_metrics_have_the_documented_fields(self):
        lines = self.lines(self.a)
        self.assertEqual([line["step"] for line in lines], list(range(STEPS)))
        always = {
            "step", "tokens", "loss", "z_loss", "gradient_norm", "learning_rate", "outcome", "chain", "seconds",
            "hash_seconds", "tokens_per_second", "wall_seconds",
        }  # fmt: skip
        for line in lines:
            self.assertEqual(set(line) - {"tensors"}, always)
            self.assertEqual("tensors" in line, line["step"] % NORMS_EVERY == 0)
            self.assertEqual(line["tokens"], 1024 * (line["step"] + 1))
            self.assertLessEqual(line["hash_seconds"], line["seconds"])
        report = json.loads(output("run", "inspect", self.a, "--json"))
        self.assertEqual(lines[-1]["chain"], report["chain"])
        for line in lines:
            if "tensors" not in line:
                continue
            # The norm of all is that of the tensors'.
            squares = sum(tensor["gradient_norm"] ** 2 for tensor in line["tensors"].values())
            self.assertAlmostEqual(math.sqrt(squares) / line["gradient_norm"], 1, places=4)
            self.assertEqual(len(line["tensors"]), 4 + 6 * 6)
            for tensor in line["tensors"].values():
                self.assertGreater(tensor["weight_norm"], 0)
                self.assertEqual("update_rate" in tensor, line["step"] > 0)

    def test_a_repeated_step_says_so(self):
        run = self.path("repeated")
        shutil.copytree(self.a, run)
        shutil.rmtree(os.path.join(run, "checkpoints", f"{STEPS:08}"))
        output("train", run, "--stop-at", str(STEPS), "--json")
        lines = self.lines(run)
        again = lines[STEPS:]
        self.assertGreater(len(again), 0)
        for line in again:
            self.assertTrue(line["repeated"])
            self.assertEqual(line["chain"], lines[line["step"]]["chain"])
        self.assertEqual(len(glob.glob(os.path.join(run, "events.out.tfevents.*"))), 2)

    def test_events_say_what_metrics_say(self):
        (path,) = glob.glob(os.path.join(self.a, "events.out.tfevents.*"))
        with open(path, "rb") as file:
            events = [fields_of(record) for record in records_of(file.read())]
        self.assertEqual(events[0][3], b"brain.Event:2")
        self.assertNotIn(5, events[0])
        scalars = {}
        for event in events[1:]:
            self.assertEqual(set(event), {1, 2, 5})
            self.assertGreater(event[1], 1.6e9)
            value = fields_of(fields_of(event[5])[1])
            self.assertEqual(set(value), {1, 2})
            scalars[(value[1].decode(), event[2])] = value[2]
        lines = self.lines(self.a)
        expected = 5 * len(lines)
        for line in lines:
            for tag in ("loss", "z_loss", "gradient_norm", "learning_rate"):
                self.assertEqual(scalars[("train/" + tag, line["step"])], struct.unpack("<f", struct.pack("<f", line[tag]))[0])
            self.assertIn(("speed/tokens_per_second", line["step"]), scalars)
            for name, tensor in line.get("tensors", {}).items():
                for tag, value in tensor.items():
                    expected += 1
                    self.assertAlmostEqual(scalars[(f"{tag}/{name}", line["step"])], value, delta=abs(value) * 1e-6)
        self.assertEqual(len(scalars), expected)

    # ---- diff

    def test_diff_of_a_run_with_itself(self):
        report = json.loads(output("run", "diff", self.a, self.a, "--json"))
        self.assertEqual(report["manifest"], [])
        self.assertEqual(report["common"], {"first": 0, "steps": STEPS})
        self.assertIsNone(report["chain_parts"])
        self.assertIsNone(report["computation_parts"])
        self.assertEqual(report["loss_difference"]["most"], 0)
        self.assertIn("all records agree", output("run", "diff", self.a, self.a))

    def test_diff_finds_the_field_and_the_step(self):
        report = json.loads(output("run", "diff", self.a, self.b, "--json", code=CODE_MISMATCH))
        self.assertEqual(report["manifest"], [{"path": "/recipe/peak_lr", "a": 0.003, "b": 0.001}])
        # Runs with different manifests have different chains from the start.
        self.assertEqual((report["chain_parts"]["step"], report["chain_parts"]["field"]), (0, "previous_chain"))
        self.assertEqual((report["computation_parts"]["step"], report["computation_parts"]["field"]), (0, "learning_rate"))
        self.assertEqual([report[x]["steps"] for x in "ab"], [STEPS, STEPS])
        self.assertEqual(report["losses"][0]["a"], report["losses"][0]["b"])
        self.assertEqual(report["losses"][-1]["step"], STEPS - 1)
        self.assertNotEqual(report["loss_difference"]["last"], 0)
        text = output("run", "diff", self.a, self.b, code=CODE_MISMATCH)
        for part in ("/recipe/peak_lr", "the chain parts at step 0", "the computation parts at step 0: learning_rate", "loss b"):
            self.assertIn(part, text)

    def test_diff_tells_the_chain_from_the_computation(self):
        report = json.loads(output("run", "diff", self.a, self.c, "--json", code=CODE_MISMATCH))
        self.assertEqual([field["path"] for field in report["manifest"]], ["/checkpoint_every"])
        self.assertEqual(report["chain_parts"]["field"], "previous_chain")
        self.assertIsNone(report["computation_parts"])
        self.assertIn("apart from the chain every record agrees", output("run", "diff", self.a, self.c, code=CODE_MISMATCH))

    def test_diff_of_what_has_no_common_step(self):
        report = json.loads(output("run", "diff", self.a, self.empty, "--json"))
        self.assertIsNone(report["common"])
        self.assertEqual(report["losses"], [])
        self.assertIn("none in common", output("run", "diff", self.a, self.empty))

    def test_diff_of_a_shorter_run(self):
        run = self.path("short")
        shutil.copytree(self.a, run)
        # With half a record at its end, as a run at work may have.
        os.truncate(os.path.join(run, "steps.log"), 2 * RECORD_BYTES + 100)
        report = json.loads(output("run", "diff", self.a, run, "--json"))
        self.assertEqual(report["common"], {"first": 0, "steps": 2})

    def test_diff_errors(self):
        self.assertIn("is no run", error("run", "diff", self.a, self.path("stores"), code=CODE_FAILURE))
        run = self.path("broken")
        shutil.copytree(self.a, run)
        with open(os.path.join(run, "steps.log"), "r+b") as file:
            file.seek(RECORD_BYTES + 40)
            file.write(b"\0\1\2\3")
        self.assertIn("steps.log", error("run", "diff", self.a, run, code=CODE_BAD_ARTIFACT))

    # ---- plot

    def test_plot_is_well_formed_and_has_every_run(self):
        out = self.path("runs.svg")
        hostile = self.path("a & <b>\"'")
        os.symlink(self.a, hostile)
        output("run", "plot", self.a, self.b, hostile, self.empty, "--out", out)
        root = xml.etree.ElementTree.parse(out).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual(len(root.findall(SVG + "polyline")), 3 * 3)
        texts = [element.text for element in root.iter(SVG + "text")]
        for part in ("training loss, nats a token", "gradient norm, before the clip", "learning rate", "consumed tokens"):
            self.assertIn(part, texts)
        for run in (self.a, self.b, hostile):
            self.assertTrue(any(text.startswith(f"{run}: {STEPS} steps") for text in texts), run)
        self.assertTrue(any(text == f"{self.empty}: no step yet" for text in texts))
        for polyline in root.findall(SVG + "polyline"):
            points = [tuple(map(float, point.split(","))) for point in polyline.get("points").split()]
            self.assertEqual(len(points), STEPS)
            self.assertEqual(points, sorted(points, key=lambda point: point[0]))
            for x, y in points:
                self.assertTrue(0 <= x <= float(root.get("width")) and 0 <= y <= float(root.get("height")))
        # Nothing is fetched and nothing runs.
        with open(out, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("href", text)
        self.assertNotIn("<script", text)

    def test_plot_marks_the_steps_whose_update_was_skipped(self):
        out = self.path("skips.svg")
        output("run", "plot", self.a, "--out", out)
        root = xml.etree.ElementTree.parse(out).getroot()
        skipped = [line["step"] for line in self.lines(self.a) if line["outcome"] != "updated"]
        marks = [path.find(SVG + "title").text for path in root.findall(SVG + "path")]
        self.assertEqual([int(mark.split()[1].rstrip(":")) for mark in marks if mark], skipped)

    def test_plot_errors(self):
        self.assertIn("no step is recorded", error("run", "plot", self.empty, "--out", self.path("x.svg"), code=CODE_FAILURE))
        self.assertIn("nowhere", error("run", "plot", self.a, "--out", self.path("nowhere/x.svg"), code=CODE_FAILURE))
        self.assertFalse(os.path.exists(self.path("x.svg")))

    # ---- doctor

    def test_doctor_of_a_run_that_can_be_replayed(self):
        report = json.loads(output("doctor", self.a, "--json", "--memory", "1"))
        self.assertTrue(report["can_replay"])
        self.assertEqual([finding["what"] for finding in report["findings"]],
                         ["processor", "memory", "disk", "data", "start", "time"])  # fmt: skip
        self.assertEqual({finding["health"] for finding in report["findings"]}, {"good"})
        self.assertGreater(report["step"]["seconds"], 0)
        self.assertEqual(report["plan"]["disk_bytes"], 0)
        text = output("doctor", self.a, "--memory", "1")
        self.assertIn("This machine can replay a step of the run.", text)

    def test_doctor_names_what_keeps_it(self):
        run = self.path("moved")
        shutil.copytree(self.a, run)
        with open(os.path.join(run, "places.json"), encoding="utf-8") as file:
            places = json.load(file)
        places["corpus"] = [self.path("elsewhere")]
        with open(os.path.join(run, "places.json"), "w", encoding="utf-8") as file:
            json.dump(places, file)
        report = json.loads(output("doctor", run, "--json", "--memory", "1", "--no-probe", code=CODE_FAILURE))
        self.assertFalse(report["can_replay"])
        bad = {finding["what"]: finding["detail"] for finding in report["findings"] if finding["health"] == "bad"}
        self.assertEqual(set(bad), {"data"})
        self.assertIn("elsewhere", bad["data"])

    def test_doctor_of_a_preset(self):
        text = output("doctor", "--preset", "open-1b", "--memory", "1", "--no-probe", code=CODE_FAILURE)
        self.assertIn("cannot replay a step", text)
        self.assertIn("found 1.00 GiB", text)
        self.assertIn("golden", error("doctor", "--preset", "nothing", code=CODE_FAILURE))
        self.assertIn("--preset", error("doctor", code=CODE_FAILURE))
        self.assertIn("--preset", error("doctor", self.a, "--preset", "golden", code=CODE_FAILURE))


if __name__ == "__main__":
    unittest.main()
