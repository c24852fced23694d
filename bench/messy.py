"""Thirty small files as they lie in a folder: columns, tables, clauses, chats, mail, notes, code, four languages."""

from __future__ import annotations

import csv
import json
import mailbox
import shutil
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

CLAUSES = (
    "The tenant is Halina Wrobel; the landlord is Castle Mead Estates.",
    "The rent is 845 pounds a month, due on the fifth day.",
    "The deposit of 975 pounds is held by the Deposit Service.",
    "The term is twelve months from 1 September 2023.",
    "Either party may end the lease with two months' notice in writing.",
    "No smoking is permitted in any part of the building.",
    "The tenant shall bleed the radiators each October.",
    "A late payment bears interest of 3 per cent above the base rate.",
    "The boiler is serviced by the landlord once a year.",
    "Subletting needs the landlord's written consent.",
)
STATEMENT = (
    ("Date", "Description", "Out", "In", "Balance"),
    ("01 Mar", "Balance brought forward", "", "", "2,310.40"),
    ("03 Mar", "Rent Castle Mead Estates", "845.00", "", "1,465.40"),
    ("05 Mar", "Salary Halberd Ltd", "", "2,875.00", "4,340.40"),
    ("11 Mar", "Dr Fenn, dentist", "164.50", "", "4,175.90"),
    ("19 Mar", "Northern Rail season ticket", "212.00", "", "3,963.90"),
)
PAPER = (
    "Abstract. We measured how far limpets travel from their home scar in one tide. "
    "Two hundred limpets were marked with nail varnish on the shore at Bracelet Bay.",
    "Methods. Each limpet was photographed every twelve minutes. A drone failed in the third week, so its pictures "
    "were left out. The observers were two students who did not know the hypothesis.",
    "Results. The median journey was 41 centimetres. Limpets on vertical rock travelled less than those on flat rock. "
    "Seven animals never came home.",
    "Discussion. We believe that the limpets follow their own trail of mucus. The work was paid for by the Gower "
    "Trust.",
)


PLAIN = Path(__file__).resolve().parent / "messy"


def make_folder(folder: Path) -> None:
    """Copy the plain files and write the others. Needs reportlab, python-docx, python-pptx, openpyxl and EbookLib."""
    shutil.copytree(PLAIN, folder)
    _make_pdfs(folder)
    _make_office_files(folder)
    _make_book(folder)
    _make_tables(folder)
    _make_mail(folder)
    cells = [
        ("markdown", "## Yield\nBarley gave 6.1 tonnes a hectare, oats 4.8."),
        ("code", "fields = load('fields.csv')\nfields.groupby('crop').mean()"),
        ("markdown", "The field *Long Acre* is left out: its scales were broken."),
    ]
    made = [{"cell_type": kind, "metadata": {}, "source": text} for kind, text in cells]
    (folder / "yield.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def _make_pdfs(folder: Path) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, SimpleDocTemplate, Table

    body = getSampleStyleSheet()["BodyText"]
    paper = BaseDocTemplate(str(folder / "paper.pdf"), title="Journeys of limpets")
    columns = [Frame(x, 500, 220, 250) for x in (50, 310)]
    paper.addPageTemplates(PageTemplate(frames=columns))
    paper.build([Paragraph(text, body) for text in PAPER])
    SimpleDocTemplate(str(folder / "statement.pdf")).build([Table(STATEMENT)])
    lease = [Paragraph(f"{number}. {clause}", body) for number, clause in enumerate(CLAUSES, 1)]
    SimpleDocTemplate(str(folder / "lease.pdf")).build(lease)


def _make_office_files(folder: Path) -> None:
    import docx
    import openpyxl
    import pptx

    book = docx.Document()
    book.add_heading("Staff handbook", 0)
    book.add_paragraph("Holiday is 27 days a year. Unused days expire at the end of March.")
    table = book.add_table(rows=0, cols=2)
    for cells in (("First aider", "Room"), ("Gwen Tait", "Stores"), ("Idris Lowe", "Workshop")):
        for cell, text in zip(table.add_row().cells, cells, strict=True):
            cell.text = text
    book.save(str(folder / "handbook.docx"))
    sheets = openpyxl.Workbook()
    for row in (["Item", "Planned", "Spent"], ["Roof", 12000, 13450], ["Organ", 3000, 0], ["Heating", 5400, 5120]):
        sheets.active.append(row)
    sheets.save(folder / "budget.xlsx")
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Launch"
    slide.placeholders[1].text = "Date: 14 June\nVenue: the old tram depot\nSpeaker: Amara Nwosu"
    slide.notes_slide.notes_text_frame.text = "Do not mention the delay of the second phase."
    deck.save(folder / "slides.pptx")


def _make_book(folder: Path) -> None:
    from ebooklib import epub

    book = epub.EpubBook()
    book.set_title("The Salt Road")
    texts = {
        "The Inn": "Bettina kept the inn at the ford. She had lost her left thumb to a millstone as a girl. "
        "Strangers paid in salt.",
        "The Pass": "Snow closed the pass on the eve of Saint Martin. The mule Ferrow carried the doctor up to the "
        "hermit, who had eaten poisoned mushrooms.",
    }  # fmt: skip
    for number, (title, text) in enumerate(texts.items()):
        page = epub.EpubHtml(title=title, file_name=f"{number}.xhtml")
        page.content = f"<h1>{title}</h1><p>{text}</p>"
        book.add_item(page)
        book.toc.append(page)
        book.spine.append(page)
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(folder / "salt.epub"), book)


def _make_tables(folder: Path) -> None:
    staff = [("Name", "Role", "Desk"), ("Okoro, Ada", "archivist", "3F-12"), ("Lindqvist, Per", "binder", "1B-02")]
    stock = [("part", "shelf", "count"), ("gasket 40 mm", "C7", "112"), ("float valve", "A2", "6")]
    for name, rows, dialect in (("staff.csv", staff, "excel"), ("stock.tsv", stock, "excel-tab")):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, dialect).writerows(rows)


def _make_mail(folder: Path) -> None:
    def write() -> Iterator[EmailMessage]:
        for sender, date, subject, text in (
            ("Lotte <lotte@mail.example>", "Mon, 08 Jan 2024 09:15:00 +0000", "Piano",
             "The tuner comes on Friday at ten. He wants the lid open and the cat out of the room."),
            ("Bram <bram@mail.example>", "Tue, 09 Jan 2024 18:30:00 +0000", "Re: Piano",
             "> The tuner comes on Friday at ten.\nI shall be in Ghent. The spare key is with the baker."),
            ("orders@seeds.example", "Wed, 10 Jan 2024 11:00:00 +0000", "Order 5518",
             "Thank you. Order 5518: 3 packets of sweet pea Matucana. Total 14.20 euros. Delivery in 8 days."),
        ):  # fmt: skip
            message = EmailMessage()
            message["From"], message["Date"], message["Subject"] = sender, date, subject
            message.set_content(text)
            yield message

    *letters, order = write()
    box = mailbox.mbox(folder / "letters.mbox")
    for message in letters:
        box.add(message)
    box.close()
    (folder / "order.eml").write_bytes(order.as_bytes())
