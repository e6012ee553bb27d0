"""The tests of sklearn-crfsuite 0.5.0 itself, run on crfkit.compat.sklearn_crfsuite."""

import pytest
from peer_suites import run_suite, source_tests

# Tests that cannot apply, each with its reason. There are none.
NOT_APPLICABLE: dict[str, str] = {}


@pytest.mark.slow
def test_its_own_tests_pass(tmp_path):
    tests = source_tests("sklearn-crfsuite", "0.5.0", tmp_path)
    outcome = run_suite(tests)
    assert outcome.failed <= set(NOT_APPLICABLE), outcome.text
    assert not outcome.expected_failures, outcome.text
    assert len(outcome.passed) >= 45, outcome.text
