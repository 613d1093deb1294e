"""What a newcomer types where a notebook says "change me": nothing turns red."""

import nbformat
import pytest

from publish.notebooks import main_line, run
from tests.helpers import ROOT

# what stands in several rounds
FOLLOWS = '{"time": "flies", "flies": "like", "like": "an", "an": "arrow", "arrow": "<end>"}'
WORD_COUNTS = '{"flies": 4, "tries": 3, "fly": 2, "pie": 2}'
FIRST_PAIR = '("Time flies like an arrow", "fruit flies like a banana")'
GROUPS = '"monday tuesday friday three four five dog cat horse red blue green"'
SENTENCES = 'sentences = ["I called Ian. I got his answering machine.", "time flies like an arrow"]'
FLIES = 'flies = ["time flies like an arrow", "fruit flies like a banana"]'
ARROW = 'arrow, banana = "time flies like an arrow", "fruit flies like a banana"'
BARKS = 'pair = ["the bark of a palm tree is very rough", "time flies like an arrow"]'
IAN = 'sentence = "I called Ian. I got his answering machine."'
IAN_PAIR = 'pair = ("I called Ian.", "I got his answering machine.")'
TEXTS = 'texts = ["the bark of a palm tree is very rough", "time flies like an arrow", "dogs bark"]'
IAN_BATCH = 'ian = to_batch("I called Ian. I got his answering machine.")'

# by notebook: rounds of edits, each the text that stands there and what is typed instead
EDITS = {
    "00_overview": [
        [
            ("My sister lost her keys in the park.", "The boss fired the clerk. He lost his job."),
            ('rows=french, mask="causal"', 'values=[1, 3, 5, 7, 14], mask="padding"'),
            ('"arrow": "<end>"}', '"arrow": "time"}'),
        ],
        [
            ("My sister lost her keys in the park.", "北京 🙂 xyzzyqux"),
            ('"loan": "he asked the bank for a loan",', ""),
            ('"arrow": "<end>"}', '"arrow": "banana", "banana": "<end>"}'),
        ],
        [
            ("My sister lost her keys in the park.", ""),
            ('compare_meanings("bank", banks)', 'compare_meanings("Bank", banks)'),
            ("we swam to the bank of the river", "we swam to the bank of the bank"),
            ("the bank raised its interest rates\"", "the lender raised its rates\""),
        ],
        [
            (IAN_BATCH, 'ian = to_batch("Hi")'),
            (FOLLOWS, '{"the": "cat", "cat": "sat"}'),
            ("mask_painter(english,", 'mask_painter([*english, "today"],'),
            ("time flies like an eagle", "time"),
            ('compare_meanings("tree", trees)', 'compare_meanings("tree", banks)'),
        ],
        [
            (IAN_BATCH, 'ian = to_batch("")'),
            (FOLLOWS, "{}"),
            ('mask="causal"', 'mask="window"'),
            ("time flies like an eagle", "an eagle is not an arrow, and time does not fly"),
            ("My sister lost her keys in the park.", "He said he would. She did not. Nobody knew about their cars."),
            ('"interest": "the bank raised its interest rates"', '"river": "the bank raised its interest rates"'),
        ],
        [
            (FOLLOWS, '{"<end>": "time", "time": "time"}'),
            (IAN_BATCH, 'ian = to_batch(["I got HIS car.", "Her dog."])'),
        ],
    ],
    "01_tokenization": [
        [
            ('["café", "cafe\\u0301", "CAFÉ", "ca\\u200bfé"]', '["naïve", "NAÏVE", "", "北京"]'),
            ('"José can\'t tokenize!"', '"北京 is 2,200 km away 🙂 [MASK]…"'),
            ('["time", "like", "fl", "f", "##l", "##y", "##ies"]', '["a", "##a"]'),
            ('"tokenization unbelievably ChatGPT"', '"Zürich ทดสอบ flies flies"'),
            ('("Who called?", "Ian.")', '("one text alone", "")'),
        ],
        [
            ('"José can\'t tokenize!"', '""'),
            ('["time", "flies", "fly", "flip"]', '["aaaa", "", "a" * 180]'),
            ('["time", "like", "fl", "f", "##l", "##y", "##ies"]', "[]"),
            ("[101, 2051, 10029, 102], [2066, 102]", "[101, 102], [5, 102]"),
        ],
        [
            (WORD_COUNTS, "{}"),
            (FIRST_PAIR, '("one", "two", "three")'),
            ('to_ids("time flies like an arrow")', 'to_ids("🙂 [MASK] ☃")'),
            ('"I called Ian. I got his answering machine."', '""'),
            ("Supercalifragilistic naïve cafés 🙂 and a selfie", ""),
        ],
        [
            (WORD_COUNTS, '{"a": 1}'),
            ('("Who called?", "Ian.")', '"a single text"'),
            ('["café", "cafe\\u0301", "CAFÉ", "ca\\u200bfé"]', '"café"'),
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
            ('"the bank of the river", "a bank lends money"', '"bank bank bank", ""'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = "flies flies chatgpt"'),
        ],
        [
            ("place = 21", "place = 400"),
            (GROUPS, '"cat"'),
            ('"the bank of the river", "a bank lends money"', '"only one sentence"'),
            ('["king", "tuesday", "doctor", "good"]', '["Zürich", "", "KING"]'),
            ("[2, 4, 4, 4, 5, 5, 7, 9]", "[5, 5]"),
        ],
        [
            ("place = 21", 'place = "graves"'),
            (GROUPS, '"qwertz"'),
            ('"the bank of the river", "a bank lends money"', '"one", "two", "three"'),
            ('sentence = "time flies like an arrow"', 'sentence = ""'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = ""'),
            ('"flies like flies"', '""'),
        ],
        [
            ("place = 21", "place = -1"),
            (GROUPS, '"spring summer autumn winter spring"'),
            ('"the bank of the river", "a bank lends money"', '"Hello", "goodbye"'),
            ('sentence = "time flies like an arrow"', 'sentence = "word " * 700'),
            ("[2, 4, 4, 4, 5, 5, 7, 9]", "[]"),
        ],
    ],
    "03_self_attention": [
        [
            ("[0.5, 0.25, 0.25]", "[0.0, 0.0, 1.0]"),
            ("[4, 16, 100]", "[1, 9, 1000]"),
            ("[[1, 1, 1, 0]]", "[[0, 0, 0, 0]]"),
            ('"My dog chased the neighbour\'s cat.", "chased"', '"", "nobody"'),
            ("prediction = None", "prediction = 0.5"),
        ],
        [
            ("layer, head = 2, 4", "layer, head = 2, 11"),
            (SENTENCES, 'sentences = ["The weather is fine.", "Who is it?"]'),
            (FLIES, 'flies = ["hi", "yes"]'),
            ("[0.5, 0.25, 0.25]", "[0.5, 0.5]"),
            ("[[1, 1, 1, 0]]", "[[1, 1, 0]]"),
            ("[4, 16, 100]", "[64]"),
        ],
        [
            ("layer, head = 2, 4", "layer, head = 9, -1"),
            (SENTENCES, 'sentences = [""]'),
            (FLIES, 'flies = ["the bark of the dog kept us all awake", "the bark of a birch", "bark"]'),
            ('tokenizer, "time flies like an arrow", layer=0', 'tokenizer, "Ça va? 你好", layer=0'),
            ("layer=0, head=2)  # change me", "layer=6, head=2)"),
            ("prediction = None", "prediction = (1, 1 / 8)"),
        ],
        [
            ("layer, head = 2, 4", 'layer, head = "two", 4.5'),
            (SENTENCES, 'sentences = ["Her dog ate HIS shoe. " * 100, "x"]'),
            (FLIES, 'flies = ["", "flies"]'),
            ('"My dog chased the neighbour\'s cat.", "chased"', '"word " * 700 + "end", "end"'),
            ("[[1, 1, 1, 0]]", "[1, 1, 1, 0]"),
        ],
    ],
    "04_multi_head_attention": [
        [
            ('my_layer = "The hungry cat chased a small mouse."', 'my_layer = "Ça va? 你好 😀"'),
            ('"fruit flies like a banana"', '"my old aunt bakes good bread every single day"'),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 24, 3"),
            ("prediction = None", "prediction = 0.5"),
        ],
        [
            ("The hungry cat chased a small mouse.", "An old sailor told a long story."),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 8, 3"),
            ('["time", "flies", "away"], heads=2', '["hello", "world"], heads=3'),
            (ARROW, 'arrow, banana = "hi", ""'),
        ],
        [
            ("The hungry cat chased a small mouse.", "hi"),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 7, 0"),
            ('my_layer = "hi", "cat", 2', 'my_layer = "hi", "HI", 9'),
            ("prediction = None", 'prediction = "half"'),
        ],
        [
            ("The hungry cat chased a small mouse.", "The cat saw the cat 🙂"),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 6, 6"),
            (ARROW, 'arrow, banana = "She put the key on a table.", "He took it."'),
        ],
    ],
    "05_encoder_layer": [
        [
            ('watch("the spring in the mattress broke", "spring")', 'watch("I like tea", "coffee")'),
            ('my_sentence = "time flies like an arrow"', 'my_sentence = ""'),
            ("slope = torch.tensor(0.2)", "slope = torch.tensor(-1e20)"),
            ('pair = ["the bark of a palm tree is very rough",', 'pair = ["",'),
            ("prediction = None", "prediction = 2 / 3"),
        ],
        [
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "I"'),
            ('watch("the spring in the mattress broke", "spring")', 'watch("spring, spring, SPRING", "Spring")'),
            (BARKS, 'pair = "one text"'),
            ("slope = torch.tensor(0.2)", "slope = 0"),
            ("prediction = None", "prediction = (0.12, 0.95)"),
        ],
        [
            ('my_sentence = "time flies like an arrow"', 'my_sentence = "北京 🙂 " * 300'),
            ('watch("the spring in the mattress broke", "spring")', 'watch("", "")'),
            (BARKS, 'pair = ["a", "b " * 600, ""]'),
            ("slope = torch.tensor(0.2)", "slope = 3"),
            ("prediction = None", 'prediction = "little"'),
        ],
    ],
    "06_encoder": [
        [
            ('text = "My sister lost her keys."', 'text = "Ça va? 你好 🙂 " * 80'),
            (IAN, 'sentence = "Wo ist die Bäckerei? 🙂 " * 80'),
            ("number_of_layers = 3", "number_of_layers = 12"),
            (IAN_PAIR, 'pair = ("What is BERT?", "BERT is BERT.")'),
            ('texts = ["the bark of a palm tree is very rough", ', 'texts = ["hi", '),
            ('my_word = "spring"', 'my_word = "encoderology"'),
            ("prediction = None", "prediction = 0.3"),
        ],
        [
            ('text = "My sister lost her keys."', 'text = ""'),
            (IAN, 'sentence = ""'),
            ('"the spring in the mattress broke", "in spring the flowers bloom"', '"spring spring", "no such word"'),
        ],
        [
            ("number_of_layers = 3", "number_of_layers = 0"),
            (IAN_PAIR, 'pair = "I called Ian."'),
            ('text = "My sister lost her keys."', 'text = ["One text.", "And another, longer one."]'),
            (TEXTS, 'texts = "a single text"'),
            (IAN, 'sentence = "hi"'),
            ('my_word = "spring"', 'my_word = "Spring"'),
        ],
        [
            ("number_of_layers = 3", 'number_of_layers = "two"'),
            (IAN_PAIR, 'pair = ["one", "two", "three"]'),
            (TEXTS, 'texts = ["", "b " * 600]'),
            (IAN, 'sentence = "The boss fired the clerk. He lost his job."'),
            ('my_word = "spring"', 'my_word = ""'),
            ("prediction = None", 'prediction = "half"'),
        ],
    ],
    "07_attention_views": [
        [
            ("prediction = None", 'prediction = "many"'),
            ("show = head_view", "show = neuron_view"),
            (IAN_PAIR, 'pair = "My sister lost her keys."'),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', 'hunt = "The dog chased the dog."'),
            ('"John": "his", "Anna": "her", "Robert": "his", "Wei": "his"}', '"Xyzzyqux": "their"}'),
        ],
        [
            ('pair = ("I called Ian.", "I got his answering machine.")', 'pair = "北京 🙂 " * 300'),
            ("show = head_view", "show = model_view"),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', "hunt = ()"),
            ('{"Mary": "her", ', '{"Mary Ann": "HER", "": "", '),
            ("The animal didn't cross the street because it was too wide.", "The dog slept."),
            ("The street didn't cross the animal because it was too tired.", ""),
            ('tired = "The animal didn\'t cross the street because it was too tired."', 'tired = "It was it."'),
            ('ian = ("I called Ian.", "I got his answering machine.")', 'ian = "Nobody called."'),
        ],
    ],
    "08_classifier": [
        [
            ('"A film to remember.", "Dull."', '"北京 🙂", ""'),
            ('"It is long, and it feels longer."]', '"word " * 700]'),
            ("[2, 3, 5, 100]", "[7, 1000]"),
            ("negative, positive = 0.0, 1.1", "negative, positive = -1000, 3"),
            ('["A wonderful, moving film.", "A boring, stupid mess."]', '["Great great great!", ""]'),
            ("A slow start, but the rest is a delight.", ""),
            ("verdict(my_sentence)", 'verdict(my_sentence)\nverdict("Wonderful")\nverdict("…")\nverdict("🙂 $5")'),
            ('read_own(example_file, text="text", label="label")', 'read_own("no.csv", text="a", label="b")'),
            ("Is there a discount for students?", ""),
            ('["Not a wonderful film.", "Awful.", "I loved it."]', '["", "Not bad", "word " * 700]'),
            ("prediction = None", "prediction = 75"),
        ],
    ],
    "09_semantic_search": [
        [
            ('["Apple", "who makes the iPhone", "fizzy drink"]', '("hammers", "Ça va? 你好 😀", "")'),
            ('["moving", "clever", "exciting", "beautiful", "convincing"]', '["xyzzy", "long"]'),
            ('wish = "scared me to death"', 'wish = "zzzz zzzz blorp"'),
            ('walk_to("who makes the iPhone")', 'walk_to("")'),
            ('my_query = "my puppy is lonely"', 'my_query = ""'),
            ('"julia is happy", "julia is tall"]', '"", "北京 🙂"]'),
        ],
        [
            ('["Apple", "who makes the iPhone", "fizzy drink"]', '("Apple")'),
            ("my_query = ", 'my_texts = "soup\\nbread\\n\\na very fast car"\nmy_query = '),
            ('["moving", "clever", "exciting", "beautiful", "convincing"]', "[]"),
            ('wish = "scared me to death"', 'wish = ""'),
            ('walk_to("who makes the iPhone")', 'walk_to("word " * 900)'),
            ("prediction = None", 'prediction = "five"'),
            ('["julia is nice", "julia is mean", "julia is happy", "julia is tall"]', '""'),
        ],
        [
            ('["Apple", "who makes the iPhone", "fizzy drink"]', '""'),
            ("my_query = ", 'my_texts = ["", " "]\nmy_query = '),
            ('["moving", "clever", "exciting", "beautiful", "convincing"]', '"good"'),
            ('["julia is nice", "julia is mean", "julia is happy", "julia is tall"]', '"julia is rude"'),
            ("prediction = None", "prediction = (7, 3)"),
        ],
    ],
    "10_heads_under_test": [
        [
            ('"his", (5, 5)', '"theirs", (7, 5)'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"{a} likes {b}."'),
            ("for head in ((5, 5), (2, 4)):", "for head in ((0, 2), (5, 12)):"),
            ("prediction = None", "prediction = 0.5"),
        ],
        [
            ('"his", (5, 5)', '"his", 5'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"very " * 600 + "{a} {b} {p} {t}"'),
            ("for head in ((5, 5), (2, 4)):", "for head in (5, 5):"),
            ("prediction = None", "prediction = 37.5"),
        ],
        [
            ('text, word, head = "I called Ian. ', 'text, word, head = "his word " * 300 + "'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"{a} met {a}, {b}, {p} {t}"'),
            ("for head in ((5, 5), (2, 4)):", 'for head in (("5", "5"), None):'),
            ("prediction = None", 'prediction = "none of them"'),
        ],
        [
            ('text, word, head = "I called Ian. I got his answering machine.", "his"', 'text, word, head = "", ""'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '""'),
            ("for head in ((5, 5), (2, 4)):", "for head in (2, 4), :"),
        ],
    ],
    "11_pretraining": [
        [
            ('{"good": 4, "bad": 2, "long": 1, "red": 1}', '{"good": 1, "bad": 0, "green": -1}'),
            ("number = 0  #", "number = 99_999_999  #"),
            ("x, y = 2, 1", "x, y = -3, 50.5"),
            ("return chosen  # change me", "return [False, True, True, False]  # change me"),
            ('"the film is very [MASK]."', '"word " * 100 + "[MASK]"'),
            ("range(40)", "range(3)"),
            ('film.", "i hated it. this is a [MASK] film."]', '", "", "no blank here", "two [MASK] [MASK] 🙂"]'),
            ('["a big [MASK].", ', '["[MASK]", '),
        ],
    ],
    "12_decoder": [
        [
            ('write_greedily("third of mar 1998")', 'write_greedily("ZÜRICH 3/4/98!")\nwrite_greedily("1.1.1898")'),
            ("asked = [1, 0]", "asked = [0.5, -2, 7]"),
            ("search_with_beams(K=1)", "search_with_beams(K=0)"),
            ('{"top_k": 2}', '{"top_k": -1}'),
            ("prediction = None", 'prediction = "most"'),
            ("{\"start\": {\"A\": 0.6, \"B\": 0.4}}", "{\"start\": {\"A\": 0.0, \"B\": 1.0}}"),
            ("[0.4, 0.3, 0.15, 0.1, 0.05]", "[0, 1, 0]"),
            ('begun = "co"', 'begun = "Zürich 12 zürich zürich"'),
            ('begin = ""', 'begin = "Zürich 12"'),
        ],
    ],
    "13_fast_inference": [
        [
            ("[512, 2304, 8192]", "[100_000]"),
            ('values=[1, 3, 7, 9]', "values=[0, 0, 0, -5]"),
            ('"Not my kind of film.",', '"word " * 900,'),
            ('my_query = "who makes the iPhone"', 'my_query = "qqqxz ☃ 漢字 🤔 " * 200'),
            ("[-0.30, 0.10, 0.20, 0.72]", "[0.5]"),
            ("prediction = None", 'prediction = "half"'),
        ],
    ],
    "14_since_bert": [
        [
            ('within("shift", 7, ', 'within("shift", 100_000, '),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = ""'),
            ('pair = [long_text, "time flies like an arrow"]', 'pair = ["", "北京 🙂 " * 40]'),
            ("range(20)", "range(2)"),
            ("prediction = None", 'prediction = "none of them"'),
        ],
        [
            ('within("shift", 7, ', 'within("shift", 0, '),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = "Ça va? 你好"'),
            ('pair = [long_text, "time flies like an arrow"]', 'pair = ["one text alone"]'),
        ],
        [
            ('within("shift", 7, ', 'within("shift", "far", '),
            ("query=(1.0, 0.3)", "query=(0, 0)"),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = "a " * 20_000'),
            ('pair = [long_text, "time flies like an arrow"]', 'pair = "one text, and no list"'),
            ("range(20)", "range(0)"),
        ],
    ],
}  # fmt: skip
ROUNDS = [(name, number) for name, rounds in EDITS.items() for number in range(len(rounds))]


@pytest.mark.parametrize(("name", "number"), ROUNDS)
def test_a_newcomers_edits_turn_nothing_red(name, number):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    notebook.cells = main_line(notebook)
    for old, new in EDITS[name][number]:
        cells = [cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source]
        assert cells, f"{old!r} does not stand in {name} any more"
        for cell in cells:
            cell.source = cell.source.replace(old, new)
    run(notebook, ROOT / "notebooks", timeout=300)
