"""What explorer.html computes, in node: torch's numbers for its saved sentence."""

import json

from explorer import explorer
from tests.browser.explorer_page import NUMBERS, close, numbers, results, small_encoder, states
from tests.js.node import run

EXACT, HALF = 1e-5, 1e-3  # the saved sentence is stored in float32, the rows of its embedding in float16
STATE = """(() => {
  Object.assign(sizes, given.sizes, { D: given.sizes.H / given.sizes.A });
  page.shown = { ...given.saved, ...unpackNumbers(given.saved.numbers, given.saved.half) };
  page.types = unpackNumbers({}, { types: given.types }).types;
  return (COMPUTE)(given.states);
})()"""


def test_every_number_equals_torchs(tokenizer):
    encoder = small_encoder()
    saved = results(encoder, tokenizer, explorer.SENTENCE)
    asked = states(saved)
    files = dict.fromkeys(explorer.FILES.values(), b"")
    given = json.loads(explorer.make_data(encoder, tokenizer, files)) | {"states": asked}
    modules = (explorer.PARTS / name for name in ("state.js", "numbers.js"))
    found = run(STATE.replace("COMPUTE", NUMBERS), given, *modules)
    for state, one in zip(asked, found, strict=True):
        for name, wanted in numbers(saved, **state).items():
            assert close(one[name], wanted, HALF if name == "rows" else EXACT), (name, state)
