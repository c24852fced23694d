"""Files that are not UTF-8: which letters they hold, and that a guess is in their metadata."""

import pytest

from tomewise import Tome
from tomewise.settings import Settings

# Each sentence has letters that are not in ASCII.
SENTENCES = {
    "pt": ("cp1252", "À noite não há ninguém na estação. A canção começou às três horas. Você também não vê o avô?"),
    "es": ("cp1252", "El niño llegó mañana por la mañana. ¿Dónde está el último señor? La canción del ñandú es única."),
    "fr": ("cp1252", "Le garçon a été très déçu. Où êtes-vous allés cet été ? La sœur de Zoë a mangé un gâteau."),
    "de": ("cp1252", "Die Straße ist für Fußgänger gesperrt. Er fährt über die Brücke. Schöne Grüße aus München."),
    "it": ("cp1252", "La città è molto bella. Perché non c'è più nessuno? Lunedì andrò all'università."),
    "sv": ("cp1252", "Båten låg på sjön hela våren. Kråkan åt äpplet på öster sida. Flickan går över ängen."),
    "da": ("cp1252", "Rødgrød med fløde er på bordet. Drengen går over åen. Hun så sin søster på øen."),
    "fi": ("cp1252", "Mäki oli hyvin jyrkkä. Tyttö söi äidin tekemää leipää. Hän lähti eilen kotiin."),
    "is": ("cp1252", "Það er kalt í dag. Þórður fór til Reykjavíkur. Hún á þrjú börn."),
    "en": ("cp1252", "It’s a “test” — really. The café is open. He paid £5 for it."),
    "pl": ("cp1250", "Zażółć gęślą jaźń. Chłopiec poszedł do szkoły w środę. Mój brat pracuje w Łodzi."),
    "cs": ("cp1250", "Děti šly do školy. Můj bratr žije v Plzni. Říkal, že přijde zítra."),
    "hu": ("cp1250", "Árvíztűrő tükörfúrógép. Köszönöm szépen a segítséget. Nagyon szép idő van ma."),
    "tr": ("cp1254", "Çocuk okula gitti. Bugün hava çok güzel değil mi? İstanbul büyük bir şehirdir."),
    "ru": ("cp1251", "Мальчик пошёл в школу. Сегодня очень холодно. Где ты живёшь?"),
    "ru-koi8": ("koi8-r", "Мальчик пошёл в школу. Сегодня очень холодно. Где ты живёшь?"),
    "el": ("cp1253", "Το αγόρι πήγε στο σχολείο. Σήμερα κάνει κρύο. Ο αδελφός μου δουλεύει στην πόλη."),
    "he": ("cp1255", "הילד הלך לבית הספר. היום קר מאוד. אחי עובד בעיר."),
    "ja": ("shift_jis", "少年は学校へ行った。今日はとても寒い。あなたはどこに住んでいますか。"),
    "zh": ("gb18030", "男孩去了学校。今天很冷。你住在哪里？"),
    "ko": ("cp949", "소년은 학교에 갔다. 오늘은 매우 춥다. 어디에 사십니까?"),
}


@pytest.mark.parametrize("repeats", [1, 30])
@pytest.mark.parametrize("language", SENTENCES)
def test_a_few_sentences_of_a_language_have_their_letters(language, repeats, read_document):
    encoding, text = SENTENCES[language]
    text = " ".join([text] * repeats)
    document = read_document("a.csv", text.replace(",", "").encode(encoding, "replace"))
    assert document.text.replace("\n\n", " ") == text.replace(",", "")
    assert document.metadata["encoding"].endswith(" (guessed)")


@pytest.mark.parametrize("language", ["pt", "es", "fr", "de", "it", "sv", "da", "fi", "en", "pl", "ru", "el"])
def test_most_single_sentences_have_their_letters(language, read_document):
    encoding, text = SENTENCES[language]
    sentences = text.replace("?", ".").replace(",", "").split(". ")
    right = [read_document("a.csv", each.encode(encoding)).text == each for each in sentences]
    assert sum(right) >= len(right) - 1


@pytest.mark.parametrize("name", ["a.csv", "a.srt", "a.html", "a.json", "a.yaml"])
def test_one_rule_holds_for_all_formats_and_the_guess_is_said(name, read_document):
    text = SENTENCES["pt"][1]
    whole = f"1\n00:00:01,000 --> 00:00:02,000\n{text}" if name == "a.srt" else text
    document = read_document(name, whole.encode("cp1252"))
    assert "À noite não há ninguém na estação" in document.text
    assert document.metadata["encoding"] == "cp1252 (guessed)"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_needs_no_mark(encoding, read_document):
    text = "Name,Town\nAda Muñoz,Łódź\n"
    assert read_document("a.csv", text.encode(encoding)).text == "Name: Ada Muñoz; Town: Łódź"


def test_a_stated_encoding_counts_for_what_is_not_utf_8(here):
    folder = here / "notes"
    folder.mkdir()
    (folder / "old.txt").write_bytes("Zażółć".encode("cp852"))
    (folder / "old.csv").write_bytes("Name,Sum\nZażółć,3".encode("cp852"))
    (folder / "new.txt").write_text("Zażółć", encoding="utf-8")
    with Tome.open("a.tome", embedder="hash", settings=Settings(encoding="cp852")) as tome:
        tome.add(folder)
        texts = sorted(tome.documents[each.id].text for each in tome.documents())
    assert texts == ["Name: Zażółć; Sum: 3", "Zażółć", "Zażółć"]


def test_an_unknown_encoding_is_refused(command):
    assert "the encoding 'cp99' is unknown" in command("add", "--encoding", "cp99", __file__).err
