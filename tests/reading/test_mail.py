import mailbox
import time
from email.message import EmailMessage
from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.place import describe_place
from tomewise.reading.mail import read_eml, read_mbox


def make_message(text: str = "The rain fell.", subject: str = "Wetter für Öl") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Anna Poe <anna@harbour.example>"
    message["To"] = "bob@harbour.example"
    message["Date"] = "Wed, 01 May 2024 12:04:00 +0200"
    message["Subject"] = subject
    message.set_content(text)
    return message


def write(path: Path, message: EmailMessage) -> Path:
    path.write_bytes(bytes(message))
    return path


def test_a_message(tmp_path: Path) -> None:
    (document,) = read_eml(write(tmp_path / "a.eml", make_message("Grüße.\n")))
    assert document.title == "Wetter für Öl"
    assert document.text == (
        "From: Anna Poe <anna@harbour.example>\nTo: bob@harbour.example\nDate: Wed, 01 May 2024 12:04:00 +0200\n"
        "Subject: Wetter für Öl\n\nGrüße."
    )
    assert document.metadata == {
        "author": "Anna Poe",
        "from": "Anna Poe <anna@harbour.example>",
        "to": "bob@harbour.example",
        "date": "2024-05-01 12:04",
    }
    assert [describe_place(place) for _, place in document.marks] == ["2024-05-01 12:04, Anna Poe"]


def test_plain_text_comes_before_html_and_attachments_are_named(tmp_path: Path) -> None:
    message = make_message()
    message.add_alternative("<p>The <b>rain</b> fell.</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan of the town.pdf")
    inner = make_message("Forwarded rain.", "Older")
    message.add_attachment(inner)
    (document,) = read_eml(write(tmp_path / "a.eml", message))
    assert document.text.count("rain") == 2
    assert "<b>" not in document.text
    assert "[not read: plan of the town.pdf]" in document.text
    assert "Subject: Older\n\nForwarded rain." in document.text


def test_html_alone_and_unknown_letters(tmp_path: Path) -> None:
    message = make_message()
    message.set_content("<p>One</p><p>two</p>", subtype="html")
    assert read_eml(write(tmp_path / "a.eml", message))[0].text.endswith("One\n\ntwo")
    (tmp_path / "b.eml").write_bytes(
        b"Subject: =?x-odd?q?=ff?=\nContent-Type: text/plain; charset=x-odd\n\ncaf\xc3\xa9 \xff."
    )
    assert "café" in read_eml(tmp_path / "b.eml")[0].text


def test_each_message_of_a_mailbox_is_a_document(tmp_path: Path) -> None:
    box = mailbox.mbox(tmp_path / "a.mbox")
    for number in range(3):
        box.add(make_message(f"From here it rained {number} times.", f"Number {number}"))
    box.close()
    documents = list(read_mbox(tmp_path / "a.mbox"))
    assert [document.id for document in documents] == [f"{tmp_path}/a.mbox#{number}" for number in (1, 2, 3)]
    assert [document.title for document in documents] == ["Number 0", "Number 1", "Number 2"]
    assert "From here it rained 2 times." in documents[2].text


def test_an_encrypted_message_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(b"Subject: s\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n")
    with pytest.raises(ReadingError, match=r"a\.eml is an encrypted message"):
        read_eml(path)
    box = tmp_path / "a.mbox"
    box.write_bytes(b"From a Wed May  1 12:04:00 2024\n" + path.read_bytes())
    (document,) = read_mbox(box)
    assert document.text.startswith("Subject: s\n\n[not read: encrypted text]")


def test_what_is_not_mail_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("The rain fell.")
    with pytest.raises(ReadingError, match="is not a message"):
        read_eml(tmp_path / "a")
    with pytest.raises(ReadingError, match="holds no messages"):
        list(read_mbox(tmp_path / "a"))


LONG_TYPE = '"a;' * 20_000


@pytest.mark.parametrize("name", ["Content-Type", "Content-Disposition"])
def test_a_long_type_takes_no_quadratic_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text(f"From: a@example.org\nSubject: Rain\n{name}: text/plain; boundary={LONG_TYPE}\n\nIt rains.\n")
    started = time.thread_time()
    (document,) = read_eml(path)
    assert time.thread_time() - started < 5  # a tenth of a second; minutes where it is quadratic
    assert document.title == "Rain"
