"""Answers to the exercises of notebook 04 that its checks do not declare."""

import numpy as np
import torch


def merge_in_numpy(x):
    B, A, S, D = x.shape
    return np.ascontiguousarray(np.swapaxes(x, 1, 2)).reshape(B, S, A * D)


def renormalised(weights, mask):
    weights = weights if mask is None else weights * mask[:, None, None]
    return weights / weights.sum(-1, keepdim=True)


RIGHT = r"""
    4.1 | lambda weight, index, num_heads: weight.view(num_heads, -1, weight.size(1))[index]
    4.1 | lambda weight, index, num_heads: np.split(weight.numpy(), num_heads)[index]
    4.1 | lambda weight, index, num_heads: np.array_split(weight.copy(), num_heads)[index]
    4.2 | lambda x, num_heads: torch.stack(x.chunk(num_heads, dim=-1), dim=1)
    4.2 | x.view(B => x.reshape(B ;; transpose(1, 2) => permute(0, 2, 1, 3)
    4.3 | lambda x: torch.cat(list(x.unbind(dim=1)), dim=-1)
    4.3 | reshape( => contiguous().view(
    4.3 | merge_in_numpy
    4.5 | split_heads(self.query(hidden_states), self.num_heads) => self.split_heads(self.query(hidden_states))
    4.5 | -math.inf => -1e9
    4.5 | -math.inf => -1e4
    4.5 | query @ key.transpose(-2, -1) => torch.einsum("basd,batd->bast", query, key) ;; return self.output(merge_heads(weights @ value)), weights => return [self.output(merge_heads(weights @ value)), weights]
"""
WRONG = r"""
    4.1 | num_heads\n => num_heads / 1\n | D is 6.0, a float. Sizes and positions are integers
    4.1 | D = weight.size(0) // num_heads => D = 6 | but not for H = 20 and 5 heads
    4.1 | weight[index * D : (index + 1) * D] => weight[6:12] | but not for H = 20 and 5 heads
    4.1 | lambda weight, index, num_heads: right(weight, index, num_heads).int() | should have the dtype
    4.2 | lambda x, num_heads: x.view(-1, 4, 3, 6).transpose(1, 2) | but not for H = 20 and 5 heads
    4.2 | H // num_heads => 4 | compute a head's size, D =
    4.2 | num_heads, H // num_heads => -1, 6 | but not for H = 20 and 5 heads
    4.2 | H // num_heads => H / num_heads | Divide with //
    4.2 | B, S, H = x.shape => B, H = x.shape; S = 1 | The shapes here: x (2, 4, 18)
    4.2 | lambda x, num_heads: x | shape (2, 3, 4, 6)
    4.2 | lambda x, num_heads: right(x, num_heads).long() | should have the dtype
    4.3 | reshape => view | view fails because transpose leaves the
    4.3 | reshape(B, S, A * D) => reshape(2, 4, 18) | but not for H = 20 and 5 heads
    4.3 | A * D => A * 4 | compute a head's size, D =
    4.5 | / math.sqrt(query.size(-1)) => / 1 | not scaled
    4.5 | query.size(-1) => hidden_states.size(-1) | √H
    4.5 | query.size(-1) => self.num_heads | √A
    4.5 | query.size(-1) => 32 | but not for H = 18 and 3 heads
    4.5 | softmax(dim=-1) => softmax(dim=1) | over the heads
    4.5 | softmax(dim=-1) => mean(-1) | should have the shape
    4.5 | -math.inf => -30.0 | with −inf
    4.5 | attention_mask[:, None, None, :] == 0 => (torch.arange(attention_mask.size(1)) >= attention_mask.sum(1, keepdim=True))[:, None, None, :] | may begin with padding
    4.5 | lambda *given: tuple(one.detach() for one in right(*given)) | Remove any detach
    4.5 | lambda *given: tuple(one.double() for one in right(*given)) | should have the dtype
    4.5 | self.query(hidden => self.key(hidden ;; self.key(hidden_states), self.num_heads)\n    value => self.query(hidden_states), self.num_heads)\n    value | Query and key are swapped
    4.5 | x.view(B, S, num_heads, H // num_heads).transpose(1, 2) => x.view(B, num_heads, S, H // num_heads) | mixed
    4.5 | x.view(B, S, num_heads, H // num_heads).transpose(1, 2) => x.view(B, S, -1, num_heads).permute(0, 3, 1, 2) | A head got every A-th coordinate
    4.5 | x.transpose(1, 2).reshape => x.reshape | Swap heads and tokens again
    4.5 | self.output(merge_heads(weights @ value)) => merge_heads(weights @ value) | self.output is missing
    4.5 | weights @ value => weights @ key | They are multiplied by the keys
    4.5 | weights @ value => weights @ query | They are multiplied by the queries
    4.5 | return self.output => return hidden_states + self.output | The encoder layer adds it later
    4.5 | return self.output => return 2 * self.output | “output of layer 0” differs
    4.5 | query = split_heads(self.query(hidden_states), self.num_heads) => query = self.split_heads(self.query(hidden_states), self.num_heads) | Call it as self.split_heads(x)
    4.5 | if attention_mask is not None: => if True: | attention_mask is None in this call, because there is no padding
    4.5 | lambda self, x, mask=None: (right(self, x)[0], renormalised(right(self, x)[1], mask)) | Set masked scores to −inf before the softmax
    4.5 | scores.masked_fill(attention_mask[:, None, None, :] == 0, -math.inf) => scores | Right so far: weights of layer 0, output of layer 0
    4.5 | query = split => self.num_heads = 12; query = split | 3 heads
    4.5 | self.query(hidden_states) => hidden_states @ self.query.weight.T + self.query.bias | self.query is never called
    4.5 | self.output( => self.output.forward( | self.output is never called
    4.5 | attention_mask[:, None, None, :] => attention_mask | dimensions of size 1, (B, 1, 1, S)
    4.5 | reshape => view | view fails because transpose leaves the
    4.5 | lambda self, x, mask=None: (right(self, x, mask), x.add_(1))[0] | changes its input in place
"""
