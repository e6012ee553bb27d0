"""The proofs of tests/proofs.py: errors of crfkit with a sentence, within 2 seconds of CPU time and 500 MB."""

import pytest
from proofs import PROOFS, attempt


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROOFS)
def test_it_is_refused_with_a_sentence(name, tmp_path):
    line, allowed = attempt(PROOFS[name](tmp_path))
    assert allowed, line
