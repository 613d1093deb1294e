"""Checks for the exercises of notebook 15."""

from functools import partial

import torch
from torch import nn

from exercises.comparison import expect_own
from exercises.framework import (
    as_number,
    as_share,
    call,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
    from_text,
)
from exercises.prediction import prediction, within
from utils.tokenization import WordPieceTokenizer

IGNORED = -100
PIECES = ("una", "##ffa", "##ble", "ku", "##ros", "##awa", "a", "film", "by", "'", "s", "don", "t")
TEXTS = (  # words, and a label for each
    (["an", "unaffable", "kurosawa", "film"], [4, 0, 4, 2]),
    (["a", "film", "by", "kurosawa"], [4, 0, 1, 6]),
    (["kurosawa's", "film"], [7, 3]),
    (["don't"], [5]),
    ([], []),
    (["a", "film", "by", "a", "kurosawa", "a"], [4, 0, 1, 2, 6, 3]),  # a word may come twice, with another label
    (["unaffable", "a", "film"] * 200, [4, 0, 2] * 200),
)


def ten_labels(answer) -> list[float]:
    """Return the labels of an answer; a `Hint` unless there are ten."""
    answer = from_text(answer)
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    expect(isinstance(answer, (tuple, list)), "Give a list of whole numbers, one for each token.")
    answer = [as_number(one, "Each label") for one in answer]
    hint = "There are ten tokens: [CLS], one piece of “an”, three and three, one of “film”, and [SEP]."
    expect(len(answer) != 8, f"[CLS] and [SEP] are tokens, too, and need labels. {hint}")
    expect(len(answer) == 10, f"You give {len(answer)} labels. {hint}")
    return answer


prediction(
    "15.1",
    ten_labels,
    """
    = [-100, 4, 0, -100, -100, 4, -100, -100, 2, -100]
    if {answer[0], answer[-1]} != {-100}
    [0, 4, 0, -100, -100, 4, -100, -100, 2, 0] | [CLS] and [SEP] are not words, so their label is −100.
    [-100, 4, 0, 0, 0, 4, 4, 4, 2, -100] | A word of three pieces counts three times here. Only its first piece gets the
        label.
    [-100, 4, -100, -100, 0, -100, -100, 4, 2, -100] | The label is at the last piece of each word. Move it to the
        first.
    [-100, 4, 0, 0, 0, 4, 0, 0, 2, -100] | 0 is a label, “word”. All other pieces get −100.
    [-100, 4, 0, -100, -100, 4, -100, -100, 0, -100] | First pieces get the labels of their words, 4, 0, 4 and 2, and
        all others get −100.
    """,
    remark="Four words, four labels, and six places at which nothing is asked.",
)


@exercise("15.2", points=2)
def labels_at_first_pieces(answer):
    """Check the ids from [CLS] to [SEP], and a label for each."""
    expect_function(answer)
    expect_own(answer, "align", "write it yourself.")
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    tokenizer = WordPieceTokenizer({token: number + 7 for number, token in enumerate((*special, *PIECES, "an"))})
    for words, labels in TEXTS:
        result = answer(list(words), list(labels), tokenizer)
        expect(isinstance(result, (tuple, list)) and len(result) == 2, "Return two lists, ids and labels.")
        ids, aligned = result
        expect(isinstance(ids, list) and isinstance(aligned, list), "Return both as lists of whole numbers.")
        there = f"For {words}" if words else "For a text without words"
        there = f"For a text of {len(words)} words" if len(words) > 9 else there
        wanted_ids = tokenizer.encode(" ".join(words))
        expect(ids != wanted_ids[1:-1] or not words, f"{there} [CLS] and [SEP] are missing around the pieces.")
        cut = ids[:-1] == wanted_ids[: len(ids) - 1] and 2 < len(ids) < len(wanted_ids)
        expect(not cut, f"{there} you return {len(ids)} ids of {len(wanted_ids)}. Do not truncate the text here.")
        expect(ids == wanted_ids, f"{there} your ids are {ids}, but the tokenizer gives {wanted_ids}.")
        expect(
            len(aligned) == len(ids),
            f"{there} you return {len(ids)} ids but {len(aligned)} labels. Give each id a label.",
        )
        counts = [len(tokenizer.encode(word, add_special_tokens=False)) for word in words]
        pairs = list(zip(labels, counts, strict=True))
        wanted = at_first_pieces(labels, counts)
        by_last = dict(zip(words, labels, strict=True))
        twice = "If a word occurs twice, both get the label of its {} occurrence. Go by positions, not by words."
        hints = {
            twice.format("first"): at_first_pieces([labels[words.index(word)] for word in words], counts),
            twice.format("last"): at_first_pieces([by_last[word] for word in words], counts),
            "[CLS] and [SEP] are not words, so their label is −100.": [0, *wanted[1:-1], 0],
            "Every piece has the label of its word, so a long word would count several times.": around(
                [label for y, n in pairs for label in [y] * n]
            ),
            "The label is at each word's last piece. Move it to the first.": around(
                [label for y, n in pairs for label in [IGNORED] * (n - 1) + [y]]
            ),
            "0 is a label. All other pieces get −100.": around(
                [label for y, n in pairs for label in [y] + [0] * (n - 1)]
            ),
            "The labels are all at the beginning. Each belongs to its own word's first piece.": around(
                labels + [IGNORED] * (sum(counts) - len(labels))
            ),
        }
        for hint, wrong in hints.items():
            expect(aligned != wrong or wrong == wanted, f"{there}: {hint}")
        expect(aligned == wanted, f"{there} the labels should be {wanted}, but you return {aligned}.")
    ids, aligned = answer(["a", "\x96", "film"], [1, 2, 3], tokenizer)
    empty = f"Of the word “\\x96” the tokenizer leaves no piece. You return {len(ids)} ids and {len(aligned)} labels"
    expect(len(ids) == len(aligned), f"{empty}: add an [UNK] for such a word, or leave out its label.")
    before, after = tokenizer.encode("a")[:-1], tokenizer.encode("film")[1:]
    fits = ids in ([*before, *after], [*before, tokenizer.vocab["[UNK]"], *after])
    expect(fits, f"{empty}, and the ids are {ids}. Take the id of [UNK] from the tokenizer, or leave the word out.")
    labels_kept = around([1, 3]) if len(ids) == 4 else around([1, aligned[2], 3])
    expect(aligned == labels_kept, f"{empty}, {aligned}: the words after it have the label of another word.")
    words, labels = list(TEXTS[0][0]), list(TEXTS[0][1])
    answer(words, labels, tokenizer)
    expect((words, labels) == TEXTS[0], "Your function changes the lists in place. Make new lists instead.")
    return "From here on the page aligns with your function, and the model learns from it."


def at_first_pieces(labels: list[int], counts: list[int]) -> list[int]:
    """Return each word's label at its first piece and −100 at all others, given the counts of pieces."""
    return around([label for y, n in zip(labels, counts, strict=True) for label in [y] + [IGNORED] * (n - 1)])


def around(labels: list[int]) -> list[int]:
    """Return labels with −100 for [CLS] and [SEP]."""
    return [IGNORED, *labels, IGNORED]


prediction(
    "15.3",
    [partial(as_share, name=name) for name in ("precision", "recall", "name_f1")],
    """
    = 1 / 4
    1 / 3 | precision: divide by the number of names in the answer, four: “al” and “pacino” both begin one, and so does
        “york”.
    2 / 3 | precision: “al” and “pacino” are two names in the answer, and neither ends or begins where it should.
    7 / 9 | precision: that is the share of words with the right tag. Count names.
    1 / 2 | precision: only “robert de niro” is right. A name must begin and end where it should.
    = 1 / 3
    1 / 4 | recall: divide by the number of names that are there, three.
    2 / 3 | recall: “al pacino” is one name, and the answer cuts it in two.
    7 / 9 | recall: that is the share of words with the right tag. Count names.
    = 2 / 7
    1 / 3 | name_f1: 2 · right / (four in the answer + three that are there).
    1 / 7 | name_f1: the right one counts twice, since both sides have it.
    7 / 9 | name_f1: that is the share of words with the right tag. Count names.
    """,
    near=within(0.005),
    ask="Give three numbers.",
    remark="Seven of nine tags are right, but one of three names.",
)


@exercise("15.4", points=3)
def thin_matrices(answer):
    """Check a linear layer that stays, a product of two thin matrices, and both merged into one layer."""
    expect(isinstance(answer, type), "Pass check the class itself, without parentheses.")
    for inputs, outputs, rank in ((6, 4, 2), (5, 9, 3), (8, 8, 1)):
        linear = nn.Linear(inputs, outputs)
        before = linear.weight.detach().clone()
        layer, x = answer(linear, rank, 6.0), torch.randn(2, 3, inputs)
        hint = "A new layer has to agree with the linear layer. Begin with U = 0."
        given = expect_tensor(call(layer, x), (2, 3, outputs), "It")
        expect(close(given, nn.functional.linear(x, before, linear.bias), 1e-5), hint)
        learned = [weight for weight in layer.parameters() if weight.requires_grad]
        narrow = [weight for weight in learned if weight.dim() == 2 and weight.any() and min(weight.shape) == rank]
        full = all(int(torch.linalg.matrix_rank(weight.detach())) == rank for weight in narrow)
        expect(full, "All rows of a matrix begin alike, so they stay alike, and the rank is 1. Draw them at random.")
        names = [weight for weight in learned if any(weight is own for own in linear.parameters())]
        expect(not names, "The linear layer still learns. Turn off its requires_grad.")
        expect(learned, "Nothing can learn. Make the two thin matrices nn.Parameter.")
        count = sum(weight.numel() for weight in learned)
        expect(
            count == rank * (inputs + outputs),
            f"{count} numbers learn, but for rank {rank} it should be rank · (in + out) = {rank * (inputs + outputs)}.",
        )
        layer(x).square().sum().backward()
        moved = [weight for weight in learned if weight.grad is not None and weight.grad.abs().sum() > 0]
        expect(moved, "No gradient reaches the two matrices. If both start at 0, neither ever changes.")
        first = next(weight for weight in learned if inputs in weight.shape and rank in weight.shape)
        expect(inputs == outputs or first.any(), "D begins with 0 and U at random. Exchange them: U = 0.")
        with torch.no_grad():
            for weight in learned:
                weight.copy_(torch.randn(weight.shape))
        second = next(weight for weight in learned if weight is not first)
        down = first if first.shape == (rank, inputs) else first.T
        up = second if second.shape == (outputs, rank) else second.T
        change = (layer(x) - nn.functional.linear(x, before, linear.bias)).detach()
        plain = x @ down.detach().T @ up.detach().T
        if inputs != outputs:  # else one cannot say which is which
            expect(not close(change, plain, 1e-4), "The product is not scaled. Multiply it by alpha / rank.")
            expect(not close(change, 6.0 * plain, 1e-4), "The product is multiplied by alpha. Divide by rank, too.")
            expect(close(change, 6.0 / rank * plain, 1e-4), "The change should be alpha / rank · (x downᵀ) upᵀ.")
        expect(hasattr(layer, "merged"), "The class has no method `merged`. Add it.")
        merged = call(layer.merged)
        expect(type(merged) is nn.Linear, "`merged` should return an nn.Linear.")
        expect(torch.equal(linear.weight, before), "The linear layer has changed. `merged` should create a new one.")
        same = merged(x), layer(x)
        expect(
            not close(merged(x), nn.functional.linear(x, before, linear.bias), 1e-4),
            "`merged` leaves out the product of the two matrices.",
        )
        expect(
            close(*same, 1e-4),
            "`merged` differs from forward. Its weight is the old one + scale · up @ down; keep the bias.",
        )
        x.requires_grad_()
        below = "The layers below get another gradient than through one merged layer. Remove any detach."
        expect_gradients(layer(x), merged(x), [x], below)
    return "Merged, it costs nothing more than the layer that it began as."
