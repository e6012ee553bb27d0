"""The reference of the Python interface: a page for each public name of crfkit and for each public module."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from members import summary

import crfkit

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Estimators": (
        "scikit-learn estimators: fit, predict, save.",
        ("ChainCRF", "GraphCRF", "GridCRF", "ImageSegmenter", "Refiner", "StructureLearner"),
    ),
    "Trained models": ("What estimators save; they predict without scikit-learn.", ("ChainModel", "GraphModel")),
    "Features and data": (
        "What estimators take.",
        (
            "Template",
            "TextFeatures",
            "Annotations",
            "Graph",
            "GraphData",
            "GraphSample",
            "read_columns",
            "read_crfsuite",
            "read_table",
        ),
    ),
    "Penalties": (
        "Functions of the weights that are added to the loss.",
        ("L1", "L2", "ElasticNet", "GroupL2", "GroupLinf", "HuberL1", "Blockwise", "ByBlock", "NoPenalty"),
    ),
    "Scores, schemes and paths": (
        "Evaluation, tagging schemes, strengths of penalties.",
        ("evaluate", "convert_tags", "detect_scheme", "regularisation_path", "PathPoint"),
    ),
    "Versions": ("What to paste into a bug report.", ("show_versions",)),
}
MODULES: dict[str, str] = {
    "crfkit.explain": "explanations, reports, wrong labels, suggestions, comparison",
    "crfkit.plots": "plots; they need `pip install 'crfkit[plots]'`",
    "crfkit.solvers": "solvers, line searches and stopping rules",
    "crfkit.penalties": "all penalties",
    "crfkit.losses": "all losses",
    "crfkit.graph.inference.engines": "engines of inference on graphs",
    "crfkit.protocols": "the contracts of losses, penalties and solvers",
    "crfkit.result": "what a solver returns",
    "crfkit.metrics": "scores",
    "crfkit.schemes": "tagging schemes",
    "crfkit.files.columns": "readers of column files",
    "crfkit.files.crfsuite_data": "readers of CRFsuite's data files",
    "crfkit.text": "tokens and sentences of plain text",
    "crfkit.convert": "models of other tools",
    "crfkit.distributed": "training and tagging on a cluster; they need `pip install 'crfkit[distributed]'`",
    "crfkit.compat": "interfaces of other tools",
    "crfkit.errors": "exceptions and warnings",
    "crfkit.files.limits": "what files may ask for",
    "crfkit.files.checkpoint": "runs of a solver that can be resumed",
    "crfkit.synthetic": "generated data",
}
HEAD = """# Python interface

Everything in the first tables is imported from `crfkit`, as in `from crfkit import ChainCRF`.

"""


def public(module: Any) -> list[str]:
    """Return the public names of a module: `__all__`, or what is defined there."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return [name for name in names if inspect.isclass(getattr(module, name)) or callable(getattr(module, name))]


def directive(qualified: str, value: Any) -> list[str]:
    """Return the directive that shows a class or a function."""
    if not inspect.isclass(value):
        return ["```{eval-rst}", f".. autofunction:: {qualified}", "```", ""]
    return [
        "```{eval-rst}",
        f".. autoclass:: {qualified}",
        "   :members:",
        "   :inherited-members: object, BaseEstimator, Exception, tuple, dict, Enum",
        "   :exclude-members: set_fit_request, set_score_request, set_predict_request, set_partial_fit_request,"
        " set_predict_proba_request,"
        " get_metadata_routing, count, index",
        "```",
        "",
    ]


def name_page(name: str) -> str:
    """Return the page of a name of `crfkit`."""
    return "\n".join([f"# {name}", "", *directive(f"crfkit.{name}", getattr(crfkit, name))])


def module_page(name: str, shown: dict[int, str]) -> str:
    """Return the page of a module; what another page has `shown` is linked."""
    module = import_module(name)
    lines = [f"# {name}", "", "```{eval-rst}", f".. automodule:: {name}", "   :no-members:", "```", ""]
    for member in public(module):
        value = getattr(module, member)
        if id(value) in shown:
            lines += [f"[`{member}`]({shown[id(value)]}.md): {summary(value)}", ""]
        else:
            shown[id(value)] = name
            lines += [f"## {member}", "", *directive(f"{name}.{member}", value)]
    return "\n".join(lines)


def pages() -> Iterable[tuple[str, str]]:
    """Yield a page per name, a page per module, and their index."""
    text, files = HEAD, []
    for title, (what, names) in GROUPS.items():
        rows = "\n".join(f"| [{name}]({name}.md) | {summary(getattr(crfkit, name))} |" for name in names)
        text += f"## {title}\n\n{what}\n\n| | |\n|---|---|\n{rows}\n\n"
        for name in names:
            files.append(name)
            yield f"reference/api/{name}.md", name_page(name)
    missing = set(crfkit.__all__) - set(files)
    if missing:
        raise ValueError(f"the reference has no place for {sorted(missing)}: add them to GROUPS in {__file__}")
    rows = "\n".join(f"| [{name}]({name}.md) | {what} |" for name, what in MODULES.items())
    text += f"## Modules\n\n| | |\n|---|---|\n{rows}\n\n"
    shown = {id(getattr(crfkit, name)): name for name in files}
    for name in MODULES:
        yield f"reference/api/{name}.md", module_page(name, shown)
    toctree = "\n".join(("```{toctree}", ":hidden:", *files, *MODULES, "```", ""))
    yield "reference/api/index.md", text + toctree
