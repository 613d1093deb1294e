"""Where words and ribbons are, in node: widths are weights, edges touch, and nothing hangs in mid-air."""

import re

import numpy as np
import pytest
import torch

from tests.js.node import run
from views.figures import FOLDER
from views.page import FOLDER as VIEWS


def edges(path: str) -> tuple[float, float, float, float]:
    """Return the top and the height of a band at its beginning and its end."""
    _, y, _, _, _, _, _, b, low, *_, high = map(float, re.findall(r"-?\d+(?:\.\d+)?(?:e-\d+)?", path))
    return y, high - y, b, low


@pytest.mark.parametrize(("S", "T"), [(5, 5), (13, 13), (3, 30)])
def test_the_ribbons_of_a_head_view_fill_both_sides(S, T):
    """Each begins where the one before ends, as high as its weight; what is under a pixel is a line there."""
    weights = torch.randn(S, T, generator=torch.Generator().manual_seed(S)).mul(2).softmax(dim=-1)
    weights[1] = 0  # as where marks are left out
    draw = """((place) => {
      const wide = given.map((row) => row.map((weight) => weight * place.unit));
      return { place, ribbons: ribbonsBetween(wide, place.tops, place.bases, 10, 90) };
    })(placeFlow(given))"""
    found = run(draw, weights.tolist(), VIEWS / "flow.js")
    place, unit = found["place"], found["place"]["unit"]
    assert place["gives"] == pytest.approx(weights.sum(1).tolist(), abs=1e-5)
    assert place["gets"] == pytest.approx(weights.sum(0).tolist(), abs=1e-5)
    lows = [top + number * unit for top, number in zip(place["bases"], place["gets"], strict=True)]
    assert place["bases"][0] >= 0
    assert all(low < top for low, top in zip(lows, [*place["bases"][1:], place["high"]], strict=True))
    drawn = {(each["i"], each["j"]): each for each in found["ribbons"]}
    for (i, j), weight in np.ndenumerate(weights.numpy()):
        wide = float(weight) * unit
        assert ((i, j) in drawn) == (wide > 0.02)
        if (i, j) not in drawn:
            continue
        top = place["tops"][i] + unit * float(weights[i, :j].sum())
        base = place["bases"][j] + unit * float(weights[:i, j].sum())
        faint, path = drawn[i, j]["faint"], drawn[i, j]["d"]
        if faint is None:
            assert edges(path) == pytest.approx((top, wide, base, wide), abs=1e-3)
        else:
            x, y, *_, end, low = (float(number) for number in re.findall(r"-?[\d.]+", path))
            assert (x, y, end, low) == pytest.approx((10, top + wide / 2, 90, base + wide / 2), abs=1e-3)
        assert faint == (None if wide >= 1 else pytest.approx(wide))


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


def test_the_lanes_of_a_path_are_as_wide_as_roots_and_shares_as_they_are():
    """In each layer; they do not overlap."""
    generator = torch.Generator().manual_seed(0)
    split = torch.rand(3, 4, 4, generator=generator).softmax(dim=-1)
    shares = [torch.tensor([0.0, 0, 1, 0])]
    for layer in split.flip(0):
        shares.insert(0, shares[0] @ layer)
    given = {"shares": torch.stack(shares).tolist(), "width": 860}
    draw = "((place) => ({ place, lanes: lanesOf(place) }))"
    module = FOLDER / "path_layout.js"
    for is_from in (True, False):
        found = run(f"{draw}(placeLanes(given.shares, {str(is_from).lower()}, given.width))", given, module)
        place, scale = found["place"], found["place"]["scale"]
        drawn = torch.stack(shares) if is_from else torch.stack(shares).sqrt()
        for i, (lane, middle) in enumerate(zip(found["lanes"], place["middle"], strict=True)):
            ends = [edges(part) for part in lane.split("M")[1:]]
            assert [end[1] for end in ends] == pytest.approx((drawn[:-1, i] * scale).tolist(), abs=1e-3)
            assert [end[3] for end in ends] == pytest.approx((drawn[1:, i] * scale).tolist(), abs=1e-3)
            assert all(y + high / 2 == pytest.approx(middle, abs=1e-3) for y, high, *_ in ends)
        gaps = torch.tensor(place["middle"]).diff()
        assert bool((gaps >= (drawn.amax(0)[1:] + drawn.amax(0)[:-1]) * scale / 2).all())


def test_what_a_head_looks_at_is_its_largest_share():
    """Of random heads of each kind: the kind, its share, and the column."""
    pair, generator = 13, torch.Generator().manual_seed(0)
    haze = torch.rand(pair, pair, generator=generator).softmax(dim=-1)
    heads = {"itself": torch.eye(pair), "before": torch.eye(pair).roll(-1, 1), "after": torch.eye(pair).roll(1, 1)}
    heads |= {"word": torch.zeros(pair, pair).index_fill(1, torch.tensor([3]), 1), "spread": torch.zeros(pair, pair)}
    heads["mark"] = torch.zeros(pair, pair).index_fill(1, torch.tensor([0]), 1)
    marks = [at in (0, 4, 12) for at in range(pair)]
    for name, sharp in heads.items():
        weights = 0.6 * sharp + 0.4 * haze if name != "spread" else haze
        given = {"weights": weights.tolist(), "marks": marks}
        found = run("kindOf(given.weights, given.marks, true)", given, VIEWS / "squares.js")
        assert found["name"] == name
        others = [at for at in range(pair) if at != found.get("column")]
        column = float(weights[others, found["column"]].mean()) if "column" in found else None
        wanted = column if column is not None else float(weights.diagonal(found["step"]).mean())
        assert found["share"] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("room", [300, 382, 852, 1400])
@pytest.mark.parametrize("columns", [4, 13, 40])
def test_the_enlarged_head_is_beside_or_below_the_squares(room, columns):
    given = {"sizes": {"layers": 6, "heads": 12}, "detail": {"columns": columns, "beside": 90}, "room": room}
    place = run("placeHeads(given.sizes, given.detail, given.room)", given, VIEWS / "squares.js")
    squares = 38 + 12 * place["pitch"]
    assert place["pitch"] >= 24
    assert place["cell"] >= 15
    assert place["x"] + place["width"] <= max(room, 90 + 15 * columns + 12)
    assert place["isBeside"] == (38 + 12 * 24 + 24 + 90 + 20 * columns + 12 <= room)
    assert place["x"] == (squares + 24 if place["isBeside"] else 0)
