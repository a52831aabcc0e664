#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of the Open-1B architecture in PyTorch, the peer of the train_step benchmark.

Requests (asked_by_line.py):
  case LAYERS WIDTH HEADS KV_HEADS HEAD_DIM FFN VOCAB SEQ WINDOW FULL_EVERY BATCH fp32|bf16
  run                                                     one step: forward, backward, clip, AdamW

The plain way to write it: fused products for queries, keys and values and for gate and up, an additive
mask, softmax; bf16 is torch.autocast.
"""
import torch
import torch.nn.functional as F
from asked_by_line import serve


def rms_norm(x, gain=None):
    y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    return y if gain is None else y * gain


class Model(torch.nn.Module):
    def __init__(self, layers, width, heads, kv_heads, head_dim, ffn, vocab, seq, window, full_every):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.layers, self.ffn = layers, ffn

        def weight(*shape):
            return torch.nn.Parameter(torch.randn(*shape) * 0.02)

        def ones():
            return torch.nn.Parameter(torch.ones(width))

        self.embedding, self.head = weight(vocab, width), weight(vocab, width)
        self.embedding_norm, self.final_norm = ones(), ones()
        qkv = (heads + 2 * kv_heads) * head_dim
        self.qkv = torch.nn.ParameterList([weight(qkv, width) for _ in range(layers)])
        self.output = torch.nn.ParameterList([weight(width, heads * head_dim) for _ in range(layers)])
        self.gate_up = torch.nn.ParameterList([weight(2 * ffn, width) for _ in range(layers)])
        self.down = torch.nn.ParameterList([weight(width, ffn) for _ in range(layers)])
        self.norm1 = torch.nn.ParameterList([ones() for _ in range(layers)])
        self.norm2 = torch.nn.ParameterList([ones() for _ in range(layers)])
        angle = torch.arange(seq)[:, None] * 5e5 ** (-torch.arange(0, head_dim, 2) / head_dim)[None, :]
        self.cos, self.sin = angle.cos(), angle.sin()
        i, j = torch.arange(seq)[:, None], torch.arange(seq)[None, :]
        causal = j > i
        full = torch.zeros(seq, seq).masked_fill_(causal, float("-inf"))
        local = torch.zeros(seq, seq).masked_fill_(causal | (j <= i - window), float("-inf"))
        self.masks = [full if l + 1 == layers or (l + 1) % full_every == 0 else local for l in range(layers)]

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), -1)

    def attention(self, x, layer):
        batch, seq, _ = x.shape
        h, k, d = self.heads, self.kv_heads, self.head_dim
        q, key, value = F.linear(x, self.qkv[layer]).split((h * d, k * d, k * d), -1)
        q = self.rotate(rms_norm(q.view(batch, seq, h, d).transpose(1, 2)))
        key = self.rotate(rms_norm(key.view(batch, seq, k, d).transpose(1, 2)))
        value = value.view(batch, seq, k, d).transpose(1, 2)
        key = key.repeat_interleave(h // k, 1)
        value = value.repeat_interleave(h // k, 1)
        scores = torch.matmul(q, key.transpose(-1, -2)) * d**-0.5 + self.masks[layer]
        out = torch.matmul(torch.softmax(scores, -1), value)
        return F.linear(out.transpose(1, 2).reshape(batch, seq, h * d), self.output[layer])

    def mlp(self, x, layer):
        gate, up = F.linear(x, self.gate_up[layer]).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.down[layer])

    def loss(self, ids, targets):
        x = rms_norm(F.embedding(ids, self.embedding), self.embedding_norm)
        for layer in range(self.layers):
            x = x + self.attention(rms_norm(x, self.norm1[layer]), layer)
            x = x + self.mlp(rms_norm(x, self.norm2[layer]), layer)
        logits = F.linear(rms_norm(x, self.final_norm), self.head).float().flatten(0, 1)
        z = torch.logsumexp(logits, -1).pow(2).mean()
        return F.cross_entropy(logits, targets.flatten()) + 1e-4 * z


def make_case(*words):
    *numbers, dtype = words
    *shape, batch = map(int, numbers)
    torch.manual_seed(1)
    model = Model(*shape)
    vocab, seq = shape[6], shape[7]
    ids = torch.randint(vocab, (batch, seq + 1))
    plain = [p for n, p in model.named_parameters() if "norm" in n or n == "embedding"]
    decaying = [p for n, p in model.named_parameters() if not ("norm" in n or n == "embedding")]
    optimizer = torch.optim.AdamW(
        [{"params": decaying, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), eps=1e-8)

    def run():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = model.loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return run


if __name__ == "__main__":
    serve(make_case)
