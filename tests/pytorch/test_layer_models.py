"""Layers as chain models: the same answers, and what models can do; chain models as layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from layer_cases import COMPILED_CORE, LABELS, mask_of, random_layer

if not COMPILED_CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)

from crfkit import ChainCRF, ChainModel
from crfkit.chain.model.spans import span_probabilities
from crfkit.errors import ParameterError
from crfkit.torch import CRF, emission_items, from_chain_model, to_chain_model


@pytest.mark.parametrize("scheme", [None, "iob2"])
def test_a_model_of_a_layer_gives_its_answers(scheme, tmp_path):
    layer = random_layer(5, labels=LABELS, scheme=scheme)
    u, mask = torch.randn(3, 6, 5).double(), mask_of([6, 1, 3], 6)
    X = emission_items(layer, u, mask)
    to_chain_model(layer).save(tmp_path / "model.crf")
    model = ChainModel.load(tmp_path / "model.crf")
    assert model.class_list == LABELS
    tags = layer.decode(u, mask)
    assert model.predict(X) == [[LABELS[k] for k in row] for row in tags]
    for rows, expected, inside in zip(model.predict_marginals(X), layer.marginals(u, mask), mask, strict=True):
        np.testing.assert_allclose(rows, expected[inside].detach().numpy(), atol=1e-9)
    log_z = model.inference.log_partition(model.encode(X))
    np.testing.assert_allclose(log_z, layer.log_partition(u, mask).detach().numpy(), rtol=1e-9)
    spans = [(n, 0, 1, "X") for n in range(3)]
    probabilities = span_probabilities(model, model.encode(X), spans)
    np.testing.assert_allclose(probabilities, layer.span_probabilities(u, spans, mask).detach().numpy(), atol=1e-9)


def test_models_of_layers_can_be_explained_and_calibrated():
    layer = random_layer(5, labels=LABELS, scheme="iob2")
    u = torch.randn(30, 6, 5).double()
    X = emission_items(layer, u)
    y = [[LABELS[k] for k in row] for row in layer.sample(u)[0].tolist()]
    model = to_chain_model(layer)
    assert "emission of" in str(model.explain(X[0]))
    assert model.calibrate(X, y) is not None


def test_a_layer_of_a_model_has_its_transitions():
    X, y = [[["w=Ada"], ["w=Lovelace"], ["w=ran"]], [["w=we"], ["w=ran"]]], [["B-P", "I-P", "O"], ["O", "O"]]
    for constraints in (None, "iob2"):
        for all_possible_transitions in (False, True):
            crf = ChainCRF(constraints=constraints, all_possible_transitions=all_possible_transitions).fit(X, y)
            layer = from_chain_model(crf.model_, batch_first=True).double()
            assert layer.labels == ["B-P", "I-P", "O"]
            model = crf.model_
            data = model.encode(X)
            table = np.zeros((len(X), 3, 3))  # the label scores of the model are the emissions of the layer
            for n, x in enumerate(X):
                for t, (attribute,) in enumerate(x):
                    for j, label in enumerate(layer.labels):
                        table[n, t, j] = crf.state_features_.get((attribute, label), 0.0)
            found = layer.log_partition(torch.from_numpy(table), mask_of([3, 2], 3))
            np.testing.assert_allclose(found.detach().numpy(), model.inference.log_partition(data), rtol=1e-6)


def test_what_cannot_be_converted():
    with pytest.raises(ParameterError, match="labels are not given"):
        to_chain_model(CRF(3))
    crf = ChainCRF(order=2).fit([[["a"], ["b"], ["a"]]], [["x", "y", "x"]])
    with pytest.raises(ParameterError, match="this model is of order 2"):
        from_chain_model(crf.model_)
