"""Plots of convergence and of single sequences."""

import pytest
from optional import optional

from crfkit import L2, ChainCRF
from crfkit.errors import ParameterError

X = [[["w=a"], ["w=b"], ["w=c"]], [["w=b"], ["w=a"]]]
y = [["A", "B", "B"], ["B", "A"]]


def test_one_line_per_result_each_falling():
    optional("matplotlib").use("Agg")
    from crfkit.plots import plot_trace

    results = {name: ChainCRF(penalty=L2(s)).fit(X, y).result_ for name, s in (("weak", 0.1), ("strong", 1.0))}
    ax = plot_trace(results, optimum=0.1, against="iteration")
    assert [line.get_label() for line in ax.lines] == ["weak", "strong"]
    for line, result in zip(ax.lines, results.values(), strict=True):
        assert len(line.get_ydata()) == len(result.trace)
        assert all(a >= b for a, b in zip(line.get_ydata(), line.get_ydata()[1:], strict=False))
    with pytest.raises(ParameterError, match="against"):
        plot_trace(results, against="hours")


def test_errors_a_panel_each_with_what_callbacks_returned():
    optional("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from crfkit.plots import plot_errors

    def seen(it):
        every = {"test_error": 1 / (1 + it.row.iteration)}
        return every | ({"train_error": 0.5} if it.row.iteration % 2 == 0 else {})

    results = {s: ChainCRF(solver=s).fit(X, y, callbacks=[seen]).result_ for s in ("lbfgs", "cg")}
    axes = plot_errors(results, against="iteration")
    assert [ax.get_ylabel() for ax in axes] == ["objective", "train error", "test error"]
    for k, trace in enumerate(result.trace for result in results.values()):
        objective, train, test = (ax.lines[k] for ax in axes)
        assert objective.get_ydata().tolist() == [row.value for row in trace]
        assert test.get_ydata().tolist() == [1 / (1 + row.iteration) for row in trace]
        assert train.get_xdata().tolist() == [row.iteration for row in trace if row.iteration % 2 == 0]
    (ax, other) = plot_errors({**results, "none": ChainCRF().fit(X, y).result_}, "test_error")
    assert [line.get_label() for line in other.lines] == [line.get_label() for line in ax.lines] == [*results, "none"]
    assert len(other.lines[2].get_xdata()) == 0
    assert plot_errors(results, (), axes=[ax]) == [ax]
    with pytest.raises(ParameterError, match="'dev_error'; its callbacks returned test_error, train_error"):
        plot_errors(results, ["dev_error"])
    with pytest.raises(ParameterError, match="expected 3 axes, one per panel; got 1"):
        plot_errors(results, axes=[ax])
    with pytest.raises(ParameterError, match="against"):
        plot_errors(results, against="hours")
    plt.close("all")


def test_label_probabilities_are_those_of_the_model():
    optional("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from crfkit.plots import plot_label_probabilities

    crf = ChainCRF().fit(X, y)
    for model in (crf, crf.model_):
        ax = plot_label_probabilities(model, X[0], tokens=["a", "b", "c"], least=0.0)
        p = crf.predict_marginals(X[:1])[0]
        assert (ax.images[0].get_array() == p.T).all()
        assert [text.get_text() for text in ax.texts] == [f"{value:.2f}" for value in p.ravel()]
    with pytest.raises(ParameterError, match="1 token for a sequence of 3 positions"):
        plot_label_probabilities(crf, X[0], tokens=["a"])
    plt.close("all")


@pytest.mark.parametrize("top", [1, 100])
def test_bars_of_an_explanation_add_up(top):
    optional("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from crfkit.plots import plot_explanation

    one = ChainCRF().fit(X, y).explain(X[0])[1]
    ax = plot_explanation(one, top=top)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(one.difference)
    assert len(ax.patches) == (2 if top == 1 else len(one.contributions))
    with pytest.raises(ParameterError, match="top must be"):
        plot_explanation(one, top=0)
    plt.close("all")
