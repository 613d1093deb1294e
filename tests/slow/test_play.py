"""Edits of a newcomer where a notebook says "change me" raise no error."""

import nbformat
import pytest

from publish.notebooks import main_line, run
from tests.helpers import ROOT

# texts that several rounds replace
WORD_COUNTS = '{"flies": 4, "tries": 3, "fly": 2, "pie": 2}'
FIRST_PAIR = '("Time flies like an arrow", "fruit flies like a banana")'
GROUPS = '"monday tuesday friday three four five dog cat horse red blue green"'
SENTENCES = 'sentences = ["I called Ian. I got his answering machine.", "time flies like an arrow"]'
BARKS = 'pair = ["the bark of a palm tree is very rough", "time flies like an arrow"]'
IAN = 'sentence = "I called Ian. I got his answering machine."'
IAN_PAIR = 'text_or_pair(("I called Ian.", "I got his answering machine."))'
LADDER = """\
I called Ian. | I got his answering machine.
time flies like an arrow | fruit flies like a banana
an unaffable café | so do seals"""
TEXTS = 'texts = ["the bark of a palm tree is very rough", "time flies like an arrow", "dogs bark"]'
TEXT_OF_IAN = 'text = "I called Ian. I got his answering machine."'
IAN_BATCH = 'ian = to_batch("I called Ian. I got his answering machine.")'

SHOP = 'read_or_example(SHOP_EMAILS, text="text", label="label")'
UNPACK = "def unpack(packed, attention_mask):\n    return "

# by notebook: rounds of edits, each a text of the notebook and its replacement
EDITS = {
    "00_overview": [
        [
            (TEXT_OF_IAN, 'text = "The boss fired the clerk. He lost his job."'),
            ('rows=french, mask="causal"', 'values=[1, 3, 5, 7, 14], mask="padding"'),
            ("prediction = None", "prediction = 0.1"),
        ],
        [
            (TEXT_OF_IAN, 'text = "北京 🙂 xyzzyqux"'),
            ('["apple", "pear", "banana"]', '["blackberry", "", "Zürich", "amazon web"]'),
        ],
        [
            (TEXT_OF_IAN, 'text = ""'),
            ("prediction = None", 'prediction = "none at all"'),
        ],
        [
            (IAN_BATCH, 'ian = to_batch("Hi")'),
            ("mask_painter(english,", 'mask_painter([*english, "today"],'),
            (TEXT_OF_IAN, 'text = "He said he would. She did not. Nobody knew about their cars."'),
        ],
        [
            (IAN_BATCH, 'ian = to_batch("")'),
            ('mask="causal"', 'mask="window"'),
            ('["apple", "pear", "banana"]', "[]"),
        ],
        [
            (IAN_BATCH, 'ian = to_batch(["I got HIS car.", "Her dog."])'),
        ],
    ],
    "01_tokenization": [
        [
            ('["café", "CAFÉ", "cafe", "ca\\u200bfé"]', '["naïve", "NAÏVE", "", "北京"]'),
            ('"José can\'t tokenize!"', '"北京 is 2,200 km away 🙂 [MASK]…"'),
            ('["time", "like", "fl", "f", "##l", "##y", "##ies"]', '["a", "##a"]'),
            ('"tokenization unbelievably ChatGPT"', '"Zürich ทดสอบ flies flies"'),
            ('("Who called?", "Ian.")', '("one text alone", "")'),
        ],
        [
            ('"José can\'t tokenize!"', '""'),
            ('["time", "flies", "fly", "flip"]', '["aaaa", "", "a" * 180]'),
            ('["time", "like", "fl", "f", "##l", "##y", "##ies"]', "[]"),
            ("prediction = None", "prediction = 5"),
        ],
        [
            (WORD_COUNTS, "{}"),
            (FIRST_PAIR, '("one", "two", "three")'),
            ('to_ids("time flies like an arrow")', 'to_ids("🙂 [MASK] ☃")'),
            ("Supercalifragilistic naïve cafés 🙂, and José can't", ""),
        ],
        [
            (WORD_COUNTS, '{"a": 1}'),
            ('("Who called?", "Ian.")', '"a single text"'),
            ('["café", "CAFÉ", "cafe", "ca\\u200bfé"]', '"café"'),
            ("prediction = None", 'prediction = ("##ies", "fl")'),
            ('longest_match(official, "unaffable")', 'longest_match(official, "Zürich 北京 [MASK]")'),
            ("merges(reviews[:12])", 'merges(["aa aa ab"])'),
        ],
        [
            (WORD_COUNTS, '{"flies": 0, "": 3, "banana": 7}'),
            (FIRST_PAIR, '("word " * 700, "")'),
            ("tokenization unbelievably ChatGPT", ""),
        ],
    ],
    "02_embeddings": [
        [
            ('"flies like flies"', '"hello world"'),
            ('sentence = "time flies like an arrow"', 'sentence = "Antidisestablishmentarianism matters? 🤖"'),
            ('my_sentences = "", ""', 'my_sentences = "bank bank bank", ""'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = "flies flies chatgpt"'),
        ],
        [
            (GROUPS, '"cat"'),
            ('my_sentences = "", ""', 'my_sentences = "only one sentence"'),
            ('["king", "tuesday", "doctor", "good"]', '["Zürich", "", "KING"]'),
            ("[2, 4, 4, 4, 5, 5, 7, 9]", "[5, 5]"),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = "Time Flies"'),
        ],
        [
            (GROUPS, '"qwertz"'),
            ('my_sentences = "", ""', 'my_sentences = "one", "two", "three"'),
            ('sentence = "time flies like an arrow"', 'sentence = ""'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = ""'),
            ('"flies like flies"', '""'),
            ("prediction = None", "prediction = 0.8"),
        ],
        [
            (GROUPS, '"spring summer autumn winter spring"'),
            ('my_sentences = "", ""', 'my_sentences = "Hello", "goodbye"'),
            ('sentence = "time flies like an arrow"', 'sentence = "word " * 700'),
            ("[2, 4, 4, 4, 5, 5, 7, 9]", "[]"),
            ('["king", "tuesday", "doctor", "good"]', '"king"'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = "arrow " * 40'),
            ("prediction = None", 'prediction = "nearly 1"'),
        ],
    ],
    "03_self_attention": [
        [
            ("[[1, 1, 1, 0]]", "[[0, 0, 0, 0]]"),
            ("prediction = None", "prediction = 0.9"),
            ('tokens=["time", "flies", "arrow"]', 'tokens=["he", "likes", "bread"]'),
        ],
        [
            ("layer, head = 2, 4", "layer, head = 2, 11"),
            (SENTENCES, 'sentences = ["The weather is fine.", "Who is it?"]'),
            ("[[1, 1, 1, 0]]", "[[1, 1, 0]]"),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "My DOG sleeps."'),
        ],
        [
            ("layer, head = 2, 4", "layer, head = 9, -1"),
            (SENTENCES, 'sentences = [""]'),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "Ça va? 你好"'),
        ],
        [
            ("layer, head = 2, 4", 'layer, head = "two", 4.5'),
            (SENTENCES, 'sentences = ["Her dog ate HIS shoe. " * 100, "x"]'),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = ""'),
            ("prediction = None", 'prediction = "nearly 1"'),
            ("[[1, 1, 1, 0]]", "[1, 1, 1, 0]"),
        ],
        [
            (SENTENCES, 'sentences = "I called Ian."'),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "word " * 700'),
            ("layer, head = 2, 4", "layer, head = None, 12"),
        ],
    ],
    "04_multi_head_attention": [
        [
            ('my_layer = "The hungry cat chased a small mouse."', 'my_layer = "Ça va? 你好 😀"'),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 24, 3"),
            ("prediction = None", "prediction = 0.5"),
        ],
        [
            ("The hungry cat chased a small mouse.", "An old sailor told a long story."),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 8, 3"),
            ('["time", "flies", "away"], heads=2', '["hello", "world"], heads=3'),
            ('my_layer = "An old sailor told a long story.", 2', 'my_layer = "", -1'),
        ],
        [
            ("The hungry cat chased a small mouse.", "hi"),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 7, 0"),
            ('my_layer = "hi", 2', 'my_layer = "hi", 9'),
            ("prediction = None", 'prediction = "half"'),
        ],
        [
            ("The hungry cat chased a small mouse.", "The cat saw the cat 🙂"),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 6, 6"),
            ('my_layer = "The cat saw the cat 🙂", 2', 'my_layer = "word " * 600 + "end", "two"'),
        ],
    ],
    "05_encoder_layer": [
        [
            ('my_text = "the spring in the mattress broke"', 'my_text = "I like tea"'),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = ""'),
            ('pair = ["the bark of a palm tree is very rough",', 'pair = ["",'),
            ("prediction = None", "prediction = 2 / 3"),
        ],
        [
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "I"'),
            ('my_text = "the spring in the mattress broke"', 'my_text = "spring, spring, SPRING " * 300'),
            (BARKS, 'pair = "one text"'),
            ("prediction = None", "prediction = (0.12, 0.95)"),
        ],
        [
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "北京 🙂 " * 300'),
            ('my_text = "the spring in the mattress broke"', 'my_text = ""'),
            (BARKS, 'pair = ["a", "b " * 600, ""]'),
            ("prediction = None", 'prediction = "little"'),
        ],
    ],
    "06_encoder": [
        [
            ('text = "My sister lost her keys."', 'text = "Ça va? 你好 🙂 " * 80'),
            (LADDER, "Wo ist die Bäckerei? 🙂 | What is BERT?"),
            ("spoiled = 2", "spoiled = 0"),
            (IAN, 'sentence = "Wo ist die Bäckerei? 🙂 " * 80'),
            ("prediction = None", "prediction = 0.3"),
        ],
        [
            ('text = "My sister lost her keys."', 'text = ""'),
            (LADDER, ""),
            ("spoiled = 2", "spoiled = 5"),
            (IAN, 'sentence = ""'),
        ],
        [
            ('text = "My sister lost her keys."', 'text = ["One text.", "And another, longer one."]'),
            (LADDER, "one text alone\n\n| only a second one\none | two | three\n" + "word " * 600 + "|" + "b " * 600),
            ("spoiled = 2", "spoiled = 6"),
            (IAN, 'sentence = "hi"'),
        ],
        [
            (LADDER, "I CALLED IAN. | [MASK] [SEP]"),
            ("spoiled = 2", 'spoiled = "the last"'),
            (IAN, 'sentence = "The boss fired the clerk. He lost his job."'),
            ("prediction = None", 'prediction = "half"'),
        ],
    ],
    "07_attention_views": [
        [
            ("prediction = None", 'prediction = "many"'),
            ("(hunt))  # or", "(hunt), layer=3)\nmodel_view(encoder, tokenizer, *text_or_pair(hunt))  # or"),
            (IAN_PAIR, 'text_or_pair("My sister lost her keys.")'),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', 'hunt = "The dog chased the dog."'),
            ('"John, his", "Anna, her", "Robert, his"', '"Xyzzyqux, their", "Mary"'),
        ],
        [
            (IAN_PAIR, 'text_or_pair("北京 🙂 " * 300)'),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', "hunt = ()"),
            ('["Mary, her", "John', '["Mary Ann, HER", ", ", "John'),
            ("The animal didn't cross the street because it was too wide.", "The dog slept."),
            ("The street didn't cross the animal because it was too tired.", ""),
            ('tired = "The animal didn\'t cross the street because it was too tired."', 'tired = "It was it."'),
        ],
        [
            (IAN_PAIR, 'text_or_pair("")'),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', 'hunt = ["one", "two", "three"]'),
            ('["Mary, her", "John, his",', '["MARY, Her", ("John", "his"),'),
            ('exchanged = "The street', 'exchanged = "THE STREET'),
            ('tired = "The animal didn\'t cross the street because it was too tired."', 'tired = ""'),
            ("prediction = None", "prediction = 106"),
        ],
    ],
    "08_classifier": [
        [
            ("logits = [0.0, 1.1]", "logits = -1000, 3"),
            ("A slow start, but the rest is a delight.", ""),
            (SHOP, 'read_or_example("no.csv", text="a", label="b")'),
            ("Is there a discount for students?", ""),
            ("freeze(model, 3)", "freeze(model, 6)"),
            ("prediction = None", "prediction = 75"),
        ],
        [
            ("logits = [0.0, 1.1]", 'logits = [float("nan"), 0]'),
            ('my_sentence = "A slow start, but the rest is a delight."', "my_sentence = None"),
            (SHOP, "read_or_example(None)"),
            ('my_email = "Is there a discount for students?"', 'my_email = ["a", "b"]'),
            ("prediction = None", 'prediction = "81 %"'),
        ],
        [
            ("logits = [0.0, 1.1]", "logits = [1e40, 0]"),
            ('my_sentence = "A slow start, but the rest is a delight."', 'my_sentence = "très $5 🙂 " * 300'),
            (SHOP, 'read_or_example("", text="text", label="text")'),
            ('my_email = "Is there a discount for students?"', 'my_email = "word " * 900'),
            ("prediction = None", "prediction = [0.8]"),
        ],
        [
            ("logits = [0.0, 1.1]", 'logits = "0,5"'),
            ("A slow start, but the rest is a delight.", "🙂🙂"),
            ("prediction = None", 'prediction = "skip"'),
        ],
    ],
    "09_semantic_search": [
        [
            ('["Apple", "who makes the iPhone", "fizzy beverage"]', '("hammers", "Ça va? 你好 😀", "")'),
            ('validated("wish", "who makes the iPhone",', 'validated("wish", "",'),
            ('my_query = "my puppy is lonely"', 'my_query = ""'),
        ],
        [
            ('["Apple", "who makes the iPhone", "fizzy beverage"]', '("Apple")'),
            ("my_query = ", 'my_texts = "soup\\nbread\\n\\na very fast car"\nmy_query = '),
            ('validated("wish", "who makes the iPhone",', 'validated("wish", "word " * 900,'),
            ("prediction = None", 'prediction = "five"'),
        ],
        [
            ('["Apple", "who makes the iPhone", "fizzy beverage"]', '""'),
            ("my_query = ", 'my_texts = ["", " "]\nmy_query = '),
            ("prediction = None", "prediction = (7, 3)"),
        ],
    ],
    "10_heads_under_test": [
        [
            ('"I called Ian. I got his answering machine.", "his"  #', '"Zoë met Ian.", "theirs"  #'),
            ("layer, head = 5, 5", "layer, head = 7, -1"),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"{a} likes {b}."'),
            ("prediction = None", "prediction = 0.5"),
        ],
        [
            ("layer, head = 5, 5", 'layer, head = "5", 5.0'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"very " * 600 + "{a} {b} {p} {t}"'),
            ("prediction = None", "prediction = 37.5"),
        ],
        [
            ('text, word = "I called Ian. ', 'text, word = "his word " * 900 + "'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"{a} met {a}, {b}, {p} {t} {x} {"'),
            ("prediction = None", 'prediction = "none of them"'),
        ],
        [
            ('text, word = "I called Ian. I got his answering machine.", "his"', 'text, word = "", ""'),
            ("layer, head = 5, 5", "layer, head = None, [5]"),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '""'),
        ],
        [
            ('machine.", "his"', 'machine.", ("his", "ian")'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', "None"),
        ],
    ],
    "11_pretraining": [
        [
            ("number = 7880  #", "number = 99_999_999  #"),
            ('"the film is very [MASK]."', '"word " * 100 + "[MASK]"'),
            ('"i have seen this movie three [MASK]."', '""'),
            ('"it is not worth [MASK] money."', '"NO BLANK HERE 🙂"'),
            ("steps = 40  #", "steps = 3  #"),
            ("prediction = None", 'prediction = "bad"'),
            ('"a young [MASK].", ', '"[MASK]", '),
            ('"a sad and pretty [MASK]."', '"two [MASK] [MASK]"'),
        ],
        [
            ("number = 7880  #", "number = True  #"),
            ("steps = 40  #", "steps = 0  #"),
            ('"i have seen this movie three [MASK]."', "None"),
            ('"it is not worth [MASK] money."', '("a [mask]", 2)'),
            ("mine = [", "mine = 0.5 or ["),
            ("copier_loss = ...", 'copier_loss = "5,84"'),
        ],
    ],
    "12_decoder": [
        [
            ('my_date = "third of mar 1998"', 'my_date = "ZÜRICH 3/4/98!"'),
            ("torch.tensor([[1.0], [0.0]])", "torch.tensor([[0.5], [-2.0], [7.0]])"),
            ("torch.tensor([1.0, 3.0, 5.0, 7.0, 9.0])", "torch.tensor([-1.0, 0.0, 0.0, 0.0, 100.0])"),
            ("torch.tensor([0, 1, 1, 1])  # padding", "torch.tensor([0, 0, 0, 1])  # padding"),
            ("steps=300, show_at", "steps=5, show_at"),
            ('{"top_k": 2}', '{"top_k": 5}'),
            ("prediction = None", 'prediction = "most"'),
            ("[0.4, 0.3, 0.15, 0.1, 0.05]", "[0, 1, 0, 0, 0]"),
            ('my_letters = "co"', 'my_letters = "Zürich 12 zürich zürich"'),
            ('my_letters = ""', 'my_letters = "Zürich 12"'),
        ],
        [
            ('my_date = "third of mar 1998"', 'my_date = ("may 5", 1998)'),
            ('my_letters = "co"', 'my_letters = None'),
            ('my_letters = ""', 'my_letters = ("a", "b")'),
        ],
        [
            ('my_date = "third of mar 1998"', 'my_date = "漢字 " * 900'),
            ('my_letters = "co"', 'my_letters = ""'),
            ('my_letters = ""', 'my_letters = 12'),
            ("prediction = None", "prediction = [1000]"),
        ],
    ],
    "13_fast_inference": [
        [
            ("values=[1, 3, 7, 9]", "values=[0, 0, 0, -5]"),
            ('"Not my kind of film.",', '"word " * 900,'),
            ('my_query = "who makes the iPhone"', 'my_query = "qqqxz ☃ 漢字 🤔 " * 200'),
            ("[-0.30, 0.10, 0.20, 0.72]", "[0.5]"),
            ("[3.14159265, 0.1, 1000.4, 123456789]", "[1e39, -0.0, 7]"),
            ("prediction = None", 'prediction = "half"'),
            ("def block_diagonal(lengths):\n    return ...", "def block_diagonal(lengths):\n    return lengths"),
            (UNPACK + "...", UNPACK + "packed"),
        ],
        [
            ('my_query = "who makes the iPhone"', 'my_query = ""'),
            ("[-0.30, 0.10, 0.20, 0.72]", "[-0.30, 0.10, 0.20, 72]"),
            ("[3.14159265, 0.1, 1000.4, 123456789]", '"0,5"'),
            ("my_texts = [", "my_texts = [] and ["),
        ],
    ],
    "14_since_bert": [
        [
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = ""'),
            ('my_texts = [long_text, "time flies like an arrow"]', 'my_texts = ["", "北京 🙂 " * 40]'),
            ("prediction = None  # a relative", 'prediction = "none of it"  # a relative'),
            ("prediction = None  # names", 'prediction = ["rotary", "local"]  # names'),
        ],
        [
            ("rotary_turn()", "rotary_turn((0, 0), (1, -1))"),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = "Ça va? 你好"'),
            ('my_texts = [long_text, "time flies like an arrow"]', 'my_texts = ["one text alone"]'),
            ("prediction = None  # names", 'prediction = "local, rotary"  # names'),
        ],
        [
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = "a " * 20_000'),
            ('my_texts = [long_text, "time flies like an arrow"]', 'my_texts = "one text, and no list"'),
            ("prediction = None  # names", 'prediction = {"rotary", 3}  # names'),
        ],
        [
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', "my_text = None"),
            ('my_texts = [long_text, "time flies like an arrow"]', 'my_texts = [long_text * 40, "a"]'),
            ("prediction = None  # names", "prediction = 2  # names"),
            ("def my_rotary(x, positions, base):\n    return ...", "def my_rotary(x, positions, base):\n    return x"),
            ("def window_with_cls(S, reach):\n    return ...", "def window_with_cls(S, reach):\n    return None"),
        ],
    ],
    "15_token_labels": [
        [
            ('"We met Mr. Kurosawa in Paris, of all places. Wasn\'t that a surprise?"', '"... !!! 🙂"'),
            ('mine = "i saw robert de niro in new york last week he did not say a word to me"', 'mine = "!!!"'),
            ("prediction = None", 'prediction = "most of them"'),
        ],
        [
            ('"We met Mr. Kurosawa in Paris, of all places. Wasn\'t that a surprise?"', "None"),
            ('mine = "i saw robert de niro in new york last week he did not say a word to me"', 'mine = "漢字 " * 900'),
            ("prediction = None  # a share", "prediction = 0.75  # a share"),
        ],
        [
            ('"We met Mr. Kurosawa in Paris, of all places. Wasn\'t that a surprise?"', '"café " * 900'),
            ('mine = "i saw robert de niro in new york last week he did not say a word to me"', "mine = [1, 2]"),
        ],
    ],
}  # fmt: skip
ROUNDS = [(name, number) for name, rounds in EDITS.items() for number in range(len(rounds))]


@pytest.mark.parametrize(("name", "number"), ROUNDS)
def test_edits_of_a_newcomer_raise_nothing(name, number):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    notebook.cells = main_line(notebook)
    for old, new in EDITS[name][number]:
        cells = [cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source]
        assert cells, f"{old!r} is not in {name} any more"
        for cell in cells:
            cell.source = cell.source.replace(old, new)
    run(notebook, ROOT / "notebooks", timeout=300)
