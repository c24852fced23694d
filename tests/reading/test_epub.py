from pathlib import Path

import pytest
from tests.reading.documents import EPUB, write_zip

from tomewise.errors import ReadingError
from tomewise.reading.epub import read_epub

CHAPTER = "<html><body><p>{}</p></body></html>"


def encryption(algorithm: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"'
        ' xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>'
        f'<enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>'
    )


def package(manifest: str, spine: str) -> str:
    return (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>The\n Town</dc:title></metadata><manifest>{manifest}</manifest><spine>{spine}</spine></package>"
    )


def test_a_book(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.epub", EPUB)
    (document,) = read_epub(path)
    assert (document.title, document.text) == ("The Town", "# One\n\nThe rain fell.")
    assert (document.id, document.source) == (str(path), str(path))


def test_chapters_come_in_the_order_of_the_spine_from_where_the_package_says(tmp_path: Path) -> None:
    manifest = (
        '<item id="b" href="text/ch%202.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="text/ch1.xhtml#top" media-type="application/xhtml+xml"/>'
        '<item id="i" href="i.svg" media-type="image/svg+xml"/>'
        '<item id="e" href="text/empty.xhtml" media-type="application/xhtml+xml"/>'
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in "aieb")
    parts = {
        "META-INF/container.xml": EPUB["META-INF/container.xml"].replace("o.opf", "OPS/o.opf"),
        "OPS/o.opf": package(manifest, spine),
        "OPS/text/ch1.xhtml": CHAPTER.format("One."),
        "OPS/text/ch 2.xhtml": CHAPTER.format("Two."),
        "OPS/text/empty.xhtml": CHAPTER.format(""),
    }
    (document,) = read_epub(write_zip(tmp_path / "a.epub", parts))
    assert (document.title, document.text) == ("The Town", "One.\n\nTwo.")


@pytest.mark.parametrize("kind", ["text/x-oeb1-document", "application/xml", "text/xml", "Application/XHTML+XML"])
def test_chapters_of_old_books_are_read_whatever_their_type_is_called(kind: str, tmp_path: Path) -> None:
    listed = package(f'<item id="c" href="c.xhtml" media-type="{kind}"/>', '<itemref idref="c"/>')
    (document,) = read_epub(write_zip(tmp_path / "a.epub", {**EPUB, "o.opf": listed}))
    assert "The rain fell." in document.text


def test_a_chapter_of_no_bytes_is_passed_over(tmp_path: Path) -> None:
    pages = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="text/html"/>' for name in "bc")
    listed = package(pages, '<itemref idref="b"/><itemref idref="c"/>')
    (document,) = read_epub(write_zip(tmp_path / "a.epub", {**EPUB, "o.opf": listed, "b.xhtml": ""}))
    assert document.text == "# One\n\nThe rain fell."


def test_scrambled_fonts_are_no_protection(tmp_path: Path) -> None:
    fonts = {"META-INF/encryption.xml": encryption("http://www.idpf.org/2008/embedding")}
    (document,) = read_epub(write_zip(tmp_path / "a.epub", {**EPUB, **fonts}))
    assert "The rain fell." in document.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"META-INF/encryption.xml": encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")}, "protected by DRM"),
        ({"c.xhtml": None}, r"lacks 1 of its 1 chapters \(c.xhtml\): get the whole book"),
        ({"o.opf": package("", "")}, "lists no chapters"),
        ({"META-INF/container.xml": "<container/>"}, "does not name a list of its chapters"),
        ({"META-INF/container.xml": None}, "could not be converted: .*container.xml"),
        ({"o.opf": None}, "could not be converted: .*o.opf"),
        ({"o.opf": "<package>"}, "could not be converted: no element found|could not be converted: "),
        ({"c.xhtml": "\x01\x02\x03\x00"}, "the chapter c.xhtml of .* is binary, not text"),
    ],
)
def test_a_book_that_cannot_be_read_is_refused_with_the_reason(changed, message: str, tmp_path: Path) -> None:
    parts = {name: content for name, content in {**EPUB, **changed}.items() if content is not None}
    path = write_zip(tmp_path / "a.epub", parts)
    with pytest.raises(ReadingError, match=message) as caught:
        read_epub(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    path.write_bytes(b"this is no book at all")
    with pytest.raises(ReadingError, match="could not be converted: File is not a zip file"):
        read_epub(path)


def test_a_page_that_is_listed_often_is_read_once(tmp_path: Path) -> None:
    manifest = '<item id="a" href="a.xhtml"/><item id="b" href="a.xhtml#end"/>'
    spine = '<itemref idref="a"/><itemref idref="b"/>' * 1_000
    parts = {**EPUB, "o.opf": package(manifest, spine), "a.xhtml": CHAPTER.format("The rain fell.")}
    (document,) = read_epub(write_zip(tmp_path / "a.epub", parts))
    assert document.text == "The rain fell."
