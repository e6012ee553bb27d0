"""Run tests, or any script, on a core that is built with sanitizers: `make sanitize`.

    python tests/sanitized.py address               ASan and UBSan: the native tests, with each set of kernels
    python tests/sanitized.py thread                TSan: predictions and fits that run at the same time
    python tests/sanitized.py address --quick       a part that takes a few minutes
    python tests/sanitized.py address -- -m fuzz …  give these arguments to Python instead, with tests/ on its path

The core is built in build/address or build/thread, beside an environment that has it and shares all other packages
with the one that runs this script. An error of memory, of undefined behaviour or of threads ends the process that made
it, and the run fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import nanobind

REPOSITORY = Path(__file__).resolve().parent.parent
SANITIZERS = {"address": "address,undefined", "thread": "thread"}
RUNTIMES = {"address": ["libasan.so", "libubsan.so"], "thread": ["libtsan.so"]}
OPTIONS = {
    # Python keeps memory until it exits; a size that cannot be had is std::bad_alloc, as without a sanitizer.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4000",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
# What reaches the core: laws of the native losses, engines and decoders, encoders, readers, and all that is hostile.
QUICK = [
    *(f"laws/test_{name}.py" for name in ("chain_classes", "chain_inference", "chain_masks", "chain_order2")),
    *(f"laws/test_{name}.py" for name in ("batches", "nbest", "spans")),
    *(f"laws/test_{name}.py" for name in ("graph_exact", "graph_gibbs", "messages", "pseudo_tables")),
    *(f"unit/test_{name}.py" for name in ("columns", "hostile_objects", "native_sizes", "modelfile")),
    *(f"unit/test_{name}.py" for name in ("crfsuite_models", "wapiti_models")),
]
WHOLE = ["laws", "unit", "parity"]
KERNEL_LAWS = [name for name in QUICK if name.startswith("laws/")]
THREADS = ["at_once.py"]


def build(kind: str) -> None:
    """Compile the core with the sanitizers of this kind."""
    folder = REPOSITORY / "build" / kind
    settings = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1",
        "CRFKIT_SANITIZE": SANITIZERS[kind],
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind.cmake_dir(),
    }
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    for command in (["-S", REPOSITORY, "-B", folder, *defined], ["--build", folder, "-j2"]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True, check=False)
        if done.returncode:  # warnings of a compiler that instruments code are often wrong
            sys.exit(f"{done.stdout}{done.stderr}")


def environment(kind: str) -> Path:
    """Return the Python of an environment whose crfkit has the sanitized core."""
    home = REPOSITORY / "build" / kind / "environment"
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=False)
    site = home / "site"
    (site / "crfkit").mkdir(parents=True)
    for path in (REPOSITORY / "src" / "crfkit").iterdir():
        if not path.name.startswith("_core.") or path.suffix == ".pyi":
            (site / "crfkit" / path.name).symlink_to(path)
    for core in (REPOSITORY / "build" / kind).glob("_core*.so"):
        (site / "crfkit" / core.name).symlink_to(core)
    packages = next((home / "lib").glob("python*/site-packages"))
    (packages / "crfkit.pth").write_text(f"{site}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return home / "bin" / "python"


def variables(kind: str) -> dict[str, str]:
    """Return the environment variables of a process that loads a sanitized core."""
    names = [*RUNTIMES[kind], "libstdc++.so"]
    paths = [
        subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in names
    ]
    return {
        **os.environ,
        **OPTIONS,
        "LD_PRELOAD": ":".join(paths),
        "PYTHONMALLOC": "malloc",
        "OPENBLAS_NUM_THREADS": "1",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(SANITIZERS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("arguments", nargs="*", help="arguments for Python, after --")
    options = parser.parse_args()
    build(options.kind)
    python, env = environment(options.kind), variables(options.kind)

    def run(*arguments: object, **more: str) -> int:
        command = [str(python), *map(str, arguments)]
        print(" ".join([*(f"{name}={value}" for name, value in more.items()), *command[1:]]), flush=True)
        return subprocess.run(command, cwd=REPOSITORY, env={**env, **more}, check=False).returncode

    def test(names: list[str], **more: str) -> int:
        return run("-m", "pytest", "-n", "2", "--max-worker-restart=0", *(f"tests/{name}" for name in names), **more)

    if options.arguments:
        return run(*options.arguments, PYTHONPATH=str(REPOSITORY / "tests"))
    if options.kind == "thread":
        return max(run(f"tests/{name}") for name in THREADS)
    if options.quick:
        return test(QUICK)
    return max(test(WHOLE), *(test(KERNEL_LAWS, CRFKIT_KERNELS=kernels) for kernels in ("generic", "avx2", "avx512")))


if __name__ == "__main__":
    sys.exit(main())
