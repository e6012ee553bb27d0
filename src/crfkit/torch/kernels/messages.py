"""Forward and backward messages of chains on CUDA, at the same time, and what follows from them.

With X, E and tops as in :mod:`crfkit.torch.scaled`, programs of one direction compute

    a_t = (a_{t−1}·E) ∘ X_t / c_t,   c_t: so that Σ a_t = 1,         log Z = Σ_t (log c_t + tops)

and those of the other

    y_t = X_t ∘ b_t,   b_{t−1} = E·y_t / s_t,   s_t = Σ y_t,         log Z = Σ_t (log s_t + tops)

for 16 sequences of like length each, with E in registers or shared memory. That both have the same log Z is what shows
that single floats could hold the messages. All else is done for rows side by side:

    n_t = Σ_j a_t(j)·b_t(j),    p(y_t = j) = a_t(j)·b_t(j)/n_t,    p(y_{t−1} = i, y_t = j) = a_{t−1}(i)·E(i, j)·q_t(j),
    q_t = X_t ∘ b_t / (c_t·n_t)
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _moved(
    x, E, E_table, scratch, n_labels, row_step, column_step,
    PRECISION: tl.constexpr, PARTS: tl.constexpr, SEQUENCES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Return x·E. In several PARTS, E is read again part by part, and x is handed round in `scratch`."""
    if PARTS == 1:
        return tl.dot(x, E, input_precision=PRECISION, out_dtype=x.dtype)
    else:
        s, j, i = tl.arange(0, SEQUENCES), tl.arange(0, WIDTH), tl.arange(0, WIDTH // PARTS)
        tl.debug_barrier()  # the parts of the step before have been read
        tl.store(scratch + s[:, None] * WIDTH + j[None, :], x)
        tl.debug_barrier()
        total = tl.zeros((SEQUENCES, WIDTH), dtype=x.dtype)
        for part in range(PARTS):
            k = part * (WIDTH // PARTS) + i
            x_part = tl.load(scratch + s[:, None] * WIDTH + k[None, :])
            E_part = tl.load(
                E_table + k[:, None] * row_step + j[None, :] * column_step,
                mask=(k < n_labels)[:, None] & (j < n_labels)[None, :],
                other=0.0,
            )
            total += tl.dot(x_part, E_part, input_precision=PRECISION, out_dtype=x.dtype)
        return total


@triton.jit
def messages(
    unary, E_table, first, lengths, a_out, b_out, terms, log_z, scratch, n_sequences, n_labels,
    SMALLEST: tl.constexpr, PRECISION: tl.constexpr, PARTS: tl.constexpr, SEQUENCES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Write a, b [T, L], log c_t + top_t of every row, and log Z of every sequence by both directions [2, N].

    Log Z is NaN if a sum c_t or s_t is below SMALLEST.
    """
    k = tl.program_id(0) * SEQUENCES + tl.arange(0, SEQUENCES)
    j = tl.arange(0, WIDTH)
    real = (j < n_labels)[None, :]
    length = tl.load(lengths + k, mask=k < n_sequences, other=0).to(tl.int32)
    steps = tl.max(length, 0)
    i = tl.arange(0, WIDTH)
    square = (i < n_labels)[:, None] & (j < n_labels)[None, :]
    total = tl.zeros((SEQUENCES,), dtype=tl.float64)
    scratch += (tl.program_id(0) * 2 + tl.program_id(1)).to(tl.int64) * SEQUENCES * WIDTH
    row_step = tl.where(tl.program_id(1) == 0, n_labels, 1)  # of E, or of its transpose
    column_step = tl.where(tl.program_id(1) == 0, 1, n_labels)
    E = E_table
    if PARTS == 1:
        E = tl.load(E_table + i[:, None] * row_step + j[None, :] * column_step, mask=square, other=0.0)
    if tl.program_id(1) == 0:
        row = k.to(tl.int64)
        on = length > 0
        u = tl.load(unary + row[:, None] * n_labels + j[None, :], mask=on[:, None] & real, other=float("-inf"))
        a = tl.zeros((SEQUENCES, WIDTH), dtype=unary.dtype.element_ty)
        for t in range(steps):
            # the scores of the next step are asked for before this one is computed
            on_next = t + 1 < length
            row_next = tl.load(first + t + 1) + k
            u_next = tl.load(
                unary + row_next[:, None] * n_labels + j[None, :], mask=on_next[:, None] & real, other=float("-inf")
            )
            top = tl.where(on, tl.max(u, 1), 0.0)
            p = tl.exp(u - top[:, None])
            if t > 0:
                p *= _moved(a, E, E_table, scratch, n_labels, row_step, column_step, PRECISION, PARTS, SEQUENCES, WIDTH)
            c = tl.sum(p, 1)
            held = on & (c >= SMALLEST)  # False for NaN
            c = tl.where(held, c, 1.0)
            a = p / c[:, None]
            term = tl.log(c) + top
            tl.store(a_out + row[:, None] * n_labels + j[None, :], a, mask=on[:, None] & real)
            tl.store(terms + row, term, mask=on)
            total += tl.where(on, tl.where(held, term, float("nan")), 0.0).to(tl.float64)
            u, on, row = u_next, on_next, row_next
        tl.store(log_z + k, total, mask=k < n_sequences)
    else:
        b = tl.zeros((SEQUENCES, WIDTH), dtype=unary.dtype.element_ty) + 1.0
        row = tl.load(first + steps - 1) + k
        on = length == steps
        u = tl.load(unary + row[:, None] * n_labels + j[None, :], mask=on[:, None] & real, other=float("-inf"))
        for back in range(steps):
            step = steps - 2 - back + tl.zeros_like(length)  # the next one
            on_next = (step < length) & (step >= 0)
            row_next = tl.load(first + step, mask=on_next, other=0) + k
            u_next = tl.load(
                unary + row_next[:, None] * n_labels + j[None, :], mask=on_next[:, None] & real, other=float("-inf")
            )
            tl.store(b_out + row[:, None] * n_labels + j[None, :], b, mask=on[:, None] & real)
            top = tl.where(on, tl.max(u, 1), 0.0)
            y = tl.exp(u - top[:, None]) * b
            s = tl.sum(y, 1)
            held = on & (s >= SMALLEST)
            s = tl.where(held, s, 1.0)
            total += tl.where(on, tl.where(held, tl.log(s) + top, float("nan")), 0.0).to(tl.float64)
            y = y / s[:, None]
            moved = _moved(y, E, E_table, scratch, n_labels, row_step, column_step, PRECISION, PARTS, SEQUENCES, WIDTH)
            b = tl.where(on[:, None], moved, b)
            u, on, row = u_next, on_next, row_next
        tl.store(log_z + n_sequences + k, total, mask=k < n_sequences)


@triton.jit
def residuals(
    unary, a_in, b_in, terms, labels, weights, before, pairs, pair_top, out, value_out, pair_out,
    n_rows, n_labels,
    SMALLEST: tl.constexpr, PRECISION: tl.constexpr, WEIGHTED: tl.constexpr, PAIRS: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Write weight·(p − observed) of every row, and sums of each program: of the loss's terms, and of a_{t−1}·q_tᵀ.

    The loss is NaN if a sum n_t is below SMALLEST. Without PAIRS, q is written in the place of b instead. `before` is
    −1 for rows that begin a sequence.
    """
    j = tl.arange(0, WIDTH)
    real = (j < n_labels)[None, :]
    top_pair = tl.load(pair_top)
    total = tl.zeros((ROWS,), dtype=tl.float64)
    if PAIRS:
        sums = tl.zeros((WIDTH, WIDTH), dtype=unary.dtype.element_ty)
    n_blocks = tl.cdiv(n_rows, ROWS)
    for block in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        row = block * ROWS + tl.arange(0, ROWS).to(tl.int64)
        on = row < n_rows
        cells = row[:, None] * n_labels + j[None, :]
        mask = on[:, None] & real
        u = tl.load(unary + cells, mask=mask, other=float("-inf"))
        a = tl.load(a_in + cells, mask=mask, other=0.0)
        b = tl.load(b_in + cells, mask=mask, other=0.0)
        term = tl.load(terms + row, mask=on, other=0.0)
        label = tl.load(labels + row, mask=on, other=0)
        last = tl.load(before + row, mask=on, other=-1)
        later = last >= 0
        p = a * b
        norm = tl.sum(p, 1)
        held = norm >= SMALLEST
        norm = tl.where(held, norm, 1.0)
        p = p / norm[:, None]
        is_label = label[:, None] == j[None, :]
        gold = tl.sum(tl.where(is_label & on[:, None], u, 0.0), 1)
        label_before = tl.load(labels + last, mask=later, other=0)
        pair = tl.load(pairs + label_before * n_labels + label, mask=later, other=0.0)
        loss = (term - gold).to(tl.float64) + tl.where(later, top_pair - pair, 0.0).to(tl.float64)
        # X/c = exp(u − top − log c)
        q = tl.where(later[:, None] & mask, tl.exp(u - term[:, None]) * b / norm[:, None], 0.0)
        r = p - tl.where(is_label, 1.0, 0.0).to(p.dtype)
        if WEIGHTED:
            weight = tl.load(weights + row, mask=on, other=0.0)
            loss *= weight
            r *= weight.to(r.dtype)[:, None]
            q *= weight.to(q.dtype)[:, None]
        total += tl.where(on, tl.where(held, loss, float("nan")), 0.0)
        tl.store(out + cells, r, mask=mask)
        if PAIRS:
            a_last = tl.load(a_in + last[:, None] * n_labels + j[None, :], mask=later[:, None] & real, other=0.0)
            sums += tl.dot(tl.trans(a_last), q, input_precision=PRECISION, out_dtype=q.dtype)
        else:
            tl.store(b_in + cells, q, mask=mask)
    tl.store(value_out + tl.program_id(0), tl.sum(total, 0))
    if PAIRS:
        i = tl.arange(0, WIDTH)
        place = tl.program_id(0).to(tl.int64) * n_labels * n_labels + i[:, None] * n_labels + j[None, :]
        tl.store(pair_out + place, sums, mask=(i < n_labels)[:, None] & (j < n_labels)[None, :])
