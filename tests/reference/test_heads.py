"""What an attention head looks at: the scores of notebooks 07 and 10, on weights whose answer is known."""

import pytest
import torch

from utils.heads import finds, previous_token_score, rank_agreement, rollout, silence

ROWS = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.1, 0.2, 0.7]])


def test_previous_token_score_is_the_mean_below_the_diagonal():
    before = torch.eye(4).roll(1, dims=0)  # each token looks at the one before, the first at the last
    score = previous_token_score(torch.stack([torch.eye(4), before])[None])
    assert score.equal(torch.tensor([[0.0, 1.0]]))
    assert previous_token_score(ROWS[None, None]).allclose(torch.tensor([[0.4]]))


def test_finds_leaves_out_special_tokens_and_the_query():
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, :, 3] = torch.tensor([[0.5, 0.1, 0.2, 0.15, 0.05], [0.1, 0.3, 0.2, 0.4, 0.0]])
    before = weights.clone()
    assert finds(weights, 3, 2).tolist() == [[True, False]]
    assert finds(weights, 3, 1).tolist() == [[False, True]]
    assert weights.equal(before)


def test_silence_replaces_one_head_and_leaves_its_input():
    context = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]])
    layer = torch.nn.Linear(6, 6)
    with layer.register_forward_pre_hook(silence(1, torch.tensor([8.0, 9.0]))):
        silent = layer(context)
    torch.testing.assert_close(silent, layer(torch.tensor([[[1.0, 2.0, 8.0, 9.0, 5.0, 6.0]]])))
    assert context.tolist() == [[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]]


@pytest.mark.parametrize(
    ("residual", "wanted"),
    [(0.5, [[0.6, 0.4], [0.375, 0.625]]), (1.0, [[1.0, 0.0], [0.0, 1.0]]), (0.0, [[0.2, 0.8], [0.4, 0.6]])],
)
def test_rollout_multiplies_later_layers_from_the_left(residual, wanted):
    first, second = torch.tensor([[0.2, 0.8], [0.6, 0.4]]), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    by_head = torch.stack([torch.stack([first, first]), torch.stack([second + 0.1, second - 0.1])])
    torch.testing.assert_close(rollout(by_head, residual), torch.tensor(wanted))


@pytest.mark.parametrize(("turned", "wanted"), [(1, 1.0), (-1, -1.0)])
def test_rank_agreement_reads_the_order_off_the_diagonal(turned, wanted):
    one = torch.arange(16.0).view(4, 4).sin()
    other = turned * (3 * one).exp()  # another scale, the same order, or its reverse
    other.fill_diagonal_(100.0)
    assert rank_agreement(one, other) == pytest.approx(wanted)
