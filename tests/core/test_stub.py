"""The stub says of the compiled module what is there: names, arguments, defaults and types, and no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import sf2el.core
from sf2el.core import native

STUB = ast.parse((Path(sf2el.core.__file__).parent / "_native.pyi").read_text())
BARE = re.compile(r"\b(object|tuple|list|dict|Any|Callable)\b(?!\[)")
"""What nanobind says where a type is made by hand: the stub may say more."""


def plain(kind: str) -> str:
    """A type as nanobind or the stub writes it, in the words of the stub."""
    kind = re.sub(r"(numpy\.)?ndarray\[[^]]*\]", "Floats", kind)
    kind = re.sub(r"sf2el\.core\._native\.|collections\.abc\.|builtins\.", "", kind)
    return kind.replace("tuple[int, int, int, int, int]", "Code")


def read(function: ast.FunctionDef) -> dict:
    """Arguments with their types and defaults, in order, and the type that is returned."""
    a = function.args
    assert not a.vararg and not a.kwarg and not a.kwonlyargs, function.name
    found = {one.arg: [plain(ast.unparse(one.annotation)) if one.annotation else ""] for one in a.args}
    for one, default in zip(a.args[::-1], a.defaults[::-1], strict=False):
        found[one.arg].append(default)
    return found | {"return": [plain(ast.unparse(function.returns))]}


def stubbed(function: ast.FunctionDef) -> dict:
    return {
        name: [kind, *(ast.literal_eval(value) for value in rest)]
        for name, (kind, *rest) in read(function).items()
    }


def compiled(function) -> dict:
    (signature, _, defaults), *more = function.__nb_signature__
    assert not more, signature
    text = re.sub(r"= \\(\d+)", r"= __default(\1)", signature).replace("def (", "def _(")
    text = re.sub(r"(numpy\.)?ndarray\[[^]]*\]", "Floats", text)
    found = read(ast.parse(text + ": ...").body[0])
    return {
        name: [kind, *(defaults[one.args[0].value] for one in rest)] for name, (kind, *rest) in found.items()
    }


def same(stub: dict, module: dict, where: str) -> None:
    assert list(stub) == list(module), where
    for name, (kind, *default) in module.items():
        assert stub[name][1:] == default, f"{where}: the default of {name}"
        if not BARE.search(kind):
            assert stub[name][0] == kind, f"{where}: the type of {name}"


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)


def public(names):
    return sorted(one for one in names if not one.startswith("_"))


CLASSES = {one.name: one for one in STUB.body if isinstance(one, ast.ClassDef)}
FUNCTIONS = {one.name: one for one in STUB.body if isinstance(one, ast.FunctionDef)}


def test_the_module_has_what_the_stub_has():
    module = vars(native())
    assert sorted([*CLASSES, *FUNCTIONS]) == public(module)
    assert sorted(CLASSES) == sorted(name for name, one in module.items() if isinstance(one, type))


def test_functions_take_what_the_stub_says():
    for name, one in FUNCTIONS.items():
        same(stubbed(one), compiled(getattr(native(), name)), name)


def test_classes_have_what_the_stub_says():
    for name, stub in CLASSES.items():
        own = getattr(native(), name)
        assert [ast.unparse(base) for base in stub.bases] == [
            base.__name__ for base in own.__bases__ if base is not object
        ]
        functions = {one.name: one for one in stub.body if isinstance(one, ast.FunctionDef)}
        settable = {one.target.id: one for one in stub.body if isinstance(one, ast.AnnAssign)}
        assert public([*functions, *settable]) == public(vars(own)), name
        assert ("__init__" in functions) == hasattr(own.__init__, "__nb_signature__"), name
        for member, one in functions.items():
            where, value = f"{name}.{member}", vars(own)[member]
            if is_property(one):
                assert value.fset is None, where
                same(stubbed(one), compiled(value.fget), where)
            else:
                same(stubbed(one), compiled(value), where)
        for member, one in settable.items():
            value, kind = vars(own)[member], ast.unparse(one.annotation)
            assert compiled(value.fget)["return"] == [kind], member
            assert value.fset.__nb_signature__[0][0] == f"def (self, arg: {kind}, /) -> None", member


def test_every_annotation_of_the_stub_names_something():
    """A method of State is called bytes, another map: what is meant by the type must be said."""
    for stub in CLASSES.values():
        own = {one.name for one in stub.body if isinstance(one, ast.FunctionDef)}
        for function in stub.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            kinds = [one.annotation for one in function.args.args if one.annotation] + [function.returns]
            names = {node.id for kind in kinds for node in ast.walk(kind) if isinstance(node, ast.Name)}
            assert not names & own, f"{stub.name}.{function.name}"
