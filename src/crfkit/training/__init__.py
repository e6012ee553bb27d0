"""Training code that all rooms share: options, defaults, paths over strengths, tasks, the base of estimators."""
