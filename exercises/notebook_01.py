"""Checks for the exercises of notebook 01."""

import torch

from exercises import Hint, exercise, expect


@exercise("1.1")
def shape_of_a_batch(answer):
    """The answer is the shape of a batch of two pairs: 9 and 8 ids."""
    shape = two_numbers(answer)
    expect(
        shape != (2, 7), "The special tokens or the pairs are missing: a row is [CLS] text [SEP] pair [SEP]."
    )
    expect(shape != (2, 6), "The special tokens are missing: a row is [CLS] text [SEP] pair [SEP].")
    expect(
        shape != (2, 8), "Nearly: the longer row sets the width, and the pair ends with a [SEP] of its own."
    )
    expect(shape[0] != 4, "A pair is one row, not two, so there are as many rows as pairs.")
    expect(shape != (9, 2), "The right numbers in the wrong order: rows come first, (B, S).")
    expect(shape != (2, 17), "Rows are padded to the longest one, not strung together.")
    expect(shape == (2, 9), "Count [CLS] text [SEP] pair [SEP] for each row; the longest row gives S.")
    return "Row 1 has 9 ids; row 2 has 8 and one [PAD]."


@exercise("1.2")
def count_the_ones(answer):
    """The answer is how many ones the attention mask and the token types of the same batch hold."""
    mask, types = two_numbers(answer)
    expect((mask, types) != (6, 17), "The right numbers in the wrong order: attention_mask first.")
    expect(mask != 18, "18 is the size of the mask: is padding a real token?")
    expect(mask not in (11, 12), "The mask is 1 at special tokens too: they are real input.")
    expect(mask == 17, "The mask has a 1 for each real token of both rows, special tokens included.")
    expect(types != 4, "The [SEP] that closes the second text belongs to it and has token type 1.")
    expect(types != 7, "Padding has token type 0.")
    expect(types not in (11, 12), "These are the zeros: token type 1 marks the second text, not the first.")
    expect(types == 6, "Token type 1 stands at the second text of each row and at the [SEP] that closes it.")
    return "9 + 8 real tokens, and (1 + 1) + (3 + 1) of them in the second texts."


@exercise("1.3")
def pad_on_the_left(answer):
    """The answer pads lists of ids on the left and returns ids and mask."""
    expect(callable(answer), "Give the function itself, not what it returns.")
    short_row_first = [[2, 5, 3], [2, 5, 6, 7, 3], [2, 3]]
    for rows, pad_id in ((short_row_first, 0), ([[4, 8], [4]], 1), ([[5, 6, 7]], 0)):
        S = max(map(len, rows))
        padding = [S - len(row) for row in rows]
        masks = [[0] * p + [1] * (S - p) for p in padding]
        ids = [[pad_id] * p + row for p, row in zip(padding, rows, strict=True)]
        found_ids, found_mask = two_tables(answer([list(row) for row in rows], pad_id))
        right_ids = [row + [pad_id] * p for p, row in zip(padding, rows, strict=True)]
        right_mask = [row[::-1] for row in masks]
        zero_ids = [[0] * p + row for p, row in zip(padding, rows, strict=True)]
        expect(
            min(map(len, rows)) == S or found_ids != right_ids,
            "input_ids are padded on the right: put the padding before the row.",
        )
        expect((found_ids, found_mask) != (masks, ids), "Return input_ids first, then attention_mask.")
        expect(pad_id == 0 or found_ids != zero_ids, "The padding is always 0: fill with `pad_id`.")
        expect(found_ids == ids, f"For {rows} with pad_id={pad_id} the ids should be {ids}.")
        expect(
            found_mask != [[1 - bit for bit in row] for row in masks],
            "The mask is upside down: 1 marks a real token, 0 padding.",
        )
        expect(
            min(map(len, rows)) == S or found_mask != right_mask,
            "The mask is that of padding on the right: its zeros belong on the left, where the padding is.",
        )
        expect(found_mask == masks, f"For {rows} the mask should be {masks}.")
    return "Ids and mask agree on where the text begins."


@exercise("1.4")
def undo_greed(answer):
    """The answer finds a split into the fewest pieces of the vocabulary."""
    expect(callable(answer), "Give the function itself, not what it returns.")
    cases = (
        ("fly", "fl ##y f ##l", 2, "not greedy"),
        ("flies", "flie fl ##ies ##i f", 2, "greedy"),
        ("abcdef", "abc ab ##d ##e ##f ##cdef", 2, "greedy"),
        ("time", "time ti ##me", 1, "not greedy"),
        ("unit", "u ##n ##i ##t un ##it ni ##nit", 2, "not greedy"),
        ("xyz", "x ##y", None, "not greedy"),
        ("ies", "##ies i", None, "not greedy"),
        ("flies", "fl ies f", None, "not greedy"),
    )
    for word, tokens, fewest, trap in cases:
        vocab = {token: token_id for token_id, token in enumerate(["[UNK]", *tokens.split()])}
        pieces = list_of_strings(answer(word, dict(vocab)))
        told = f"{word!r} from the pieces {tokens}"
        if fewest is None:
            expect(
                pieces == ["[UNK]"],
                f'{told}: no way through, so the answer is ["[UNK]"]; you return {pieces}.',
            )
            continue
        expect(
            pieces != ["[UNK]"] or trap != "greedy",
            f"{told}: still greedy. The longest first piece leads nowhere, a shorter one gets through.",
        )
        expect(pieces != ["[UNK]"], f"{told}: there is a way through, but you return [UNK].")
        expect(
            "".join(pieces) != word or len(pieces) == 1,
            f"{told}: a piece that continues a word begins with ##.",
        )
        expect(
            all(piece in vocab for piece in pieces), f"{told}: {pieces} holds a piece that is not in `vocab`."
        )
        built = pieces[0] + "".join(piece.removeprefix("##") for piece in pieces[1:])
        marked = all(piece.startswith("##") for piece in pieces[1:]) and not pieces[0].startswith("##")
        expect(marked and built == word, f"{told}: {pieces} does not spell the word.")
        expect(
            len(pieces) <= fewest,
            f"{told}: {pieces} are {len(pieces)} pieces, but {fewest} are enough. Compare all ways.",
        )
    return "No early choice can spoil a later one."


def two_numbers(answer) -> tuple[int, int]:
    """The answer as two whole numbers, from a tuple, list or tensor; else a `Hint`."""
    try:
        numbers = tuple(float(number) for number in answer)
    except (TypeError, ValueError):
        numbers = ()
    if (
        len(numbers) != 2
        or isinstance(answer, (str, dict))
        or not all(number.is_integer() for number in numbers)
    ):
        raise Hint("Answer with two whole numbers, such as (3, 4).")
    return int(numbers[0]), int(numbers[1])


def two_tables(result) -> tuple[list, list]:
    """Ids and mask as lists of rows, from a pair or a dict of tensors, arrays or lists; else a `Hint`."""
    if isinstance(result, dict):
        expect(
            {"input_ids", "attention_mask"} <= result.keys(), "The dict lacks input_ids or attention_mask."
        )
        result = result["input_ids"], result["attention_mask"]
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint(f"Return two tensors, input_ids and attention_mask; it returns a {type(result).__name__}.")
    try:
        tables = [torch.as_tensor(table) for table in result]
    except Exception as error:
        raise Hint(f"No tensor can be made of this: are all rows equally long? ({error})") from error
    for table in tables:
        expect(table.ndim == 2, f"Each should be (B, S), but one has the shape {tuple(table.shape)}.")
    return tables[0].long().tolist(), tables[1].long().tolist()


def list_of_strings(result) -> list[str]:
    """The result if it is a list or tuple of strings, not empty; else a `Hint`."""
    fits = isinstance(result, (list, tuple)) and result and all(isinstance(item, str) for item in result)
    if not fits:
        raise Hint(f"Return the pieces as a list of strings, such as ['fl', '##y']; it returns {result!r}.")
    return list(result)
