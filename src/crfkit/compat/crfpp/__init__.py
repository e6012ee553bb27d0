"""The commands of CRF++ 0.58: `crfkit-learn` for crf_learn and `crfkit-test` for crf_test, flags and output alike."""
