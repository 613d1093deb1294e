"""Modules become one script, in the order of their imports, and every wrong import is refused by name."""

import pytest

from views.scripts import join, modules, shorten


@pytest.fixture
def write(tmp_path):
    """Return a function that writes modules and returns the path of the first."""

    def write(**texts: str):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, "utf-8")
        return tmp_path / f"{next(iter(texts))}.js"

    return write


A = 'import { two } from "./b.js";\nimport { three } from "./c.js";\n\ntwo(three);\n'
B = 'import { three } from "./c.js";\n\nexport function two(x) {\n  return x + three;\n}\n'
C = "// What is shared.\nexport const three = 3;\n"


def test_modules_follow_what_they_import(write):
    entry = write(a=A, b=B, c=C)
    assert [path.stem for path in modules(entry)] == ["c", "b", "a"]
    assert join(entry) == '"use strict";\nconst three = 3;\nfunction two(x) {\nreturn x + three;\n}\ntwo(three);\n'


def test_what_a_page_has_already_is_left_out(write):
    entry = write(a=A, b=B, c=C)
    assert join(entry, without=(entry.with_name("b.js"),)) == '"use strict";\ntwo(three);\n'


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"a": A, "b": B, "c": C + 'import { two } from "./b.js";\n'}, "b.js imports c.js imports b.js: break"),
        ({"a": A, "b": B, "c": "const three = 3;\n"}, "b.js imports three, which c.js does not export"),
        ({"a": A, "b": B, "c": C + "let two;\n"}, "b.js and c.js both declare two, in one scope: rename one"),
        ({"a": "export default 3;\n"}, 'a.js: write `import { name } from "./file.js";` in place of export default 3'),
        ({"a": 'import * as b from "./b.js";\n', "b": ""}, "in place of import \\* as b"),
    ],
    ids=["a circle", "no such name", "one name twice", "another export", "another import"],
)
def test_wrong_imports_are_refused(write, texts, message):
    with pytest.raises(ValueError, match=message):
        join(write(**texts))


def test_templates_stay_as_they_are():
    template = "const a = `x\n    // no comment\n    y`;\n"
    assert shorten(f"// a comment\n{template}  b();\n") == f"{template}b();\n"
