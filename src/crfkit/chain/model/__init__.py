"""A trained chain: predict, explain, calibrate, tag files, save and load. Nothing needs scikit-learn."""
