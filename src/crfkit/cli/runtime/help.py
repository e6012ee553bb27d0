"""The layout of `--help`: options in four groups, and lists of names that come from the registries."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from crfkit._values import Label
from crfkit.cli.runtime.signals import load_native
from crfkit.errors import ParameterError

INPUT, MODEL, OPTIMISATION, OUTPUT = PANELS = ("Input", "Model", "Optimisation", "Output")


def option(panel: str, *names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return a typer option in one of the four groups."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)


def flag(panel: str, *names: str, help: str) -> Any:
    """Return an option that is on or off and takes no value."""
    return option(panel, *names, help=help, metavar="")


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line, with its default or another value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


class Command(TyperCommand):
    """A command whose help lists its options by group and fills in the names of the registries.

    ``{solvers}`` in a help text, and the other names of :func:`registry`, stand for the members of that registry. They
    are looked up when help is shown, so that other commands start without loading the registries.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        load_native()
        return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments first, then options in the order of the groups."""
        found: list[Any] = super().get_params(ctx)
        for param in found:
            if param.name == "help":
                param.rich_help_panel, param.metavar = OUTPUT, ""
        panels = [getattr(param, "rich_help_panel", None) for param in found]
        places = [PANELS.index(panel) if panel in PANELS else -1 for panel in panels]
        return [found[k] for k in sorted(range(len(found)), key=places.__getitem__)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise ParameterError if an option that has one value is given twice."""
        if not ctx.resilient_parsing:
            given: list[Label] = self.make_parser(ctx).parse_args(list(args))[-1]
            single = [param for param in given if param.param_type_name == "option" and not param.multiple]
            for k, param in enumerate(single):
                if not param.is_flag and not param.count and param in single[:k]:
                    raise ParameterError(f"{max(param.opts, key=len)} is given twice; give it once")
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for param in self.params:
            if getattr(param, "help", None):
                param.help = fill_in(param.help)  # type: ignore[attr-defined]
        paragraphs = inspect.cleandoc(fill_in(self.help or "")).split("\n\n")
        self.help = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
        self.epilog = fill_in(self.epilog) if self.epilog else None
        super().format_help(ctx, formatter)


def fill_in(text: str) -> str:
    """Return a help text with the names of registries filled in.

    >>> fill_in("Decoder: {decoders}.")[:30], fill_in("{name}.png")
    ('Decoder: auto, enumerate, tree', '{name}.png')
    """
    for key in re.findall(r"\{([a-z0-9 ]+)\}", text):
        names = registry(key)
        if names is not None:
            listed = ", ".join(names) if key.startswith("solvers ") else alternatives(names)
            text = text.replace(f"{{{key}}}", listed)
    return text


def alternatives(names: Iterable[str]) -> str:
    """Return names as a list in a sentence.

    >>> alternatives(["bp", "trw", "gibbs"]), alternatives(["bp"])
    ('bp, trw or gibbs', 'bp')
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def registry(key: str) -> Iterable[str] | None:
    """Return the names of a registry as `--help` calls it, or None if there is no such registry."""
    if key == "engines":
        from crfkit.graph.inference.engines import ENGINES

        return ("auto", *ENGINES)
    if key == "decoders":
        from crfkit.graph.model import DECODERS

        return DECODERS
    if key == "model kinds":
        from crfkit.convert.saving import KINDS

        return KINDS
    if key in ("schemes", "constraints"):
        from crfkit.chain.fields.constraints import SCHEMES
        from crfkit.schemes import TAG_SCHEMES

        return TAG_SCHEMES if key == "schemes" else SCHEMES
    if key == "presets":
        from crfkit.text.presets import PRESETS

        return PRESETS
    if key == "formats":
        from crfkit.files.columns import FORMATS

        return FORMATS
    if key.startswith("solvers"):
        return _solvers(key.removeprefix("solvers").strip())
    if key.endswith("losses"):
        return _losses(key.removesuffix("losses").strip())
    if key.startswith("structure"):
        return _structure(key.removeprefix("structure").strip())
    return None


def _solvers(default: str) -> list[str] | None:
    """Return all solvers, or those for chains with a certain default penalty."""
    from crfkit.capabilities import Capability
    from crfkit.solvers import SOLVERS, make_solver
    from crfkit.training.defaults import default_penalty

    if not default:
        return list(SOLVERS)
    penalty = {"with l2": "L2(1)", "with l1": "L1(1)", "without penalty": "no penalty"}.get(default)
    if penalty is None:
        return None
    for_chains = [name for name, solver in SOLVERS.items() if Capability.GRADIENT not in solver.needs]
    return [name for name in for_chains if default_penalty(make_solver(name)).name == penalty]


def _losses(of: str) -> Iterable[str] | None:
    from crfkit.losses import LOSSES
    from crfkit.names import SHORT_FORMS

    registries: dict[str, Iterable[str]] = {
        "chain": LOSSES.options("chain"),
        "graph": ("auto", *LOSSES.options("graph")),
        "structure": LOSSES.options("structure"),
    }
    if of not in registries:
        return None
    short = {full: f"{full} ({short})" for short, full in SHORT_FORMS.items()}
    return [short.get(name, name) for name in registries[of]]


def _structure(what: str) -> Iterable[str] | None:
    from crfkit.structure import options

    registries: dict[str, Iterable[str]] = {
        "methods": options.METHODS,
        "norms": options.GROUP_NORMS,
        "rules": options.RULES,
        "forms": options.FORMS,
        "refits": options.REFITS,
    }
    return registries.get(what)
