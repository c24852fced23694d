"""The README's links lead to pages of the site, or to files of the repository, where it is read elsewhere."""

from __future__ import annotations

import re
import tomllib

from tests.texts import REPOSITORY
from tools.docs.build import read_config
from tools.docs.check_site import list_nav
from tools.release import PLACEHOLDER

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
SITE, SOURCE = (PROJECT["project"]["urls"][name] for name in ("Documentation", "Source"))


def test_every_link_has_a_target() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for each in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    links = re.findall(r"\]\(([^)]*)\)", text)
    pages = {f"{SITE}{name.removesuffix('index.md').removesuffix('.md')}".rstrip("/") for name in list_pages()}
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(SITE):
            is_page = link.partition("#")[0].rstrip("/") in pages
            assert is_page or (REPOSITORY / "docs" / link.removeprefix(SITE)).is_file(), link
        elif link.startswith(SOURCE):
            assert (REPOSITORY / link.removeprefix(SOURCE)).is_file(), link


def list_pages() -> list[str]:
    return list(list_nav(read_config()["nav"]))


def test_a_placeholder_is_a_name_that_nobody_can_have() -> None:
    assert PLACEHOLDER.endswith(".invalid")  # RFC 2606
