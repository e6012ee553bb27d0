"""How far double precision reaches: differences that solvers must not take for changes."""

EPSILON = 2.0**-52
ROUNDING = 4.0 * EPSILON  # of an objective's value: differences that are smaller count as none
