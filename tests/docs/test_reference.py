"""The generated pages have everything that there is."""

from __future__ import annotations

import typer
from tools.docs.command_pages import write_command_pages
from tools.docs.export_difference import write_export_difference
from tools.docs.reference_pages import write_reference_pages
from tools.docs.system_parts import write_system_parts

from tomewise import errors
from tomewise.reading.formats import FORMATS
from tomewise.server.operation_list import OPERATIONS
from tomewise.settings import SETTINGS
from tomewise.systems.registry import SYSTEMS, find_declaration
from tomewise.terminal import commands, program  # noqa: F401 - it adds all commands to the application

REFERENCE = write_reference_pages()


def test_each_command_has_a_page_with_all_its_options() -> None:
    pages = write_command_pages()
    for name, command in typer.main.get_command(commands.app).commands.items():
        page = pages[f"commands/{name}.md"]
        assert f"]({name}.md)" in pages["commands/index.md"]
        for each in (command, *getattr(command, "commands", {}).values()):
            for option in (option for parameter in each.params for option in parameter.opts if option.startswith("--")):
                assert f"`{option}" in page or option == "--help", (name, option)


def test_settings_formats_and_errors_are_those_of_the_code() -> None:
    for name, setting in SETTINGS.items():
        assert f"## `{name}`" in REFERENCE["settings.md"]
        assert setting.variable in REFERENCE["settings.md"]
    for each in FORMATS:
        assert all(f"`{suffix}`" in REFERENCE["formats.md"] for suffix in each.suffixes)
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.TomewiseError):
            assert f"# {name}\n" in REFERENCE["errors.md"]


def test_operations_and_tools_are_those_of_the_server() -> None:
    for operation in OPERATIONS:
        assert f"### `{operation.method} {operation.path.replace(':path}', '}')}`" in REFERENCE["http.md"]
        if operation.tool is not None:
            assert f"### {operation.tool.name}\n" in REFERENCE["mcp.md"]


def test_each_system_has_its_ablations() -> None:
    parts = write_system_parts()
    for name in SYSTEMS:
        assert f"| `{name}` |" in parts["table"]
        assert all(f"| `{ablation}` |" in parts[name] for ablation in find_declaration(name).ablations)


def test_the_difference_shows_what_went_and_what_came() -> None:
    text = write_export_difference()
    assert "\n- facts:passages-triples" in text
    assert "tom reed forged the letter" in text
    assert "\n+ entities:passages-triples" in text
    assert "tom reed\n" not in text, "the entity that another sentence names stays"
