"""What a newcomer types where a notebook says "change me": nothing turns red."""

import nbformat
import pytest

from publish.notebooks import main_line, run
from tests.helpers import ROOT

# by notebook: rounds of edits, each the text that stands there and what is typed instead
EDITS = {
    "00_overview": [
        [
            ("My sister lost her keys in the park.", "The boss fired the clerk. He lost his job."),
            ("values=[1, 3, 5, 7, 9]", "values=[1, 3, 5, 7, 14]"),
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
    ],
    "02_embeddings": [
        [
            ('"flies like flies"', '"hello world"'),
            ('sentence = "time flies like an arrow"', 'sentence = "Antidisestablishmentarianism matters? 🤖"'),
            ('"the bank of the river", "a bank lends money"', '"bank bank bank", ""'),
            ('words_to_try = "time flies like an arrow"', 'words_to_try = "flies flies chatgpt"'),
        ],
    ],
    "03_self_attention": [
        [
            ("[0.5, 0.25, 0.25]", "[0.0, 0.0, 1.0]"),
            ("(4, 16, 100)", "(1, 9, 1000)"),
            ("[[1, 1, 1, 0]]", "[[0, 0, 0, 0]]"),
            ('"My dog chased the neighbour\'s cat.", "chased"', '"", "nobody"'),
            ("prediction = None", "prediction = 0.5"),
        ],
    ],
    "04_multi_head_attention": [
        [
            ('my_layer = "The hungry cat chased a small mouse."', 'my_layer = "Ça va? 你好 😀"'),
            ('"fruit flies like a banana"', '"my old aunt bakes good bread every single day"'),
            ("hidden_size, num_heads = 8, 2", "hidden_size, num_heads = 24, 3"),
            ("prediction = None", "prediction = 0.5"),
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
    ],
    "06_encoder": [
        [
            ('text = "My sister lost her keys."', 'text = "Ça va? 你好 🙂 " * 80'),
            ('sentence = "I called Ian. I got his answering machine."', 'sentence = "Wo ist die Bäckerei? 🙂 " * 80'),
            ("number_of_layers = 3", "number_of_layers = 12"),
            ('pair = ("I called Ian.", "I got his answering machine.")', 'pair = ("What is BERT?", "BERT is BERT.")'),
            ('texts = ["the bark of a palm tree is very rough", ', 'texts = ["hi", '),
            ('my_word = "spring"', 'my_word = "encoderology"'),
            ("prediction = None", "prediction = 0.3"),
        ],
        [
            ('text = "My sister lost her keys."', 'text = ""'),
            ('sentence = "I called Ian. I got his answering machine."', 'sentence = ""'),
            ('"the spring in the mattress broke", "in spring the flowers bloom"', '"spring spring", "no such word"'),
        ],
    ],
    "07_attention_views": [
        [
            ("prediction = None", 'prediction = "many"'),
            ("show = head_view", "show = neuron_view"),
            ('pair = ("I called Ian.", "I got his answering machine.")', 'pair = "My sister lost her keys."'),
            ('hunt = ("Clara played an old violin.", "One day she sold it.")', 'hunt = "The dog chased the dog."'),
            ('"John": "his", "Anna": "her", "Robert": "his", "Wei": "his"}', '"Xyzzyqux": "their"}'),
        ],
    ],
    "08_classifier": [
        [
            ('"A film to remember.", "Dull."', '"北京 🙂", ""'),
            ("(2, 3, 5, 100)", "(7, 1000)"),
            ('["A wonderful, moving film.", "A boring, stupid mess."]', '["Great great great!"]'),
            ("A slow start, but the rest is a delight.", ""),
            ("Is there a discount for students?", ""),
            ('["Not a wonderful film.", "Awful.", "I loved it."]', '["", "Not bad"]'),
            ("prediction = None", "prediction = 75"),
        ],
    ],
    "09_semantic_search": [
        [
            ('("Apple", "who makes the iPhone", "fizzy drink")', '("hammers", "Ça va? 你好 😀", "")'),
            ("query = torch.tensor([4.0, 3.0])", "query = torch.tensor([0.0, 0.0])"),
            ('["moving", "clever", "exciting", "beautiful", "convincing"]', '["xyzzy", "long"]'),
            ('wish = "scared me to death"', 'wish = "zzzz zzzz blorp"'),
            ('walk_to("who makes the iPhone")', 'walk_to("")'),
            ('my_query = "my puppy is lonely"', 'my_query = ""'),
        ],
    ],
    "10_heads_under_test": [
        [
            ('"his", (5, 5)', '"theirs", (7, 5)'),
            ('"{a} wrote to {b}, and {p} {t} was on the table."', '"{a} likes {b}."'),
            ("((5, 5), (1, 3), (2, 4))", "((0, 2), (5, 12))"),
            ("The queen lost her golden crown.", "The empress lost her golden diadem."),
            ("prediction = None", "prediction = 0.5"),
        ],
    ],
    "11_pretraining": [
        [
            ("torch.tensor([4, 2, 1, 1]) / 8", "torch.tensor([1.0, 0.0, 0.0, 0.0])"),
            ("row = rows[0]", "row = rows[7]"),
            ("torch.tensor([2, 1]).float()", "torch.tensor([-3, 50]).float()"),
            ("range(40)", "range(3)"),
            ('film.", "i hated it. this is a [MASK] film."]', '", "", "no blank here", "two [MASK] [MASK] 🙂"]'),
            ('["a big [MASK].", ', '["[MASK]", '),
        ],
    ],
    "12_decoder": [
        [
            ('write_greedily("third of mar 1998")', 'write_greedily("ZÜRICH 3/4/98!")'),
            ("{\"start\": {\"A\": 0.6, \"B\": 0.4}}", "{\"start\": {\"A\": 0.0, \"B\": 1.0}}"),
            ("[0.4, 0.3, 0.15, 0.1, 0.05]", "[0, 1, 0]"),
            ('begun = "co"', 'begun = "Zürich 12 zürich zürich"'),
            ('begin = ""', 'begin = "Zürich 12"'),
        ],
    ],
    "13_fast_inference": [
        [
            ("(512, 2304, 8192)", "(1, 7, 100_000)"),
            ('my_query = "who makes the iPhone"', 'my_query = "qqqxz ☃ 漢字 🤔 " * 200'),
            ("[-0.30, 0.10, 0.20, 0.72]", "[0.5]"),
            ("prediction = None", 'prediction = "half"'),
        ],
    ],
    "14_since_bert": [
        [
            ("shift = 7", "shift = 1000"),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = ""'),
            ('pair = [long_text, "time flies like an arrow"]', 'pair = ["", "北京 🙂 " * 40]'),
            ("range(20)", "range(2)"),
            ("prediction = None", 'prediction = "none of them"'),
        ],
        [
            ("shift = 7", "shift = 0"),
            ('my_text = "time flies like an arrow, and fruit flies like a banana. " * 200', 'my_text = "Ça va? 你好"'),
            ('pair = [long_text, "time flies like an arrow"]', 'pair = ["one text alone"]'),
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
