"""A record is quoted whole, with its lines; a sentence that goes on over lines is not."""

import pytest

from tomewise.text.quotable import find_sentences
from tomewise.text.record_lines import fold_lines

RECORDS = {
    "statement": ["01 Mar Opening balance 2,180.22", "05 Mar Salary Halberd Ltd 2,875.00", "06 Mar Rent 900.00"],
    "chat": ["[12/03/2024, 18:04] Theo: Hi. So?", "[12/03/2024, 18:05] Mia: 4#.\nKeep", "[12/03/2024, 18:06] Theo: ok"],
    "log": ["2024-03-01 12:00 start. Fine", "2024-03-01 12:01 stop"],
    "rows": ["Name: Ann; Note: She left. She came.", "Name: Bo; Note: He sat."],
    "grid": ["| Ann | She left. She came |", "| Bo | - |"],
    "tabs": ["Ann\t3\t4", "Bo\t5\t6"],
    "columns": ["Ann Marsh      31   Holm", "Bo Obel        44   Arvik"],
    "amounts": ["Oak planks 1,200.50", "Rope 8.00 €"],
}  # fmt: skip


@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_each_record_is_one_quotation(records, gap):
    text = gap.join(records)
    assert [text[start:end] for start, end in find_sentences(text)] == records
    assert fold_lines("\n".join(records)) == "\n".join(
        " ".join(line.split()) for each in records for line in each.split("\n")
    )


def test_wrapped_prose_is_cut_at_sentences_and_shown_in_one_line():
    text = "The man, who came\nfrom the north at 12:30\non 05 May, had horses. He left.\nIt rained."
    assert [text[start:end] for start, end in find_sentences(text)][1:] == ["He left.", "It rained."]
    assert "\n" not in fold_lines(text)
