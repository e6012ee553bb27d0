"""crfkit-wapiti beside Wapiti 1.x itself, where it is installed; test_wapiti_printed.py has what it printed."""

import shutil
import subprocess

import pytest

from crfkit.compat.wapiti.command import main

WAPITI = shutil.which("wapiti") or ""


def installed() -> bool:
    """Whether the program is the tagger, which shares its name with a scanner of web sites."""
    if not WAPITI:
        return False
    version = subprocess.run([WAPITI, "--version"], capture_output=True, text=True, timeout=20)
    return "Wapiti v1." in version.stderr


if not installed():
    pytest.skip(
        "Wapiti 1.x is not installed: build it from its sources and put it on PATH; "
        "test_wapiti_printed.py compares with what it printed",
        allow_module_level=True,
    )


def run(capfdbinary, *arguments) -> tuple[bytes, bytes]:
    assert main([str(argument) for argument in arguments]) == 0
    return capfdbinary.readouterr()


def theirs(*arguments) -> tuple[bytes, bytes]:
    ended = subprocess.run([WAPITI, *map(str, arguments)], capture_output=True, timeout=60)
    return ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "flags",
    ["-l", "-c", "-s", "-s -n 2", "-s -p", "-s -p -n 3", "-s --force", "-s --force -n 2", "-s -p --force"],
)
def test_label_against_the_program(files, capfdbinary, flags):
    command = ["label", "-m", files / "rich.model", *flags.split(), files / "test.txt"]
    if "--force" in flags:
        lines = (files / "test.txt").read_text().split("\n")
        partly = [line if n % 3 == 0 or not line else f"{line.rsplit(' ', 1)[0]} ?" for n, line in enumerate(lines)]
        (files / "some.txt").write_text("\n".join(partly))
        command[-1] = files / "some.txt"
    assert run(capfdbinary, *command) == theirs(*command)


def test_our_model_in_the_program(files, capfdbinary, tmp_path):
    model = tmp_path / "model"
    run(capfdbinary, "train", "-i", "5", "-c", "-p", files / "rich.pattern", files / "train.txt", model)
    for command in (["dump", model], ["label", "-s", "-m", model, files / "test.txt"]):
        assert run(capfdbinary, *command)[0] == theirs(*command)[0]


@pytest.mark.parametrize("flags", [[], ["-c"]])
def test_update_against_the_program(files, capfdbinary, flags):
    patch = "u:w0=Confidence # B-VP 1.5\n*:p0=IN B-NP B-PP -0.25\nb O O 3\nu:w-1=_x-1 # O 0\n"
    command = ["update", "-m", files / "rich.model", *flags, files / "patch"]
    if not command[-1].exists():
        command[-1].write_text(patch)
    assert run(capfdbinary, *command) == theirs(*command)
