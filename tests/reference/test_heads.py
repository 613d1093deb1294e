"""What an attention head looks at: the scores of notebook 07, on weights whose answer is known."""

import torch

from utils.heads import finds, previous_token_score, silence

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
