"""Tokens and sentences of plain text: laws, words of many languages, Unicode's tests of word breaks, time."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crfkit.text import Sentence, Token, sentences, tokenize, tokens
from crfkit.text.marks import BLANKS, mark_ranges
from crfkit.text.plain_text import plain_chunks
from crfkit.text.sentences import sentence_words

NEWER = int(unicodedata.unidata_version.split(".")[0]) > 15
BLANK = re.compile(rf"[\s{BLANKS}]")
# fmt: off
PIECES = st.sampled_from([
    *" \n\t.,'’\"-/:@#&+$%()!?…。！؟", "..", "''", "``", "U.N.", "Inc.", "Dr. ", "J. ", "No. ", "5", "'s", "n't", "l'",
    "The ", "the ", "A", "é", "e\u0301", "नि", "น้ำ", "שָׁ", "צה\"ל", "你好", "👍🏽", "👨\u200d👩", "🇪🇸", "1️⃣", "\u200c",
    "\u200b", "\ufeff", "\u200e", "\u00ad", "\u0308", "\x00", "\x85", "\u2028", "http://", "www.", "C++", "C#", "_",
])
HOSTILE = [
    "a", " ", ".", "a.", "a..", "a-", "A.b ", "'", "a'", "a's'", "http://", "www.,", "http://!", "@a", "a@", "#1", "C#",
    "$", "A$", "1,", "1.", "(.", ". (", ".) ", "! ", "a. ", "Dr. ", "J. ", "。", "\u0301", "e\u0301.", "👨\u200d", "🇪",
    "\n", "ש\"", "ש'", "-.-", "U.S.-", "%-a", "\u200b", "``", "....A", "l'", '"', '. "',
    "http://(", "http://a()", "www.(.",
]
# fmt: on
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@given(TEXTS)
@example("http://a(\u200b)b")
@example("a\u0308.\u2060 U.S.\u0301 1.\u0300\u0301")
def test_offsets(text):
    found = tokens(text)
    assert [token.text for token in found] == tokenize(text)
    covered = [False] * len(text)
    for token in found:
        assert text[token.start : token.end] == token.text
        assert token.text
        assert BLANK.search(token.text) is None
        for k in range(token.start, token.end):
            assert not covered[k]
            covered[k] = True
    assert all(covered[k] or BLANK.fullmatch(c) for k, c in enumerate(text))
    assert found == sorted(found, key=lambda token: token.start)


@given(TEXTS)
def test_sentences_are_the_tokens_in_parts(text):
    found = sentences(text)
    assert [token for sentence in found for token in sentence.tokens] == tokens(text)
    assert [[token.text for token in sentence.tokens] for sentence in found] == sentence_words(text)
    for sentence in found:
        assert (sentence.start, sentence.end) == (sentence.tokens[0].start, sentence.tokens[-1].end)
        assert not re.search(r"[\n\r\u2028]", text[sentence.start : sentence.end])


@given(TEXTS)
def test_marks_are_never_separated(text):
    """A token begins with a mark only if nothing but a blank is before it."""
    for token in tokens(text):
        if unicodedata.combining(token.text[0]):
            assert token.start == 0 or BLANK.fullmatch(text[token.start - 1])


def test_marks_are_those_of_unicode():
    """The table agrees with every character that this Python knows."""
    table = {code for first, last in mark_ranges() for code in range(first, last + 1)}
    blanks = re.compile(f"[{BLANKS}]")
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category in ("Cn", "Cs", "Co"):
            continue
        expected = (
            category in ("Mn", "Mc", "Me", "Cf") and not blanks.fullmatch(chr(code))
        ) or 0x1F3FB <= code <= 0x1F3FF
        if code not in table and category in ("Mn", "Mc", "Me", "Cf") and _newer_than_table(code):
            continue
        assert (code in table) == expected, f"U+{code:04X} {category}"


def _newer_than_table(code: int) -> bool:
    """Return whether a character may have come after Unicode 15, which the table has."""
    return tuple(map(int, unicodedata.unidata_version.split("."))) > (15, 1) and code > 0x870


# fmt: off
LANGUAGES = {
    "English": ("Mr. Jones's dog didn't bark (at 10:30 p.m.), did it?",
                "Mr.|Jones|'s|dog|did|n't|bark|(|at|10:30|p.m.|)|,|did|it|?"),
    "Spanish": ("¿Cuánto pagó el Sr. Núñez-Roca por 3,5 kg de EE.UU.?",
                "¿|Cuánto|pagó|el|Sr.|Núñez-Roca|por|3,5|kg|de|EE.UU.|?"),
    "German": ("Am 3. Mai kam Frau Dr. Müller-Groß z.B. nach Köln.",
               "Am|3|.|Mai|kam|Frau|Dr.|Müller-Groß|z.B.|nach|Köln|."),
    "French": ("L’homme d'État n'est pas là aujourd'hui, M. Dupont.",
               "L’|homme|d'|État|n'|est|pas|là|aujourd'hui|,|M.|Dupont|."),
    "Italian": ("Dell'arte c'è più in città che all'università.",
                "Dell'|arte|c'|è|più|in|città|che|all'|università|."),
    "Catalan": ("La col·lecció de l'àvia costa 1.200 €.", "La|col·lecció|de|l'|àvia|costa|1.200|€|."),
    "Portuguese": ("A Sra. João comprou pão-de-ló às 9h30.", "A|Sra.|João|comprou|pão-de-ló|às|9h30|."),
    "Dutch": ("De coördinator reed zo'n 80 km.", "De|coördinator|reed|zo'n|80|km|."),
    "Polish": ("Żółć źdźbło, Łódź!", "Żółć|źdźbło|,|Łódź|!"),
    "Turkish": ("İstanbul'da ışık çok güzel.", "İstanbul'da|ışık|çok|güzel|."),
    "Vietnamese": ("Tiếng Việt rất đẹp.", "Tiếng|Việt|rất|đẹp|."),
    "Russian": ("А. С. Пушкин родился в 1799 г., т.е. давно.", "А.|С.|Пушкин|родился|в|1799|г.|,|т.е.|давно|."),
    "Ukrainian": ("П'ять об'єктів у Києві.", "П'ять|об'єктів|у|Києві|."),
    "Greek": ("Η Αθήνα είναι όμορφη, π.χ. το βράδυ.", "Η|Αθήνα|είναι|όμορφη|,|π.χ.|το|βράδυ|."),
    "Armenian": ("Բարեւ ձեզ։", "Բարեւ|ձեզ|։"),
    "Georgian": ("გამარჯობა, მსოფლიო!", "გამარჯობა|,|მსოფლიო|!"),
    "Arabic": ("ذَهَبَ مُحَمَّدٌ إِلَى المَدْرَسَةِ، أليس كذلك؟", "ذَهَبَ|مُحَمَّدٌ|إِلَى|المَدْرَسَةِ|،|أليس|كذلك|؟"),
    "Persian": ("من می\u200cخواهم کتاب\u200cها را بخوانم.", "من|می\u200cخواهم|کتاب\u200cها|را|بخوانم|."),
    "Hebrew": ("שָׁלוֹם לְצה\"ל, ג'ירפה וג׳ירפה.", "שָׁלוֹם|לְצה\"ל|,|ג'ירפה|וג׳ירפה|."),
    "Hindi": ("नमस्ते दुनिया, मैं हिन्दी सीखता हूँ।", "नमस्ते|दुनिया|,|मैं|हिन्दी|सीखता|हूँ|।"),
    "Bengali": ("আমি বাংলায় গান গাই।", "আমি|বাংলায়|গান|গাই|।"),
    "Tamil": ("தமிழ் மொழி இனிமையானது.", "தமிழ்|மொழி|இனிமையானது|."),
    "Telugu": ("తెలుగు భాష అందంగా ఉంది.", "తెలుగు|భాష|అందంగా|ఉంది|."),
    "Amharic": ("ሰላም ለዓለም።", "ሰላም|ለዓለም|።"),
    "Korean": ("안녕하세요, 세계!", "안녕하세요|,|세계|!"),
    # without blanks, a run is a token
    "Thai": ("ภาษาไทย น้ำ ที่นี่", "ภาษาไทย|น้ำ|ที่นี่"),
    "Lao": ("ພາສາລາວ ນ້ຳ", "ພາສາລາວ|ນ້ຳ"),
    "Khmer": ("ខ្ញុំ\u200bស្រឡាញ់ កម្ពុជា។", "ខ្ញុំ|ស្រឡាញ់|កម្ពុជា|។"),
    "Burmese": ("မြန်မာ ဘာသာ။", "မြန်မာ|ဘာသာ|။"),
    "Chinese": ("我在北京工作，你呢？", "我在北京工作|，|你呢|？"),
    "Japanese": ("東京タワーへ行く。スーパー！", "東京タワーへ行く|。|スーパー|！"),
}
# fmt: on


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_languages(language, form):
    text, expected = (unicodedata.normalize(form, part) for part in LANGUAGES[language])
    assert "|".join(tokenize(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the U.N. and non-U.S. firms", "the|U.N.|and|non-U.S.|firms"),
        ("He left the U.N.", "He|left|the|U.N."),
        ("Acme Inc. said", "Acme|Inc.|said"),
        ("It is Acme Inc.", "It|is|Acme|Inc|."),  # the full stop of the sentence
        ("Acme Inc. The firm", "Acme|Inc|.|The|firm"),
        ("Acme Ltd., a firm", "Acme|Ltd.|,|a|firm"),
        ("Ph.D. e.g. i.e. a.m.", "Ph.D.|e.g.|i.e.|a.m."),
        ("J. P. Morgan of plan B.", "J.|P.|Morgan|of|plan|B|."),
        ("No. 5 on Mar. 3, but no.", "No.|5|on|Mar.|3|,|but|no|."),
        ("in Springfield, Ill. and ill.", "in|Springfield|,|Ill.|and|ill|."),
        ("Calif.-based 80%-owned", "Calif.-based|80%-owned"),
        ("See https://a.org/b?c=d&e#f, (http://x.org/).", "See|https://a.org/b?c=d&e#f|,|(|http://x.org/|)|."),
        ("(https://a.org/Crab_(animal)), https://a.org/(b", "(|https://a.org/Crab_(animal)|)|,|https://a.org/|(|b"),
        ("av. J.-C. et Dipl.-Ing. Maier", "av.|J.-C.|et|Dipl.-Ing.|Maier"),
        ("www.a.org. ada@a-b.org a_b.tar.gz", "www.a.org|.|ada@a-b.org|a_b.tar.gz"),
        ("#tag @ada #5 C++ C# F#.", "#tag|@ada|#|5|C++|C#|F#|."),
        ("10:30 1/2/2020 1,234.50 .50 $3 US$3 50%", "10:30|1/2/2020|1,234.50|.50|$|3|US$|3|50|%"),
        ("yes,no 1,2", "yes|,|no|1,2"),
        ("don't we'll Anna’s '90s O'Brien companies'", "do|n't|we|'ll|Anna|’s|'90s|O'Brien|companies|'"),
        ("Germany 's do n't", "Germany|'s|do|n't"),  # divided before
        ("D'Arcy l'homme D'abord", "D'Arcy|l'|homme|D'|abord"),
        ("wait... -- ``so'' ....", "wait|...|--|``|so|''|...|."),
        ("👍🏽👨‍👩‍👧🇪🇸🇫🇷❤️1️⃣", "👍🏽|👨‍👩‍👧|🇪🇸|🇫🇷|❤️|1️⃣"),
        ("\u200eabc\ufeff d\u200be", "abc|d|e"),
        ("ex\u00adample", "ex\u00adample"),
        ("AT&T and/or New-York", "AT&T|and/or|New-York"),
    ],
)
def test_words(text, expected):
    assert "|".join(tokenize(text)) == expected


# --- sentences


@pytest.mark.parametrize(
    "text",
    [
        "He left.|She stayed.|It rained!|Why?",
        "“Why?” he said.|“No.”|Then he left (at last.)|So?",
        "The U.S. Senate met.|It was in the U.S.|The end.",
        "He sold Acme Inc.|The price rose.|Acme Corp. Chairman Smith left.",
        "Dr. J. Smith and Mrs. Who came.|They left.",
        "1. Introduction|2. Methods",
        "He runs Yahoo! Inc. from home.|Yes!",
        "Am 3. Mai kam er.|Dann ging er.",
        "El Sr. Roca pagó 3.50 €.|¿Quién?|¡Él!|No.",
        "well... maybe.|Wait...|No.",
        "你好。|再见！|好吗？",
        "नमस्ते।|आप कैसे हैं?",
        "مرحبا.|كيف حالك؟|جيد.",
        "Visit www.a.org.|Or mail a@b.org.",
        "i went home. then i slept.",  # nothing says that a lower-case word begins a sentence
        "ภาษาไทย ภาษาไทย",
    ],
)
def test_sentences(text):
    parts = text.split("|")
    for gap in (" ", "\n"):
        whole = gap.join(parts)
        if gap == " " and text.startswith("1. "):
            continue
        assert [whole[s.start : s.end] for s in sentences(whole)] == parts


def test_results_are_plain_tuples():
    assert tokens("") == [] == sentences(" \n\n")
    assert sentences("Hi.\n\nHo") == [
        Sentence([Token("Hi", 0, 2), Token(".", 2, 3)], 0, 3),
        Sentence([Token("Ho", 5, 7)], 5, 7),
    ]


def test_files_of_plain_text():
    blocks = [b"\xef\xbb\xbfOne. Two.\n\nThr", b"ee"]
    assert b"".join(plain_chunks(blocks, "text", "t")) == b"One\n.\n\nTwo\n.\n\nThree\n\n"
    assert b"".join(plain_chunks([b"One. Two.\n"], "words", "t")) == b"One.\nTwo.\n\n"
    from crfkit.text.plain_text import tokenize as before

    assert before is tokenize


# --- Unicode

BREAKS = Path("/usr/share/unicode/auxiliary/WordBreakTest.txt")
INSIDE = set("-'’./:@&+·,")  # signs that crfkit joins to more words than Unicode does


@pytest.mark.skipif(not BREAKS.is_file(), reason="needs Unicode's WordBreakTest.txt (Debian's package unicode-data)")
def test_word_breaks_of_unicode():
    """Where tokens and Unicode's words differ, it is for one of the reasons below."""
    checked = 0
    for line in BREAKS.read_text(encoding="utf-8").splitlines():
        cells = line.split("#")[0].split()
        text, breaks = "".join(chr(int(code, 16)) for code in cells[1::2]), [cell == "÷" for cell in cells[::2]]
        found = tokens(text)
        inside = {k for token in found for k in range(token.start + 1, token.end)}
        for k in range(1, len(text)):
            a, b = text[k - 1], text[k]
            if breaks[k] != (k in inside):
                continue
            checked += 1
            if k in inside:  # crfkit joins
                base = text[max((j for j in range(k) if not _is_mark(text[j])), default=0)]
                run_of_letters = re.fullmatch(r"\w\w", base + b) is not None  # 〱 and letters; there is no dictionary
                assert INSIDE & {base, b} or run_of_letters or "\u200d" in (a, b), (line, k)
            else:  # crfkit divides
                after_blank = BLANK.fullmatch(a) is not None  # a mark on a blank is a token
                joined_emoji = a == "\u200d" and unicodedata.category(b) == "So"  # a letter, U+200D and an emoji
                gershayim = b == "'" and _is_mark(a)  # a Hebrew letter, a mark and an apostrophe
                assert after_blank or joined_emoji or gershayim, (line, k)
    assert checked


def _is_mark(c: str) -> bool:
    return unicodedata.category(c) in ("Mn", "Mc", "Me", "Cf")


# --- time


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear(piece):
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        times = []
        for _ in range(3):
            begin = time.process_time()
            sentence_words(text)
            times.append(time.process_time() - begin)
        return min(times)

    seconds(1000)
    assert seconds(160_000) < 16 * 3 * max(seconds(10_000), 0.002)
