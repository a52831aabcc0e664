// SPDX-License-Identifier: Apache-2.0
//
// Softmax attention with grouped queries, causal, with an optional sliding window: forward, with
// P·V in int8 or in f32, and backward. No score matrix is ever in memory. Projections, rotary
// embedding and the normalisation of queries and keys are other operations. This header is the
// contract; attention_ref.cc is the same in scalar code.
//
// Source: the Open-1B report, §3.2 (int8 P·V inside the forward, an unquantised backward that
// recomputes the weights and sums the query gradient in 64-bit fixed point) and §4.1 (why that sum
// needs a scale).
#ifndef LOCKSTEP_KERNELS_ATTENTION_ATTENTION_H_
#define LOCKSTEP_KERNELS_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// Queries and keys are cut into blocks of 64 by their absolute position.
constexpr int64_t kAttentionBlock = 64;

// B = batch, T = tokens, Hq and Hkv = query and key/value heads, Dh = head_dim. Query head h uses
// the key/value head h / (Hq / Hkv); the query heads of one key/value head are its group.
struct AttentionShape {
  int64_t batch;
  int64_t tokens;
  int64_t query_heads;  // a multiple of kv_heads
  int64_t kv_heads;
  int64_t head_dim;  // a multiple of 16, at most 256
  int64_t window;    // query i sees the keys max(0, i - window + 1) .. i; 0: the keys 0 .. i
};

// Forward. Everything is binary32 unless said; sums in the orders of kernels/README.md §3.
//
//   scale = div(1, sqrt(Dh));  q'_i = Snap(q_i * scale);  k, v stand for Snap(k), Snap(v)
//   s_ij  = acc after acc = fma(q'_i[d], k_j[d], acc), d ascending from acc = +0
//   m_i   = the largest s_ij that i sees: from -Inf, m = max(s_ij, m), so NaN never enters
//   p_ij  = Snap(Exp(s_ij - m_i)) where i sees j, else +0
//   l_i   = RowSum over j of p_ij: lane j mod 32, runs of 4096 by the absolute j
//   lse_i = Canon(m_i + Log(l_i))
//
// The pair (query block Q, key block J) is active if some query position 64 Q .. 64 Q + 63 and key
// position see each other, which is for J from max(0, 64 Q - window + 1) / 64 to Q, whatever T is.
// Every query of block Q takes the active J ascending, with all their keys below T; p_ij = +0 where
// it does not see them. From o_i = +0:
//
//   int8:  per J (and batch and key/value head), over its keys and all d:
//            amax = the largest |v|, as integers;  if amax is Inf or NaN: u = NaN, vq = 0;
//            if amax = 0: u = 0, vq = 0;  else u = div(amax, 16129), vq = rne(v * div(127, amax))
//          per i and J: pmax = the largest p_ij;  pq_ij = rne(p_ij * div(127, pmax)), 0 if pmax = 0
//            o_i[d] = fma(float(sum over j of pq_ij vq_j[d]), Snap(pmax * u), o_i[d])
//   f32:   o_i[d] = o_i[d] + acc after acc = fma(p_ij, v_j[d], acc), j ascending from acc = +0
//
//   out_i[d] = bf16(Canon(o_i[d] * div(1, l_i)))
//
// A row that sees a score of NaN or +Inf, or only -Inf, has l_i = NaN: its out and lse are NaN (and
// pq is then of no account). With int8, a block of v that is not finite gives NaN to the rows that
// take it; with f32, as IEEE says, 0 * Inf = NaN included. With int8 the scale of a row's last
// block may come from keys that it does not see: they reach its result through rounding, nothing
// else.
//
// Tiny numbers: q', k, v, p are snapped, so s, m, o are multiples of 2^-124 and s - m too: zero or
// normal. Exp gives exactly 1 near 0 and is canonical. A finite row has 1 <= l_i <= T. amax is 0 or
// at least 2^-62, so the quotients are normal; a product that is then rounded to an integer may
// flush. Snap(pmax * u) is the same whether pmax * u flushes or not. No score is -0 (sums from +0
// never are), so that m has one answer.
//
// Sums: |pq| <= 127 (127.00002 rounds to it) and |vq| <= 127, so an int32 sum is below 2^21 and its
// float exact.
struct AttentionForwardArgs {
  BFloat16* out;      // [B, T, Hq, Dh]
  float* lse;         // [B, Hq, T]; log of the sum of exp(s) over the keys that a query sees
  const BFloat16* q;  // [B, T, Hq, Dh]: element (b, t, h, d) at (b * T + t) * stride + h * Dh + d
  const BFloat16* k;  // [B, T, Hkv, Dh], likewise: all three may lie in one [B, T, stride] tensor
  const BFloat16* v;  // [B, T, Hkv, Dh], likewise
  int64_t stride;     // elements from a token to the next in q, k and v
  AttentionShape shape;
  bool int8_pv;  // P·V in int8, else in f32

  // One block of queries with the heads of one group. The long rows come first.
  int64_t items() const {
    return shape.batch * shape.kv_heads * ((shape.tokens + kAttentionBlock - 1) / kAttentionBlock);
  }
  int64_t grain() const { return 1; }
};

// Backward of the forward in exact arithmetic: straight through the rounding of P and V. lse is the
// forward's (any other value gives defined bits, not a gradient). q', k, v, s as above.
//
//   E     = the exponent of the largest |dout| in the group's heads and this batch (as integers):
//           (bits >> 23) - 127, clamped to -125 .. 126;  do = Snap(dout * 2^-E)
//   p_ij  = Snap(Exp(min(0, s_ij - lse_i)))      where i sees j, with min keeping a NaN; else +0
//   dp_ij = acc after acc = fma(do_i[d], v_j[d], acc), d ascending from acc = +0
//   D_i   = RowDot over the j that i sees of p_ij and Snap(dp_ij): lanes and runs by the absolute j
//   ds_ij = Snap(p_ij * (dp_ij - D_i))           where i sees j, else +0
//
//   dv_j[d] = bf16(Canon(c * 2^E)): from c = +0, for the heads of the group ascending, for the
//             active blocks Q of queries ascending: c = c + acc, where acc = fma(p_ij, do_i[d],
//             acc) for all queries i of Q below T ascending, from acc = +0
//   dk_j[d] = the same with ds_ij and q'_i[d]
//   dq_i[d] = bf16(Canon(Canon(float(N) * 2^-e * scale) * 2^E)), N the 64-bit integer sum over the
//             active J, in any order, of
//               rne(max(min(acc * 2^e, 2^50), -2^50)), acc = fma(ds_ij, k_j[d], acc) for all keys j
//               of J below T ascending, from acc = +0; float(N) rounded to nearest even
//   e       = min(124, 46 - beta), beta = x(do_i) + x(v) + x(k) + ceil(log2(Dh)) + 4, where x is
//   the
//             exponent of the largest magnitude: of do_i; of v and k in this batch and head.
//   A row of dq is NaN if lse_i, D_i or one of the three largest magnitudes is not finite, or if
//   beta > 127.
//
// D is the mean of dp under the weights that the backward itself uses, and not do·out: the rounding
// of out to int8 and bf16, harmless elsewhere, would drown ds where the attention is peaked.
//
// The scale keeps dq alive: E makes everything above invariant to powers of two in the loss, as
// long as the stored gradients do not under- or overflow; e makes the grid of N at most 2^-45 of
// the bound below. A row whose gradient is 2^-40 of the largest in its group loses digits to Snap.
//
// N does not overflow: an addend is at most 2^50 in magnitude, so 2^12 blocks (262,144 keys) give
// at most 2^62. Nor does the clamp act, given the forward's lse: with |do| < 2^(x(do)+1) and so on,
// |dp_ij|, |D_i| <= Dh max|do_i| max|v| (weights sum to 1, but for rounding), so that a block's acc
// is at most 2 Dh max|do_i| max|v| max|k| < 2^beta but for rounding, and acc * 2^e < 2^46 (1 +
// small).
//
// Tiny numbers: operands are snapped, so s, dp, D, acc and c are multiples of 2^-124. lse is Canon,
// so s - lse is one too. p * (dp - D) may be tiny and is snapped, which flushing does not change.
// acc * 2^e may be tiny if e < 0; it then rounds to 0. e <= 124 loses nothing: acc is a multiple of
// 2^-124. float(N) * 2^-e is 0 or at least 2^-124. The products with scale and 2^E are Canon'ed.
//
// dq, dk, dv may not overlap the inputs.
struct AttentionBackwardArgs {
  BFloat16* dq;             // [B, T, Hq, Dh], like q with gradient_stride
  BFloat16* dk;             // [B, T, Hkv, Dh], likewise
  BFloat16* dv;             // [B, T, Hkv, Dh], likewise
  int64_t gradient_stride;  // elements from a token to the next in dq, dk and dv
  const BFloat16* dout;     // [B, T, Hq, Dh]
  const BFloat16* q;        // as in the forward
  const BFloat16* k;
  const BFloat16* v;
  int64_t stride;
  const float* lse;  // [B, Hq, T]
  AttentionShape shape;

  // One key/value head of one batch, with the heads of its group.
  int64_t items() const { return shape.batch * shape.kv_heads; }
  int64_t grain() const { return 1; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ATTENTION_ATTENTION_H_
