"""Where words are and what ribbons are drawn, in node: widths are weights, edges touch, and nothing hangs in mid-air."""

import re

import pytest
import torch

from tests.js.node import run
from views.figures import FOLDER
from views.page import FOLDER as VIEWS


def edges(path: str) -> tuple[float, float, float, float]:
    """Return the top and the height of a band at its beginning and its end."""
    x, y, _, _, _, _, _, b, low, *_, high = map(float, re.findall(r"-?\d+(?:\.\d+)?(?:e-\d+)?", path))
    return y, high - y, b, low


@pytest.mark.parametrize(("S", "T"), [(5, 5), (13, 13), (3, 30)])
def test_the_ribbons_of_a_head_view_fill_both_sides(S, T):
    """Each begins where the one before ends, as high as its weight; what is under a pixel is a line there."""
    weights = torch.randn(S, T, generator=torch.Generator().manual_seed(S)).mul(2).softmax(dim=-1)
    weights[1] = 0  # as where marks are left out
    result = "((place) => ({ place, ribbons: ribbonsOf(given, place, 10, 90) }))(placeFlow(given))"
    found = run(result, weights.tolist(), VIEWS / "flow.js")
    place, unit = found["place"], found["place"]["unit"]
    assert place["gives"] == pytest.approx(weights.sum(1).tolist(), abs=1e-5)
    assert place["gets"] == pytest.approx(weights.sum(0).tolist(), abs=1e-5)
    lows = [top + number * unit for top, number in zip(place["bases"], place["gets"], strict=True)]
    assert all(low < top for low, top in zip(lows, place["bases"][1:], strict=False))
    assert (place["bases"][0], lows[-1]) >= (0, 0)
    assert lows[-1] <= place["high"]
    drawn = torch.zeros(S, T)
    for each in found["ribbons"]:
        i, j, wide = each["i"], each["j"], each["weight"] * unit
        top = place["tops"][i] + unit * float(weights[i, :j].sum())
        base = place["bases"][j] + unit * float(weights[:i, j].sum())
        drawn[i, j] = each["weight"]
        if each["faint"] is None:
            assert wide >= 1
            assert edges(each["d"]) == pytest.approx((top, wide, base, wide), abs=1e-3)
        else:
            assert each["faint"] == pytest.approx(wide)
            ends = [float(number) for number in re.findall(r"-?[\d.]+", each["d"])]
            assert (ends[0], ends[1], ends[-2], ends[-1]) == pytest.approx(
                (10, top + wide / 2, 90, base + wide / 2), abs=1e-3
            )
    assert (drawn - weights).abs().max() * unit <= 0.02
    assert [each["weight"] for each in found["ribbons"]] == sorted(drawn[drawn > 0].tolist(), reverse=True)


@pytest.mark.parametrize("token", [0, 3, 6])
def test_the_ribbons_of_a_sentence_are_as_wide_as_the_weights(token):
    """They leave side by side, each ends at its word, both edges are as far apart as the weight, and none cross."""
    shares = torch.tensor([0.5, 0.02, 0.1, 0.05, 0.2, 0.1, 0.03]).tolist()
    place = {"at": [20, 60, 100, 140, 180, 220, 260], "from": 20 + 40 * token, "whole": 48, "high": 120}
    given = {"shares": shares, "token": token, "place": place}
    draw = "ribbonPaths(given.shares, given.token, given.place, (along, up) => `${along} ${up}`)"
    paths = run(draw, given, FOLDER / "ribbons.js")
    starts = {}
    for at, (path, share) in enumerate(zip(paths, shares, strict=True)):
        assert path["breadth"] == pytest.approx(48 * share)
        middle = [float(number) for number in re.findall(r"-?[\d.]+", path["d"])]
        starts[at] = middle[0] - path["breadth"] / 2
        assert middle[-2] == pytest.approx(middle[0] if at == token else place["at"][at])
        one, other = ([float(n) for n in re.findall(r"-?[\d.]+", edge)] for edge in path["outline"].split("M")[1:])
        assert abs(one[0] - other[0]) == pytest.approx(path["breadth"])
        assert abs(one[-2] - other[-2]) == pytest.approx(path["breadth"])
        assert (one[3] - other[3]) * 0.75 == pytest.approx(-path["breadth"])  # the outer edge rises higher
    low = place["from"] - 24
    for at in sorted(starts, key=starts.get):
        assert starts[at] == pytest.approx(low)
        low += paths[at]["breadth"]
    assert low == pytest.approx(place["from"] + 24)
