"""A directive, ``{commands}``: usage, help and options of every command, as click has them."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from sf2el.cli import COMMANDS, main


class Commands(SphinxDirective):
    """A section for each command of the command line, and for each of its own commands."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        context = click.Context(main, info_name="sf2el")
        return [
            self._section(context, name, command)
            for name in COMMANDS
            if (command := main.get_command(context, name)) is not None
        ]

    def _section(self, parent: click.Context, name: str, command: click.Command) -> nodes.section:
        context = click.Context(command, info_name=name, parent=parent)
        title = f"sf2el {name}" if parent.parent is None else f"{parent.command_path} {name}"
        section = nodes.section(ids=[nodes.make_id(title)], names=[title.lower()])
        section += nodes.title("", "", nodes.literal("", title))
        self.state.document.note_implicit_target(section, section)
        usage = command.get_usage(context).removeprefix("Usage: ")
        section += nodes.literal_block(" ".join(usage.split()), " ".join(usage.split()), language="text")
        for paragraph in (command.help or "").split("\n\n"):
            section += nodes.paragraph("", " ".join(paragraph.split()))
        section += self._options(context, command)
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                if found is not None:
                    section += self._section(context, inner, found)
        return section

    def _options(self, context: click.Context, command: click.Command) -> list[nodes.Node]:
        listed = nodes.definition_list(classes=["options"])
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is None or not record[1] or "--help" in parameter.opts:
                continue
            item = nodes.definition_list_item()
            item += nodes.term("", "", nodes.literal("", record[0]))
            item += nodes.definition("", nodes.paragraph("", " ".join(record[1].split())))
            listed += item
        return [listed] if len(listed) else []


def setup(app):
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
