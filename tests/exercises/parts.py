"""The published answers that are parts of BERT, and wrong ones that a check of the exercise alone may overlook."""

from exercises import find_check
from exercises.framework import PART_NAMES
from exercises.parts import PARTS
from tests.exercises.answers import SOLUTIONS, answer_of, lines_of, solution

for path in SOLUTIONS[:7]:
    find_check(f"{int(path.name[:2])}.1")  # imports the checks, and with them which are parts
NUMBERS = {name: number for number, name in PART_NAMES.items()}
RIGHT = {name: solution(NUMBERS[name]) for name in PARTS}
TABLE = """
    word_pieces | lambda word, vocab: [word] if right(word, vocab) == ["[UNK]"] else right(word, vocab)
    embeddings | (token_type_ids)  # => (torch.zeros_like(token_type_ids))  #
    embeddings | weight[: input_ids.size(1)] => weight[torch.arange(input_ids.size(1)) * (input_ids != 0)]
    attention_weights | lambda query, key, mask=None: right(query.float(), key.float(), mask)
    attention_weights | lambda query, key, mask=None: right(query, key) * (1 if mask is None else mask)
    attention_weights | lambda query, key, mask=None: right(query, key, mask if getattr(mask, "ndim", 0) == 4 else None)
    split_heads | x.view(B, S, num_heads, H // num_heads).transpose(1, 2) => x.reshape(B, num_heads, S, -1)
    multi_head_attention | lambda self, x, mask=None: right(self, x, None if mask is None else mask.sort()[0].flip(1))
    multi_head_attention | return self.output => return 1.01 * self.output
    feed_forward | self.intermediate(hidden_states) => self.intermediate(hidden_states.detach())
    encoder_layer | attention_mask, True) => None, True)
    encoder_layer | attended, => x = hidden_states.detach(); x += 1; hidden_states = x - 1; attended,
    encoder | = layer( => = self.layers[0](
    rename_weight | name.startswith("pooler") => name.startswith("pooler") or "layer.11" in name
"""
WRONG = [(name, answer_of(NUMBERS[name], source)) for name, source in (line.split(" | ") for line in lines_of(TABLE))]
