"""What solvers are made of: the loop, the objective, line searches, memories, stopping rules."""
