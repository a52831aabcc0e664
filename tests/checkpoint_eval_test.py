#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of `lockstep checkpoint verify | export` and `lockstep eval` as a user meets them. What is exported is read by a
reader of its own, which knows the safetensors format and docs/checkpoint.md and nothing of this project's code: tensors
against the checkpoint's bits, and a forward pass in binary64 against the losses that `lockstep eval` tells. No network."""

import json
import math
import operator
import os
import struct
import tempfile
import unittest

from tool import SAMPLE, TOKENIZER, run_tool

CONFIG = """
preset = "golden"
name = "{name}"
precision = "{precision}"
parameter_storage = "{storage}"
[corpus]
path = "corpus"
[tokenizer]
path = {tokenizer}
[model]
layers = 2
vocab = 1026
init_std = 0.2
[topology]
replicas = 1
shards = 1
"""
RUNS = {"bf16": ("bf16", "bf16"), "f32": ("int8", "f32")}  # precision, parameter storage
QUESTIONS = [
    {"question": "Which of these is a colour?", "choices": ["Seven", "Blue", "Monday"], "answer": "B"},
    {"question": "How many legs has a spider? " * 12, "choices": ["eight", "two"], "answer": "A"},
    {"question": "What follows Monday?", "choices": ["Tuesday", "Friday", "Sunday", "Thursday"], "answer": "A"},
]


def json_of(*args):
    return json.loads(run_tool(*args, "--json").stdout)


def error_of(*args, code):
    done = run_tool(*args, code=code)
    assert done.stdout == b"", done.stdout
    return done.stderr.decode()


def read_safetensors(path):
    """Name -> (type, shape, bytes), and the metadata."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[8 + size + begin : 8 + size + end])
    assert 8 + size + max(entry["data_offsets"][1] for entry in header.values()) == len(data)
    return tensors, metadata


def bf16_bytes(kind, data):
    """A stored tensor as bf16: its own bytes, or f32 rounded to nearest even."""
    if kind == "BF16":
        return data
    words = struct.unpack(f"<{len(data) // 4}I", data)
    return b"".join(struct.pack("<H", (w + 0x7FFF + (w >> 16 & 1)) >> 16) for w in words)


def floats(tensor):
    """Rows of a bf16 matrix, or the one row of a vector."""
    kind, shape, data = tensor
    assert kind == "BF16"
    values = [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]
    cols = shape[-1]
    rows = [values[i : i + cols] for i in range(0, len(values), cols)]
    return rows if len(shape) == 2 else rows[0]


def dot(a, b):
    return sum(map(operator.mul, a, b))


def rms_norm(x, eps, gain=None):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + eps)
    return [v * scale * (gain[i] if gain else 1) for i, v in enumerate(x)]


def linear(weight, x):
    return [dot(row, x) for row in weight]


class ExportedModel:
    """The forward pass of an export's config.json and model.safetensors, as docs/checkpoint.md says it."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        tensors, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
        self.weights = {name: floats(tensor) for name, tensor in tensors.items()}

    def rotate(self, x, position):
        half = len(x) // 2
        out = list(x)
        for i in range(half):
            angle = position * self.config["rope_theta"] ** (-2 * i / len(x))
            c, s = math.cos(angle), math.sin(angle)
            out[i] = x[i] * c - x[i + half] * s
            out[i + half] = x[i + half] * c + x[i] * s
        return out

    def heads(self, flat, rotated):
        size = self.config["head_dim"]
        heads = [flat[i : i + size] for i in range(0, len(flat), size)]
        if rotated is None:
            return heads
        return [self.rotate(rms_norm(h, self.config["rms_norm_eps"]), rotated) for h in heads]

    def attention(self, layer, xs):
        c, w = self.config, self.weights
        name = f"model.layers.{layer}.self_attn."
        sliding = c["layer_types"][layer] == "sliding_attention"
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        keys, values, out = [], [], []
        for t, x in enumerate(xs):
            queries = self.heads(linear(w[name + "q_proj.weight"], x), t)
            keys.append(self.heads(linear(w[name + "k_proj.weight"], x), t))
            values.append(self.heads(linear(w[name + "v_proj.weight"], x), None))
            first = max(0, t - c["sliding_window"] + 1) if sliding else 0
            mixed = []
            for h, query in enumerate(queries):
                kv = h // group
                scores = [dot(query, keys[s][kv]) / math.sqrt(c["head_dim"]) for s in range(first, t + 1)]
                top = max(scores)
                shares = [math.exp(s - top) for s in scores]
                total = sum(shares)
                for i in range(c["head_dim"]):
                    mixed.append(sum(p * values[first + s][kv][i] for s, p in enumerate(shares)) / total)
            out.append(linear(w[name + "o_proj.weight"], mixed))
        return out

    def mlp(self, layer, x):
        w = self.weights
        name = f"model.layers.{layer}.mlp."
        gate = linear(w[name + "gate_proj.weight"], x)
        up = linear(w[name + "up_proj.weight"], x)
        return linear(w[name + "down_proj.weight"], [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def losses(self, tokens):
        """The cross-entropy of each token after the first."""
        c, w = self.config, self.weights
        eps = c["rms_norm_eps"]
        xs = [rms_norm(w["model.embed_tokens.weight"][t], eps, w["model.embed_norm.weight"]) for t in tokens[:-1]]
        for layer in range(c["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            normed = [rms_norm(x, eps, w[name + "input_layernorm.weight"]) for x in xs]
            xs = [list(map(operator.add, x, y)) for x, y in zip(xs, self.attention(layer, normed))]
            gain = w[name + "post_attention_layernorm.weight"]
            xs = [list(map(operator.add, x, self.mlp(layer, rms_norm(x, eps, gain)))) for x in xs]
        losses = []
        for x, target in zip(xs, tokens[1:]):
            logits = linear(w["lm_head.weight"], rms_norm(x, eps, w["model.norm.weight"]))
            top = max(logits)
            losses.append(top + math.log(sum(math.exp(v - top) for v in logits)) - logits[target])
        return losses


class CheckpointEvalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name
        ingested, corpus = cls.path("ingested"), cls.path("corpus")
        run_tool("corpus", "ingest", os.path.join(SAMPLE, "corpus.toml"), "--out", ingested)
        stores = [os.path.join(ingested, name) for name in sorted(os.listdir(ingested))]
        stores = [store for store in stores if os.path.isdir(store)]
        run_tool("corpus", "build", "--tokenizer", TOKENIZER, "--stores", *stores, "--out", corpus)
        for name, (precision, storage) in RUNS.items():
            config = CONFIG.format(name=name, precision=precision, storage=storage, tokenizer=json.dumps(TOKENIZER))
            cls.write(f"{name}.toml", config)
            run_tool("run", "init", cls.path(f"{name}.toml"), "--out", cls.path(name))
            run_tool("train", cls.path(name), "--stop-at", "3", "--threads", "2", "--json")
        cls.write("questions/q.jsonl", "".join(json.dumps(q) + "\n" for q in QUESTIONS))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, text):
        path = cls.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def checkpoint(self, run):
        return os.path.join(self.path(run), "checkpoints", "00000003")

    def copy_of_checkpoint(self, run, name):
        for file in os.listdir(self.checkpoint(run)):
            with open(os.path.join(self.checkpoint(run), file), "rb") as source:
                self.write(f"{name}/{file}", source.read())
        return self.path(name)

    def ids(self, text):
        return json.loads(run_tool("tokenizer", "encode", "--tokenizer", TOKENIZER, "--text", text, "--json").stdout)["ids"]

    # ---- verify

    def test_verify(self):
        for run in RUNS:
            report = json_of("checkpoint", "verify", self.checkpoint(run))
            self.assertEqual(report["next_step"], 3)
            self.assertEqual(report["tensors"], 3 * (4 + 6 * 2))
            self.assertEqual(report["chain"], json_of("run", "inspect", self.path(run))["chain"])
            text = run_tool("checkpoint", "verify", self.checkpoint(run)).stdout.decode()
            self.assertIn(report["chain"], text)

    def test_verify_names_what_is_damaged(self):
        copy = self.copy_of_checkpoint("bf16", "damaged")
        path = os.path.join(copy, "second_moment.safetensors")
        with open(path, "rb") as file:
            data = bytearray(file.read())
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        data[8 + size + header["layers.1.mlp.down"]["data_offsets"][0] + 5] ^= 0x10
        with open(path, "wb") as file:
            file.write(data)
        message = error_of("checkpoint", "verify", copy, "--run", self.path("bf16"), "--json", code=5)
        self.assertIn("second_moment.safetensors: expected SHA-256", message)
        self.assertIn('tensor "layers.1.mlp.down", chunk 0', message)

    def test_verify_of_what_is_no_checkpoint_of_the_run(self):
        copy = self.copy_of_checkpoint("bf16", "astray")
        self.assertIn("--run names the run", error_of("checkpoint", "verify", copy, code=1))
        self.assertIn("run", error_of("checkpoint", "verify", copy, "--run", self.path("f32"), code=1))
        self.assertIn("nowhere", error_of("checkpoint", "verify", self.path("nowhere"), code=1))
        os.remove(os.path.join(copy, "first_moment.safetensors"))
        error_of("checkpoint", "verify", copy, "--run", self.path("bf16"), code=1)

    # ---- export

    def export(self, run, name):
        out = self.path(name)
        report = json_of("checkpoint", "export", self.checkpoint(run), "--out", out)
        self.assertEqual(sorted(os.listdir(out)), ["config.json", "model.safetensors", "tokenizer.json"])
        return out, report

    def test_exported_tensors_are_the_checkpoints_bits(self):
        for run in RUNS:
            out, report = self.export(run, f"export-{run}")
            stored, _ = read_safetensors(os.path.join(self.checkpoint(run), "parameters.safetensors"))
            exported, metadata = read_safetensors(os.path.join(out, "model.safetensors"))
            self.assertEqual(metadata["format"], "pt")
            self.assertEqual(metadata["lockstep_step"], "3")
            self.assertEqual(metadata["lockstep_chain"], report["chain"])
            expected = {
                "model.embed_tokens": ("embedding", 0, 1026),
                "model.embed_norm": ("embedding_norm", 0, 64),
                "model.norm": ("final_norm", 0, 64),
                "lm_head": ("head", 0, 1026),
            }
            for layer in range(2):
                ours, theirs = f"layers.{layer}.", f"model.layers.{layer}."
                expected |= {  # name, first row, rows (or elements)
                    theirs + "input_layernorm": (ours + "attention.norm", 0, 64),
                    theirs + "self_attn.q_proj": (ours + "attention.qkv", 0, 64),
                    theirs + "self_attn.k_proj": (ours + "attention.qkv", 64, 32),
                    theirs + "self_attn.v_proj": (ours + "attention.qkv", 96, 32),
                    theirs + "self_attn.o_proj": (ours + "attention.output", 0, 64),
                    theirs + "post_attention_layernorm": (ours + "mlp.norm", 0, 64),
                    theirs + "mlp.gate_proj": (ours + "mlp.gate_up", 0, 96),
                    theirs + "mlp.up_proj": (ours + "mlp.gate_up", 96, 96),
                    theirs + "mlp.down_proj": (ours + "mlp.down", 0, 64),
                }
            self.assertEqual(sorted(exported), sorted(name + ".weight" for name in expected))
            elements = 0
            for name, (source, first, rows) in expected.items():
                kind, shape, data = exported[name + ".weight"]
                source_kind, source_shape, source_data = stored[source]
                cols = source_shape[1] if len(source_shape) == 2 else 1
                self.assertEqual(kind, "BF16")
                self.assertEqual(shape, [rows, cols] if len(source_shape) == 2 else [rows])
                self.assertEqual(source_kind, {"bf16": "BF16", "f32": "F32"}[RUNS[run][1]])
                bits = bf16_bytes(source_kind, source_data)
                self.assertEqual(data, bits[2 * first * cols : 2 * (first + rows) * cols], name)
                elements += rows * cols
            self.assertEqual(report["parameters"], elements)
            self.assertEqual(report["bytes"], os.path.getsize(os.path.join(out, "model.safetensors")))

    def test_exported_configuration_and_tokenizer(self):
        out, _ = self.export("f32", "export-config")
        with open(os.path.join(out, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        model = json_of("run", "inspect", self.path("f32"))["manifest"]["model"]
        for theirs, ours in {
            "num_hidden_layers": "layers", "hidden_size": "width", "num_attention_heads": "query_heads",
            "num_key_value_heads": "kv_heads", "head_dim": "head_dim", "intermediate_size": "ffn_width",
            "vocab_size": "vocab", "max_position_embeddings": "seq_len", "sliding_window": "window",
            "rope_theta": "rope_theta", "rms_norm_eps": "norm_eps", "initializer_range": "init_std",
        }.items():  # fmt: skip
            self.assertEqual(config[theirs], model[ours], theirs)
        self.assertEqual(config["layer_types"], ["sliding_attention", "full_attention"])
        self.assertEqual(config["linear_precision"], "int8")
        with open(os.path.join(out, "tokenizer.json"), encoding="utf-8") as file:
            tokenizer = json.load(file)
        self.assertEqual(tokenizer["model"]["type"], "BPE")
        added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        self.assertEqual(added["<|endoftext|>"], config["eos_token_id"])

    def test_export_is_whole_or_not_there(self):
        out = self.path("taken")
        os.mkdir(out)
        error_of("checkpoint", "export", self.checkpoint("bf16"), "--out", out, code=1)
        copy = self.copy_of_checkpoint("bf16", "damaged-parameters")
        path = os.path.join(copy, "parameters.safetensors")
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x7f")
        args = ("checkpoint", "export", copy, "--run", self.path("bf16"), "--out", self.path("never"))
        self.assertIn("parameters.safetensors: expected the root", error_of(*args, code=5))
        self.assertFalse(os.path.exists(self.path("never")))

    def test_export_refuses_another_tokenizer(self):
        other = self.path("other.tokenizer")
        files = [os.path.join(SAMPLE, "web.jsonl")]
        run_tool("tokenizer", "train", "--from", *files, "--vocab", "300", "--special", "<|endoftext|>", "--out", other)
        args = ("checkpoint", "export", self.checkpoint("bf16"), "--out", self.path("never"), "--tokenizer", other)
        self.assertIn("expected the run's tokenizer", error_of(*args, code=1))

    def test_forward_pass_of_the_export_has_the_losses_of_eval(self):
        text = "The harbour froze early that year. We walked across the ice to the lighthouse, and counted the gulls."
        path = self.write("one.jsonl", json.dumps({"text": text}) + "\n")
        end = self.ids("")  # no ids: what follows is the text's
        self.assertEqual(end, [])
        out, _ = self.export("bf16", "export-forward")
        model = ExportedModel(out)
        separator = model.config["eos_token_id"]
        tokens = [separator, *self.ids(text), separator]
        self.assertLessEqual(len(tokens), 65)  # one window
        losses = model.losses(tokens)
        result = json_of("eval", self.path("bf16"), "--held-out", path)["held_out"]["all"]
        self.assertEqual(result["tokens"], len(losses))
        self.assertEqual(result["bytes"], len(text.encode()))
        mean = sum(losses) / len(losses)
        # bf16 activations make 0.0023 of difference, everywhere the same; a window of one key more makes 0.0045.
        self.assertAlmostEqual(result["nats_per_token"], mean, delta=0.004)
        self.assertAlmostEqual(
            result["bits_per_byte"], result["nats_per_token"] * len(losses) / math.log(2) / len(text), places=9)

    # ---- eval

    def test_eval(self):
        files = [os.path.join(SAMPLE, "web.jsonl")]
        for run in RUNS:
            args = ("eval", self.path(run), "--held-out", *files, "--questions", self.path("questions"), "--limit", "40")
            one = run_tool(*args, "--json", "--threads", "1").stdout
            self.assertEqual(one, run_tool(*args, "--json", "--threads", "3").stdout)
            report = json.loads(one)
            self.assertEqual(report["next_step"], 3)
            held_out = report["held_out"]["files"][0]
            self.assertEqual(held_out["file"], files[0])
            self.assertEqual(held_out["documents"], 40)
            self.assertTrue(4 < held_out["nats_per_token"] < 12, held_out)  # log 1026 = 6.9
            choice = report["questions"]["all"]
            self.assertEqual(choice["questions"] + choice["left_out"], len(QUESTIONS))
            self.assertGreaterEqual(choice["cut"], 1)
            self.assertAlmostEqual(choice["majority_accuracy"], 2 / 3)
            self.assertEqual(choice["best_accuracy"], max(choice["letter_accuracy"], choice["completion_accuracy"]))
            table = run_tool(*args).stdout.decode()
            self.assertIn("web.jsonl", table)
            self.assertIn(f"{held_out['nats_per_token']:.4f}", table)

    def test_eval_of_a_checkpoint_is_that_of_the_run(self):
        args = ("--questions", self.path("questions/q.jsonl"))
        of_run = json_of("eval", self.path("f32"), *args)
        self.assertEqual(json_of("eval", self.checkpoint("f32"), *args)["questions"], of_run["questions"])
        copy = self.copy_of_checkpoint("f32", "elsewhere")
        self.assertEqual(json_of("eval", copy, "--run", self.path("f32"), *args)["questions"], of_run["questions"])

    def test_eval_says_what_is_wrong(self):
        run = self.path("bf16")
        self.assertIn("expected --held-out", error_of("eval", run, code=1))
        for flag, text, message in (
            ("--held-out", '{"text":"a"}\n{"text":3}\n', 'bad.jsonl:2: expected "text" to be a string; found 3'),
            ("--held-out", b"\xff\xfe\x00", "bad.jsonl:1: expected a JSON object; found no JSON"),
            ("--held-out", "", "bad.jsonl: expected a JSON object a line"),
            ("--questions", '{"question":"q","choices":["a","b"],"answer":"C"}', "a letter from A to B"),
        ):
            path = self.write("bad.jsonl", text)
            self.assertIn(message, error_of("eval", run, flag, path, "--json", code=5))
        self.assertIn("none.jsonl", error_of("eval", run, "--held-out", self.path("none.jsonl"), code=1))
        self.assertIn("no run.json", error_of("eval", self.path("corpus"), "--held-out", "x", code=1))
        long = {"question": "q", "choices": ["word " * 100, "b"], "answer": "B"}
        path = self.write("long.jsonl", json.dumps(long))
        self.assertIn("fit into a window of 64 tokens", error_of("eval", run, "--questions", path, code=1))


if __name__ == "__main__":
    unittest.main()
