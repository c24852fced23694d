import pytest
from tests.reading.documents import EPUB, write_zip

from tomewise.types import Place

CHAPTER = "<html><body><p>{}</p></body></html>"
ITEM = '<item id="{}" href="{}" media-type="{}"/>'
XHTML = "application/xhtml+xml"


@pytest.fixture
def read_book(tmp_path, read_document):
    """Write a book with these items and this order of their ids, and further or other parts, and read it."""

    def read(items: str = "", order: str = "", parts: dict[str, str] = {}, at: str = "o.opf"):  # noqa: B006
        head = '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        spine = "".join(f'<itemref idref="{name}"/>' for name in order)
        listed = f"{head}<dc:title>The\n Town</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine>"
        write_zip(tmp_path / "a.epub", {**EPUB, **({at: f"{listed}</package>"} if items else {}), **parts})
        return read_document("a.epub")

    return read


def test_a_book(read_book, tmp_path):
    document = read_book()
    assert (document.title, document.text) == ("The Town", "# One\n\nThe rain fell.")
    assert (document.id, document.source) == (str(tmp_path / "a.epub"),) * 2
    assert document.marks == ((0, Place(chapter=("One",))),)


def test_chapters_come_in_the_order_of_the_spine_from_where_the_package_says(read_book):
    items = (
        ITEM.format("b", "text/ch%202.xhtml", XHTML)
        + ITEM.format("a", "text/ch1.xhtml#top", XHTML)
        + ITEM.format("i", "i.svg", "image/svg+xml")
        + ITEM.format("e", "text/empty.xhtml", XHTML)
        + ITEM.format("n", "text/no-bytes.xhtml", XHTML)
    )
    parts = {
        "META-INF/container.xml": EPUB["META-INF/container.xml"].replace("o.opf", "OPS/o.opf"),
        "OPS/text/ch1.xhtml": CHAPTER.format("One."),
        "OPS/text/ch 2.xhtml": CHAPTER.format("Two."),
        "OPS/text/empty.xhtml": CHAPTER.format(""),
        "OPS/text/no-bytes.xhtml": "",
    }
    document = read_book(items, "aienb", parts, at="OPS/o.opf")
    assert (document.title, document.text) == ("The Town", "One.\n\nTwo.")


@pytest.mark.parametrize("kind", ["text/x-oeb1-document", "application/xml", "text/xml", "Application/XHTML+XML"])
def test_chapters_of_old_books_are_read_whatever_their_type_is_called(kind, read_book):
    assert "The rain fell." in read_book(ITEM.format("c", "c.xhtml", kind), "c").text


def test_a_page_that_is_listed_often_is_read_once(read_book):
    items = '<item id="a" href="a.xhtml"/><item id="b" href="a.xhtml#end"/>'
    assert read_book(items, "ab" * 1_000, {"a.xhtml": CHAPTER.format("The rain fell.")}).text == "The rain fell."
