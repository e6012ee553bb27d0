"""From options and data to a model: field, loss, penalty, solver."""
