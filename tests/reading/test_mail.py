import mailbox
from email.message import EmailMessage

from tomewise.reading.mail import read_mbox
from tomewise.types.place import describe_place


def make_message(text: str = "The rain fell.", subject: str = "Wetter für Öl") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Anna Poe <anna@harbour.example>"
    message["To"] = "bob@harbour.example"
    message["Date"] = "Wed, 01 May 2024 12:04:00 +0200"
    message["Subject"] = subject
    message.set_content(text)
    return message


def test_a_message(read_document):
    document = read_document("a.eml", bytes(make_message("Grüße.\n")))
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


def test_plain_text_comes_before_html_and_attachments_are_named(read_document):
    message = make_message()
    message.add_alternative("<p>The <b>rain</b> fell.</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan of the town.pdf")
    message.add_attachment(make_message("Forwarded rain.", "Older"))
    text = read_document("a.eml", bytes(message)).text
    assert text.count("rain") == 2
    assert "<b>" not in text
    assert "[not read: plan of the town.pdf]" in text
    assert "Subject: Older\n\nForwarded rain." in text


def test_html_alone_is_read_as_a_page(read_document):
    message = make_message()
    message.set_content("<p>One</p><p>two</p>", subtype="html")
    assert read_document("a.eml", bytes(message)).text.endswith("One\n\ntwo")


def test_each_message_of_a_mailbox_is_a_document_and_an_encrypted_one_says_so(tmp_path):
    box = mailbox.mbox(tmp_path / "a.mbox")
    for number in range(3):
        box.add(make_message(f"From here it rained {number} times.", f"Number {number}"))
    box.add(b"Subject: s\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n")
    box.close()
    documents = list(read_mbox(tmp_path / "a.mbox"))
    assert [document.id for document in documents] == [f"{tmp_path}/a.mbox#{number}" for number in (1, 2, 3, 4)]
    assert [document.title for document in documents] == ["Number 0", "Number 1", "Number 2", "s"]
    assert "From here it rained 2 times." in documents[2].text
    assert documents[3].text.startswith("Subject: s\n\n[not read: encrypted text]")
