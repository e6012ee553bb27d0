"""Conditional random fields on PyTorch tensors, on any device that PyTorch has: the extra ``crfkit[torch]``.

Nothing outside this package imports it when it is loaded, and it does not need the compiled core.
"""
