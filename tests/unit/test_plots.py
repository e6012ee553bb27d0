"""Convergence plots."""

import pytest

from crfkit import L2, ChainCRF
from crfkit.errors import ParameterError

X = [[["w=a"], ["w=b"], ["w=c"]], [["w=b"], ["w=a"]]]
y = [["A", "B", "B"], ["B", "A"]]


def test_one_line_per_result_each_falling():
    pytest.importorskip("matplotlib").use("Agg")
    from crfkit.plots import plot_trace

    results = {name: ChainCRF(penalty=L2(s)).fit(X, y).result_ for name, s in (("weak", 0.1), ("strong", 1.0))}
    ax = plot_trace(results, optimum=0.1, against="iteration")
    assert [line.get_label() for line in ax.lines] == ["weak", "strong"]
    for line, result in zip(ax.lines, results.values(), strict=True):
        assert len(line.get_ydata()) == len(result.trace)
        assert all(a >= b for a, b in zip(line.get_ydata(), line.get_ydata()[1:], strict=False))
    with pytest.raises(ParameterError, match="against"):
        plot_trace(results, against="hours")
