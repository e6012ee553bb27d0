"""What training shares in all rooms: options, defaults, paths over strengths, tasks, the base of estimators."""
