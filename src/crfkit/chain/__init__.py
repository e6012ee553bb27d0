"""Label chains, step by step: data, encoding, fields, inference, losses, model, training, estimator."""
