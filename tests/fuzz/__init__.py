"""Fuzzing: mutated models, checkpoints, files of other tools, data and Python inputs, in watched processes.

`make fuzz SECONDS=600` runs it. A case is made of a seed, the name of a target and a number, so that
`make fuzz CASE=chain-items:1234 SEED=7` runs the same case again, in this process and with its traceback.
"""
