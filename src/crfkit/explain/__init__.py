"""Why a model errs, which labels are wrong, what to label next, and whether one model is better than another."""
