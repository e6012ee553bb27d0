"""SECURITY.md: without a cluster, nothing opens a connection or listens on a port."""

import ast
import subprocess
import sys
from pathlib import Path

import crfkit

SOURCE = Path(crfkit.__file__).parent
NETWORK = {"asyncio", "distributed", "fsspec", "ftplib", "http", "requests", "socket", "ssl", "urllib"}

SCRIPT = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
        raise RuntimeError(f"{event} {arguments}")

sys.addaudithook(refuse)
from crfkit import ChainCRF, GraphCRF, evaluate
from crfkit.explain import make_report
from crfkit.synthetic import entity_words

X, y = entity_words(30)
crf = ChainCRF(features="ner").fit(X, y)
crf.save("model.crf")
crf = ChainCRF.load("model.crf")
page = make_report(crf, X, y).to_html()
GraphCRF().fit([[0.0], [1.0]], [[0, 1], [1, 0]])
print(evaluate(y, crf.predict(X)).overall.f1 > 0.5, "src=\\"http" in page or "@import" in page)
"""


def test_training_tagging_and_reports_open_no_connection(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "True False\n", done.stderr


def test_the_audit_notices_connections(tmp_path):
    script = SCRIPT.split("from crfkit")[0] + "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "RuntimeError: socket." in done.stderr


def test_only_the_cluster_imports_modules_of_the_network():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if NETWORK & {name.partition(".")[0] for name in names}:
                found.add(path.relative_to(SOURCE).parts[0])
    assert found == {"distributed"}
