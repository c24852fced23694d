"""Documents that look readable and are not: refused with the reason, and never the end of a folder."""

from __future__ import annotations

import pytest
from tests.reading.documents import EPUB, write_zip

from tomewise.errors import ReadingError

ENCRYPTED = (
    '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:EncryptionMethod '
    'Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/></enc:EncryptedData></encryption>'
)


def test_one_bad_page_does_not_end_the_folder(tome, here):
    folder = here / "all"
    folder.mkdir()
    for number, charset in enumerate(
        ("unicode_escape", "utf-7", "idna", "hex", "undefined", "rot13", "mbcs", "a" * 64)
    ):
        (folder / f"{number}.html").write_bytes(f'<meta charset="{charset}"><p>caf'.encode() + rb"\ud800 \q" + b"\xe9")
    (folder / "plain.html").write_text(r'<meta charset="unicode_escape"><p>\ud800 and \q')
    write_zip(folder / "drm.epub", {**EPUB, "META-INF/encryption.xml": ENCRYPTED, "c.xhtml": "\ufffd" * 500})
    write_zip(folder / "hollow.epub", {name: content for name, content in EPUB.items() if name != "c.xhtml"})
    (folder / "z.txt").write_text("The end.")
    report = tome.add(folder)
    assert report.added == (str(folder / "plain.html"), str(folder / "z.txt"))
    reasons = {path.rsplit("/", 1)[1]: reason for path, reason in report.skipped.items()}
    assert len(reasons) == 10
    assert "is protected by DRM" in reasons["drm.epub"]
    assert "lacks 1 of its 1 chapters" in reasons["hollow.epub"]
    assert all("is unknown: save it as UTF-8" in reasons[f"{number}.html"] for number in range(8))


@pytest.mark.parametrize("suffix", ["txt", "html"])
def test_japanese_in_seven_bits_is_read_as_what_it_is(tome, here, suffix):
    path = here / f"a.{suffix}"
    path.write_bytes("吾輩は猫である。\n".encode("iso2022_jp"))
    tome.add(path)
    assert tome.documents[str(path)].text.strip() == "吾輩は猫である。"


def test_an_error_of_a_reader_is_one_of_its_file(tome, here):
    """A list of chapters that is nested 100,000 deep: whatever the reader makes of it, other files are read."""
    folder = here / "all"
    folder.mkdir()
    write_zip(folder / "a.epub", {**EPUB, "o.opf": "<a>" * 100_000 + "</a>" * 100_000})
    (folder / "b.html").write_text("<p>One")
    report = tome.add(folder)
    assert report.added == (str(folder / "b.html"),)
    assert list(report.skipped) == [str(folder / "a.epub")]


def test_a_folder_where_nothing_can_be_read_names_the_reason(tome, here):
    folder = here / "all"
    folder.mkdir()
    write_zip(folder / "drm.epub", {**EPUB, "META-INF/encryption.xml": ENCRYPTED})
    with pytest.raises(ReadingError, match=r"nothing in the folder .*all can be read: drm\.epub: .* protected by DRM"):
        tome.add(folder)
