"""Data that the tests of clusters share."""

import numpy as np


def sentences(n=120, seed=0):
    """Sequences of attributes with labels; some attributes occur in few sequences, one label in one only."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for k in range(n):
        words = rng.integers(0, 60, size=rng.integers(1, 9)).tolist()
        X.append([[f"w={w}", f"s={w % 7}", f"k={k // 5}"] for w in words])
        y.append([("ABC"[(w % 7 + int(rng.random() < 0.15)) % 3]) for w in words])
    y[n // 2][0] = "D"
    return X, y


def column_text(n=90, seed=0):
    """A column file."""
    X, y = sentences(n, seed)
    return "".join(
        "".join(f"{token[0]} {token[1]} {label}\n" for token, label in zip(a, b, strict=True)) + "\n"
        for a, b in zip(X, y, strict=True)
    )
