"""Answers to the exercises of notebook 02 that its checks do not declare."""

import numpy as np

from utils.embeddings import Embeddings


def in_numpy(x, gamma, beta, eps):
    array = x.numpy()
    centred = array - array.mean(-1, keepdims=True)
    return centred / np.sqrt(array.var(-1, keepdims=True) + eps) * gamma.numpy() + beta.numpy()


RIGHT = r"""
    2.1 | torch.zeros(right)
    2.1 | "4 x 9 x 384"
    2.2 | lambda words, table: words + F.one_hot(torch.arange(words.size(1)), len(table)).float() @ table
    2.2 | lambda words, table: words.numpy() + table.numpy()[: words.shape[1]]
    2.2 | lambda words, table: torch.stack([row + table[: len(row)] for row in words])
    2.3 | in_numpy
    2.3 | / torch.sqrt(variance + eps) * gamma => * (variance + eps).rsqrt() * gamma
    2.3 | lambda x, g, b, eps: torch.addcmul(b, g, (x - x.mean(-1)[..., None]) / (x.var(-1, False)[..., None] + eps)**0.5)
    2.4 | self.position_embeddings.weight[: input_ids.size(1)] => self.position_embeddings(torch.arange(input_ids.size(1)))
    2.4 | self.token_type_embeddings(token_type_ids) => self.token_type_embeddings.weight[token_type_ids]
    2.4 | self.word_embeddings(input_ids) => self.word_embeddings.weight[input_ids]
    2.4 | self.word_embeddings(input_ids) => F.embedding(input_ids, self.word_embeddings.weight)
    2.5 | '23.837.184 parameters'
"""
WRONG = r"""
    2.1 | 4 * 9 * right[2] | int
    2.1 | ("B", "S", "H") | the text “B”
    2.1 | torch.zeros(4, 9) | the shape of the ids
    2.2 | lambda words, table: words + table[:5] | but not for B = 1, S = 6 and P = 6
    2.2 | lambda words, table: words + table[:5] if words.size(1) == 5 else words | missing
    2.2 | lambda words, table: words + table | S tokens
    2.2 | lambda words, table: torch.cat([words, table[:5].expand_as(words)], -1) | shape
    2.3 | lambda x, g, b, eps: F.layer_norm(x, x.shape[-1:], g, b, eps) | torch's own norm
    2.3 | lambda x, g, b, eps: F.group_norm(x.flatten(0, 1), 1, g, b, eps).view_as(x) | torch's own norm
    2.3 | lambda x, g, b, eps: F.instance_norm(x, eps=eps) * g + b | torch's own norm
    2.3 | lambda x, g, b, eps: x.mean(-1) | shape
    2.4 | words + positions + types => words + types | positions are missing
    2.4 | words + positions + types => words + positions | token types are missing
    2.4 | words + positions + types => positions + types | words are missing
    2.4 | words + positions + types => words | These are only the words. Add
    2.4 | self.layer_norm(words + positions + types) => words + positions + types | LayerNorm is missing
    2.4 | self.layer_norm(words => F.layer_norm(words ;; + types)) => + types, words.shape[-1:])) | without γ and β
    2.4 | self.layer_norm(words => self.layer_norm(self.layer_norm(words ;; types)) => types))) | normalised twice
    2.4 | self.dropout(self.layer_norm(words + positions + types)) => self.layer_norm(words + positions + types) | Nothing is dropped in training. Dropout
    2.4 | self.dropout(self.layer_norm(words => self.layer_norm(self.dropout(words | Dropout comes before LayerNorm
    2.4 | self.layer_norm(words => F.layer_norm(words ;; types)) => types, words.shape[-1:], *self.layer_norm.parameters(), eps=1e-12)) | self.layer_norm is never called
    2.4 | self.dropout(self => F.dropout(self ;; types)) => types), self.dropout.p, self.training) | self.dropout is never called
    2.4 | self.dropout(self => F.dropout(self ;; types)) => types), 0.5) | Some numbers are 0 in evaluation
    2.4 | self.dropout(self => F.dropout(self ;; types)) => types), 0.1, self.training) | self.dropout comes last
    2.4 | weight[: input_ids.size(1)] => weight[1 : input_ids.size(1) + 1] | starts with 1
    2.4 | weight[: input_ids.size(1)] => weight[0] | gets position 0
    2.4 | weight[: input_ids.size(1)] => weight[torch.arange(input_ids.size(1)) * (input_ids != 0)] | [PAD] has a position like
    2.4 | weight[: input_ids.size(1)] => weight[(input_ids != 0).cumsum(1) - 1] | three rows for each token
    2.4 | self.position_embeddings.weight[: input_ids.size(1)] => self.position_embeddings(input_ids) | This looks up positions by id
    2.4 | weight[: input_ids.size(1)] => weight[: len(input_ids), None] | This uses the index in the
    2.4 | weight[: input_ids.size(1)] => weight | the first S tokens only
    2.4 | weight[: input_ids.size(1)] => weight[:5] | but not for 3 texts of 4 tokens
    2.4 | self.token_type_embeddings(token_type_ids) => self.token_type_embeddings.weight[0] | All token types are treated as
    2.4 | self.token_type_embeddings(token_type_ids) => self.token_type_embeddings(token_type_ids[:1]) | token types of the first
    2.4 | self.layer_norm(words + positions + types) => sum(map(self.layer_norm, (words, positions, types))) | Each table is normalised separately
    2.4 | self.dropout(self.layer_norm(words + positions + types)) => torch.cat([words, types], -1) | shape
    2.4 | self.layer_norm(words + positions + types) => self.layer_norm((words + positions + types).detach()) | Remove any detach
    2.4 | Embeddings.forward | the series' own Embeddings.forward
    2.5 | "23 million" | the text “23 million”
    2.5 | (30_522, 768) | tuple
    2.5 | True | bool
"""
