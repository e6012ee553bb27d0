"""The tests of python-crfsuite 0.9.12 itself, run on crfkit.compat.pycrfsuite."""

import pytest
from peer_suites import run_suite, source_tests

# Tests that cannot apply, each with its reason. There are none.
NOT_APPLICABLE: dict[str, str] = {}

# what the suite itself expects to fail, and does not run because it would crash CRFsuite
NOT_RUN = {"test_tagger::test_open_invalid_with_correct_signature", "test_tagger::test_tag_not_opened"}


@pytest.mark.slow
def test_its_own_tests_pass(tmp_path):
    tests = source_tests("python-crfsuite", "0.9.12", tmp_path)
    outcome = run_suite(tests, "--doctest-modules")
    assert outcome.failed <= set(NOT_APPLICABLE), outcome.text
    assert outcome.expected_failures <= NOT_RUN, outcome.text
    assert len(outcome.passed) >= 50, outcome.text
