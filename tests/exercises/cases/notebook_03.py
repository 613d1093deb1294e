"""Answers to the exercises of notebook 03 that its checks do not declare."""

import numpy as np
import torch
from torch.nn import functional as F

from utils.attention import AttentionHead, MultiHeadAttention, compute_attention_weights, scaled_dot_product_attention


def largest_in_numpy(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def by_fused_attention(scores):
    unit = torch.eye(scores.size(-1)).expand(*scores.shape[:-2], -1, -1)
    return F.scaled_dot_product_attention(scores, unit, unit, scale=1.0)


def by_fused_identity(query, key, attention_mask=None):
    unit = torch.eye(key.size(-2)).expand(*key.shape[:-1], -1)  # float32, whatever the dtype of the query
    return F.scaled_dot_product_attention(query, key, unit, None if attention_mask is None else attention_mask != 0)


def normalised_again(weights):
    return weights / weights.sum(-1, keepdim=True)


def returning(forward, change):
    """The head with this forward, which changes what it returns, or what it is given."""
    return lambda self, x, mask=None: change(x, *forward(self, x, mask))


def head_with(head, **parts):
    return type("MyHead", (head,), parts)


RIGHT = r"""
    3.4 | lambda scores: torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    3.4 | (scores - => (scores.double() - ;; return exponentials / exponentials.sum(dim=-1, keepdim=True) => return (exponentials / exponentials.sum(dim=-1, keepdim=True)).float()
    3.4 | largest_in_numpy
    3.4 | lambda scores: largest_in_numpy(scores.numpy())
    3.4 | exponentials.sum(dim=-1, keepdim=True) => torch.einsum("...t->...", exponentials)[..., None]
    3.2 | attention_mask == 0, -math.inf => attention_mask == 0, -1e9
    3.2 | attention_mask == 0, -math.inf => ~attention_mask.bool(), torch.finfo(scores.dtype).min
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => scores + (attention_mask != 0).to(scores.dtype).log()
    3.2 | lambda query, key, mask=None: right(query * query.size(-1) ** 0.25, key * query.size(-1) ** -0.25, mask)
    3.2 | query @ key.transpose(-2, -1) => torch.einsum("...sd,...td->...st", query, key)
    3.3 | attention_mask == 0, -math.inf => attention_mask == 0, torch.finfo(torch.float32).min
    3.3 | scores.masked_fill(attention_mask == 0, -math.inf) => scores + (1.0 - attention_mask) * -1e4
    3.3 | scores.masked_fill(attention_mask == 0, -math.inf) => torch.where(attention_mask > 0, scores, -torch.inf)
    3.3 | query @ key.transpose(-2, -1) => torch.einsum("bsd,btd->bst", query, key) ;; return weights @ self.value(hidden_states), weights => return [torch.bmm(weights, self.value(hidden_states)), weights]
"""
WRONG = r"""
    3.4 | scores - scores.amax(dim=-1, keepdim=True) => scores | 1,000 give nan
    3.4 | lambda scores: scores.softmax(-1) | torch's softmax
    3.4 | by_fused_attention | torch's softmax
    3.4 | scores.amax(dim=-1, keepdim=True) => scores.amax(dim=-1, keepdim=True).clamp(min=0) | −1,000 give nan
    3.4 | scores.amax(dim=-1, keepdim=True) => (scores.amax(-1, keepdim=True).abs() > 100) * scores.amax(-1, keepdim=True) | scores of 88
    3.4 | scores.amax(dim=-1, keepdim=True) => scores.mean(dim=-1, keepdim=True) | in one row give nan
    3.4 | - scores.amax(dim=-1, keepdim=True) => - scores.isinf().any(-1, keepdim=True) * scores - scores.amax(-1, keepdim=True) | masked scores
    3.4 | lambda scores: normalised_again(scores) | rows are not right
    3.4 | lambda scores: normalised_again(scores.clamp(max=10).exp()) | not for scores of 1,000
    3.4 | lambda scores: right(scores)[0] | shape
    3.4 | amax => max | a pair, (values, indices). Add .values
    3.4 | lambda scores: scores.max(dim=-1) | the pair (values, indices). Add .values
    3.4 | return exponentials / => return math.exp(scores) / | and torch.exp a whole tensor
    3.1 | (right[0], 32) | a shape
    3.1 | right[0] | two answers
    3.1 | ("(2, 7, 5)", "32") | a shape
    3.2 | / math.sqrt(query.size(-1)) => / 1 | not scaled
    3.2 | math.sqrt(query.size(-1)) => math.sqrt(384) | divided by √H
    3.2 | math.sqrt(query.size(-1)) => query.size(-1) | The scores are divided by D
    3.2 | / math.sqrt(query.size(-1)) => * math.sqrt(query.size(-1)) | multiplied by √D
    3.2 | math.sqrt(query.size(-1)) => math.sqrt(32) | but not for D = 5 and 6 keys
    3.2 | math.sqrt(query.size(-1)) => 10 | The scores are divided by 10, but √D is 5.66 here
    3.2 | math.sqrt(query.size(-1)) => query.size(-1) ** 1 / 2 | write D ** 0.5
    3.2 | softmax(dim=-1) => softmax(dim=-1) ** 2 | The weights are the softmax, over
    3.2 | lambda query, key, mask=None: (query @ key.mT).softmax(-1) / query.size(-1) ** 0.5 | sums to 0.18, not to 1
    3.2 | if attention_mask is not None:\n        scores = scores.masked_fill(attention_mask == 0, -math.inf) => scores = torch.where(attention_mask != 0, scores, -math.inf) | attention_mask is None in this call
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => torch.where(attention_mask, scores, -math.inf) | Compare it first
    3.2 | scores = scores.masked_fill(attention_mask == 0, -math.inf) => scores[attention_mask == 0] = -math.inf | a mask needs the full shape
    3.2 | lambda query, key, mask=None: normalised_again((query @ key.mT / query.size(-1) ** 0.5 + (0 if mask is None else torch.where(mask != 0, 0, -torch.inf))).exp()) | or call softmax, which does
    3.2 | softmax(dim=-1) => softmax(dim=-2) | over the queries
    3.2 | softmax(dim=-1) => softmax(dim=0) | over the texts of the batch
    3.2 | softmax(dim=-1) => softmax(dim=2) | but not for one text, without a batch
    3.2 | lambda query, key, mask=None: right(key, query, mask) | Query and key are swapped. A
    3.2 | return scores.softmax(dim=-1) => return scores | These are the scores. Softmax over
    3.2 | key.transpose(-2, -1) => key | the last two dimensions
    3.2 | key.transpose(-2, -1) => key.permute(2, 1, 0) | the last two dimensions
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => scores | The mask has no effect on
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => scores * attention_mask | e⁰ = 1
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => scores + attention_mask | hides none
    3.2 | scores.masked_fill(attention_mask == 0, -math.inf) => scores + (1 - attention_mask) * -torch.inf | With a mask, some weights are
    3.2 | attention_mask == 0 => attention_mask == 1 | Your function hides the visible keys
    3.2 | -math.inf => -10.0 | −∞
    3.2 | -math.inf => -20.0 | with −inf
    3.2 | attention_mask == 0 => attention_mask[:, None] == 0 | which fits the scores as it is
    3.2 | attention_mask == 0 => attention_mask != 1 | also where it is 2 or −1
    3.2 | attention_mask == 0 => attention_mask <= 0 | also where it is 2 or −1
    3.2 | lambda query, key, mask=None: right(query, key) * (1 if mask is None else mask) | after the softmax
    3.2 | attention_mask is not None => True ;; attention_mask == 0 => attention_mask.bool() | attention_mask is None in this call, because there is no padding
    3.2 | if attention_mask is not None => if attention_mask | Compare an optional argument with None, `is not None`
    3.2 | by_fused_identity | PyTorch's own attention
    3.2 | lambda query, key, mask=None: compute_attention_weights(query, key, mask) | the series' own
    3.2 | lambda query, key, mask=None: scaled_dot_product_attention(query, key, key, mask)[1] | the series' own
    3.2 | lambda query, key, mask=None: right(query, key) if mask is None else compute_attention_weights(query, key, mask) | the series' own
    3.2 | math.sqrt => torch.sqrt | The root of a number is number ** 0.5
    3.2 | attention_mask == 0 => ~attention_mask | Compare it first: mask == 0
    3.2 | compute_attention_weights | the series' own compute_attention_weights
    3.3 | / math.sqrt(query.size(-1)) => / 1 | not scaled
    3.3 | math.sqrt(query.size(-1)) => math.sqrt(32) | but not for H = 18 and D = 6
    3.3 | math.sqrt(query.size(-1)) => 10 | The weights are the softmax over
    3.3 | self.query(hidden_states), self.key(hidden_states) => self.key(hidden_states), self.query(hidden_states) | Query and key are swapped. A
    3.3 | -math.inf => -30.0 | with −inf
    3.3 | attention_mask[:, None, :] => (torch.arange(attention_mask.size(1)) < attention_mask.sum(1, keepdim=True))[:, None, :] | may begin with padding
    3.3 | self.query = nn.Linear(hidden_size => hidden_size, head_size = 384, 32; self.query = nn.Linear(hidden_size | but not for H = 18 and D = 6
    3.3 | head_with(right, forward=returning(right.forward, lambda x, context, weights: (context.detach(), weights))) | Remove any detach
    3.3 | head_with(right, forward=returning(right.forward, lambda x, context, weights: (context.double(), weights))) | should have the dtype
    3.3 | head_with(right, forward=returning(right.forward, lambda x, *both: (both, x.add_(1))[0])) | changes its input in place
    3.3 | AttentionHead | the series' own AttentionHead
    3.3 | @ self.value => @ self.key | Right so far: weights. “context” differs
    3.3 | mask = None if attention_mask is None else attention_mask[:, None, :] => mask = None | Right so far: weights, context. “padded weights” differs
    3.3 | self.query = nn.Linear(hidden_size, head_size) => self.query = nn.Linear(hidden_size, head_size, bias=False) | no bias
    3.3 | self.query = => self.q = | self.query should be
    3.3 | self.query = nn.Linear(hidden_size, head_size) => self.query = nn.Linear(head_size, hidden_size) | hidden_size to head_size
    3.3 | type("Empty", (nn.Module,), {"__init__": lambda self, H, D: nn.Module.__init__(self), "forward": lambda self, x: (x, x)}) | no parameters
    3.3 | super().__init__() => pass | super().__init__()
    3.3 | attention_mask[:, None, :] => attention_mask | (B, 1, S)
    3.3 | head_with(right, forward=returning(right.forward, lambda x, *both: both[::-1])) | returned second
    3.3 | mask = None if attention_mask is None else attention_mask[:, None, :] => mask = attention_mask[:, None, :] | mask is None in this call, because there is no padding
    3.3 | self.query(hidden_states), => self.query(hidden_states) * self.head_size, | has the parts query, key, value
    3.3 | head_with(right, forward=returning(right.forward, lambda x, *both: both[0])) | returns two tensors
    3.3 | right(8, 4) | the class itself
"""
