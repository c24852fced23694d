"""What agents read of the site: a Markdown twin beside each page, `llms.txt` and `llms-full.txt`."""

from __future__ import annotations

import re
from pathlib import Path

from lxml import html
from markdownify import markdownify

_LEFT_OUT = "//a[@class='headerlink'] | //button | //nav | //script | //style | //*[contains(@class, 'md-source-file')]"
_PAGE_LINK = re.compile(r"(\]\((?![a-z]+:)[^)#\s]*/)(?=[#)])")


def write_agent_files(site: Path, nav: list[object], summary: str) -> None:
    """Write all of them. A twin stands at the address of its page, as `index.md`."""
    listed: list[str] = ["# Tomewise", "", f"> {summary}", ""]
    texts: list[str] = []
    _write_section(nav, site, listed, texts, depth=2)
    (site / "llms.txt").write_text("\n".join([*listed, ""]), encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def _write_section(nav: list[object], site: Path, listed: list[str], texts: list[str], depth: int) -> None:
    for entry in nav:
        name, value = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if isinstance(value, list):
            listed += ["", f"{'#' * depth} {name}", ""]
            _write_section(value, site, listed, texts, depth + 1)
            continue
        folder = _find_folder(str(value), site)
        text = write_twin(html.fromstring((folder / "index.html").read_bytes()))
        (folder / "index.md").write_text(text, encoding="utf-8")
        title, _, rest = text.partition("\n")
        first = next((line for line in rest.splitlines() if line and line[0].isalpha()), "")
        address = (folder / "index.md").relative_to(site).as_posix()
        listed.append(f"- [{name or title.lstrip('# ')}]({address}): {first.partition('. ')[0].rstrip('.')}.")
        texts.append(f"<!-- {address} -->\n{text}")


def write_twin(page: html.HtmlElement) -> str:
    """The article of a page as Markdown. Of a drawing it has the title and the description."""
    (article,) = page.xpath("//article")
    for drawing in article.xpath(".//*[local-name()='svg']"):
        words = drawing.xpath("./*[local-name()='title' or local-name()='desc']/text()")
        note = html.Element("p")
        note.text = f"[Drawing: {'. '.join(' '.join(each.split()).rstrip('.') for each in words)}.]" if words else ""
        note.tail = drawing.tail
        drawing.getparent().replace(drawing, note)
    for part in article.xpath(_LEFT_OUT):
        part.drop_tree()
    for cell in article.xpath(".//td//text()[contains(., '|')]"):
        owner = cell.getparent()
        setattr(owner, "text" if cell.is_text else "tail", cell.replace("|", "\\|"))
    for listing in article.xpath(".//pre"):  # lines and their numbers are marked by elements of their own
        words = html.Element("pre")
        words.text = listing.text_content()
        words.tail = listing.tail
        listing.getparent().replace(listing, words)
    text = markdownify(html.tostring(article, encoding="unicode"), heading_style="ATX", escape_misc=False)
    return re.sub(r"\n{3,}", "\n\n", _PAGE_LINK.sub(r"\1index.md", text)).strip() + "\n"


def _find_folder(page: str, site: Path) -> Path:
    path = site / page.removesuffix(".md")
    return path.parent if path.name == "index" else path
