"""Parts of the solvers: the loop, the objective, line searches, memories, stopping rules."""
