"""The pages of the public Python names, and the rules that their docstrings keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import griffe
from tools.docs.griffe_extensions import PlainTwins, has_fields, is_field, is_protocol

SOURCE = Path("src")
# Each page: the module whose names it has, and the classes that methods of these return and no public module exports.
PAGES = {
    "tomewise": (
        "tomewise.tome.reports.AddReport",
        "tomewise.tome.reports.RemoveReport",
        "tomewise.tome.reports.BuildReport",
        "tomewise.tome.view.TomeView",
        "tomewise.tome.document_names.Documents",
        "tomewise.tome.tome_memory.Memory",
        "tomewise.tome.session.Sessions",
        "tomewise.tome.session.Session",
        "tomewise.tome.traces.Traces",
        "tomewise.tome.traces.Trace",
        "tomewise.tome.entities.Entity",
        "tomewise.evaluate.results.Results",
        "tomewise.store.records.DocumentRecord",
    ),
    "tomewise.types": (),
    "tomewise.parts": (),
    "tomewise.testing": (),
    "tomewise.adapters.langchain": (),
    "tomewise.adapters.llamaindex": (),
}
_MODULE = re.compile(r"`(?:tomewise\.)?([a-z_]+)\.[a-z_.]*\w")


def load_package() -> griffe.Module:
    """The package, read from its source. Nothing is imported."""
    loader = griffe.GriffeLoader(search_paths=[SOURCE], extensions=griffe.load_extensions(PlainTwins))
    package = loader.load("tomewise", submodules=True)
    loader.resolve_aliases(external=False)
    assert isinstance(package, griffe.Module)
    return package


def write_python_pages(package: griffe.Module) -> dict[str, str]:
    """The pages by their paths below `reference/`. A name that two modules export is on the page of the first."""
    pages, homes = {}, dict[str, str]()
    for module, more in PAGES.items():
        lines = [f"# {module}", "", f"::: {module}", *_write_options(members="false", show_root_heading="false"), ""]
        elsewhere = []
        for name in [*list_exports(package, module), *more]:
            target = _find_target(package, name)
            if target.path in homes:
                elsewhere.append(f"[`{name.rpartition('.')[2]}`]({homes[target.path]})")
                continue
            homes[target.path] = f"{module}.md#{name}"
            lines += [f"::: {name}", ""]
        if elsewhere:
            lines[2:2] = [f"Also here: {', '.join(elsewhere)}.", ""]
        pages[f"python/{module}.md"] = "\n".join(lines)
    return pages


def list_exports(package: griffe.Module, module: str) -> list[str]:
    """The public names of a module: those in its `__all__`, else what it defines."""
    found = _find_member(package, module)
    if found.exports is not None:
        return [f"{module}.{str(name).strip(chr(39))}" for name in found.exports]
    return [f"{module}.{name}" for name, each in found.members.items() if not (name.startswith("_") or each.is_alias)]


def find_faults(package: griffe.Module) -> Iterator[str]:
    """Each public name that has no docstring, and each docstring that names a module which is not public."""
    public = ("parts", "testing", "adapters", "events", "types", "tome")  # `tome` is what examples call an open tome
    rooms = set(package.members) - set(public)
    seen = set[str]()
    for module, more in PAGES.items():
        for name in [*list_exports(package, module), *more]:
            target = _find_target(package, name)
            if target.path not in seen:
                seen.add(target.path)
                yield from _find_faults_of(target, rooms)


def _find_faults_of(target: griffe.Object, rooms: set[str]) -> Iterator[str]:
    text = target.docstring.value if target.docstring else ""
    if not text:
        yield f"{target.path} has no docstring"
    members = target.members.values() if isinstance(target, griffe.Class) else ()
    shown = [each for each in members if each.is_public and not each.is_special and isinstance(each, griffe.Object)]
    for member in shown:
        if _owes_words(member, target) and not member.docstring and not _is_explained(member, target, text):
            yield f"{member.path} has no docstring"
    for each in (target, *shown):
        for found in _MODULE.findall(each.docstring.value if each.docstring else ""):
            if found in rooms:
                yield f"the docstring of {each.path} names the inner module {found}"


def _owes_words(member: griffe.Object, owner: griffe.Object) -> bool:
    """Whether it has to be explained: all but class attributes, and fields that are a class of ours, which says it."""
    if not is_field(member):
        return True
    words = str(member.annotation or "")
    return has_fields(owner) and bool(words) and words not in owner.module.members


def _is_explained(member: griffe.Object, owner: griffe.Object, text: str) -> bool:
    """Whether a class below it says what it is, or the docstring of its class: a field, the only verb of a protocol."""
    bases = owner.mro() if isinstance(owner, griffe.Class) else []
    if any(base.members[member.name].docstring for base in bases if member.name in base.members):
        return True
    if is_field(member):
        return f"`{member.name}`" in text
    verbs = [name for name, each in owner.members.items() if each.is_function and not name.startswith("_")]
    return is_protocol(owner) and verbs == [member.name]


def _find_target(package: griffe.Module, name: str) -> griffe.Object:
    found = _find_member(package, name)
    return found.final_target if isinstance(found, griffe.Alias) else found


def _find_member(package: griffe.Module, name: str) -> griffe.Object | griffe.Alias:
    return package[name.removeprefix("tomewise.")] if name != "tomewise" else package


def _write_options(**options: str) -> list[str]:
    return ["    options:", *(f"      {name}: {value}" for name, value in options.items())]
