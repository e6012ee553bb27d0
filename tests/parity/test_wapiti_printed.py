"""Every flag of `label` and `update` against what Wapiti 1.5 printed: tests/fixtures/wapiti has the files."""

import pytest

from crfkit.compat.wapiti.command import main

LABEL = ["-l", "-c", "-s", "-s -n 2", "-s -p", "-s -p -n 3", "-s --force", "-s --force -n 2", "-s -p --force"]


def printed(files, name):
    return tuple((files / f"{name}.{kind}").read_bytes() for kind in ("out", "err"))


@pytest.mark.parametrize("flags", LABEL)
def test_label_prints_what_wapiti_printed(generated, capfdbinary, flags):
    file = generated / ("partly.txt" if "--force" in flags else "test.txt")
    assert main(["label", "-m", str(generated / "rich.model"), *flags.split(), str(file)]) == 0
    assert capfdbinary.readouterr() == printed(generated, "label" + flags.replace(" ", ""))


@pytest.mark.parametrize("flags", [[], ["-c"]])
def test_update_writes_what_wapiti_wrote(generated, capfdbinary, flags):
    assert main(["update", "-m", str(generated / "rich.model"), *flags, str(generated / "patch")]) == 0
    assert capfdbinary.readouterr() == printed(generated, "".join(["update", *flags]))
