"""Renders the Helm chart without helm: the part of Go's templates that the chart uses, and nothing else.

Not the real thing: what it does not know is an error here, so the chart can't drift out of what is tested. Values
and results are YAML, read by Debian's python3-yaml in a process of its own (these tests use the standard library only).
"""
import json
import os
import re
import subprocess

TOKEN = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.S)
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\(|\)|\||:=|,|[^\s()|,]+')


def load_yaml(text):
    """All documents of a text, the empty ones left out."""
    program = "import json,sys,yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d is not None]))"
    done = subprocess.run(["/usr/bin/python3", "-c", program], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError("YAML: " + (done.stderr.strip().splitlines() or ["?"])[-1] + "\n" + text)
    return json.loads(done.stdout)


def to_yaml(value):
    """Flow style is YAML too, and JSON is flow style; blocks only where the chart's indentation needs them."""
    if isinstance(value, dict) and value:
        return "\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
    if isinstance(value, list) and value:
        return "\n".join("- " + json.dumps(v) for v in value)
    return json.dumps(value)


def truth(value):
    """Go's idea of empty."""
    return value not in (None, False, 0, "", [], {})


def as_text(value):
    """How a template prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def go_printf(form, *arguments):
    """%s and %v only."""
    left = list(arguments)
    return re.sub(r"%[sv]", lambda _: as_text(left.pop(0)), form)


class Chart:
    """The templates of a folder, and the values they are rendered with."""

    def __init__(self, folder):
        with open(os.path.join(folder, "Chart.yaml"), encoding="utf-8") as file:
            self.meta = load_yaml(file.read())[0]
        with open(os.path.join(folder, "values.yaml"), encoding="utf-8") as file:
            self.values = load_yaml(file.read())[0]
        self.texts = {}
        base = os.path.join(folder, "templates")
        for name in sorted(os.listdir(base), key=lambda name: (not name.startswith("_"), name)):  # defines first
            with open(os.path.join(base, name), encoding="utf-8") as file:
                self.texts[name] = file.read()

    def render(self, release, changes=None):
        """name -> text of each template, with some of the values changed ({"a.b": 1})."""
        values = json.loads(json.dumps(self.values))
        for path, value in (changes or {}).items():
            at = values
            *parents, last = path.split("/")
            for name in parents:
                at = at[name]
            if last not in at:
                raise KeyError(f"values.yaml has no {path}")
            at[last] = value
        top = {"Values": values, "Release": {"Name": release, "Namespace": "monitoring", "Service": "Helm"},
               "Chart": {"Name": self.meta["name"], "Version": self.meta["version"], "AppVersion": self.meta["appVersion"]}}
        run = Run(top)
        rendered = {name: run.whole(text) for name, text in self.texts.items()}
        return {name: text for name, text in rendered.items() if not name.startswith("_")}


class Run:
    """One rendering."""

    def __init__(self, top):
        self.top, self.defined = top, {}
        self.functions = {
            "include": lambda name, dot: self.nodes(self.defined[name], dot, {}),
            "quote": lambda v: json.dumps(as_text(v)),
            "default": lambda fallback, v=None: v if truth(v) else fallback,
            "nindent": lambda n, text: "\n" + "\n".join(" " * n + line for line in text.split("\n")),
            "toYaml": to_yaml,
            "printf": go_printf,
            "trunc": lambda n, text: text[:n],
            "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
            "contains": lambda part, text: part in text,
        }

    def whole(self, text):
        """A template file; its defines are kept."""
        tree, rest = self.parse(self.split(text), 0, ())
        if rest is not None:
            raise ValueError(f"unexpected {rest}")
        return self.nodes(tree, self.top, {})

    @staticmethod
    def split(text):
        """Texts and actions, with the blanks that {{- and -}} eat gone."""
        pieces, at, eat = [], 0, False
        for match in TOKEN.finditer(text):
            before = text[at:match.start()]
            before = before.lstrip() if eat else before
            pieces.append(("text", before.rstrip() if match[1] else before))
            pieces.append(("do", match[2]))
            at, eat = match.end(), bool(match[3])
        pieces.append(("text", text[at:].lstrip() if eat else text[at:]))
        pieces.reverse()
        return pieces

    def parse(self, pieces, depth, ends):
        """A list of nodes up to one of the ending words; that word, or None at the end of the text."""
        nodes = []
        while pieces:
            kind, body = pieces.pop()
            word = body.split(None, 1)[0] if kind == "do" and body else ""
            if kind == "text":
                nodes.append(("text", body))
            elif word in ends:
                return nodes, body
            elif word in ("if", "with", "range", "define"):
                inner, end = self.parse(pieces, depth + 1, ("else", "end"))
                other = []
                if end == "else":
                    other, end = self.parse(pieces, depth + 1, ("end",))
                if end != "end":
                    raise ValueError(f"{word} without an end ({end})")
                nodes.append((word, body.split(None, 1)[1], inner, other))
            elif not body.startswith("/*"):
                nodes.append(("print", body))
        return nodes, None

    def nodes(self, nodes, dot, variables):
        """The text of some nodes."""
        return "".join(self.node(node, dot, variables) for node in nodes)

    def node(self, node, dot, variables):
        """One of them."""
        kind, body = node[0], node[1]
        if kind == "text":
            return body
        if kind == "print":
            return as_text(self.pipeline(body, dot, variables))
        if kind == "define":
            self.defined[json.loads(body)] = node[2]
            return ""
        if kind == "range":
            names, source = body.split(":=")
            key, value = [name.strip() for name in names.split(",")]
            items = self.pipeline(source.strip(), dot, variables) or {}
            return "".join(self.nodes(node[2], items[k], {**variables, key: k, value: items[k]}) for k in sorted(items))
        found = self.pipeline(body, dot, variables)
        if not truth(found):
            return self.nodes(node[3], dot, variables)
        return self.nodes(node[2], found if kind == "with" else dot, variables)

    def pipeline(self, text, dot, variables):
        """a | b | c."""
        words = WORD.findall(text)
        value, rest = self.command(words, dot, variables)
        while rest and rest[0] == "|":
            value, rest = self.command(rest[1:], dot, variables, [value])
        if rest:
            raise ValueError(f"can't read {text}")
        return value

    def command(self, words, dot, variables, last=()):
        """A function with its arguments, or one value."""
        arguments, head = [], None
        if words and words[0] in self.functions:
            head, words = self.functions[words[0]], words[1:]
        while words and words[0] not in ("|", ")"):
            if words[0] == "(":
                value, rest = self.command(words[1:], dot, variables)
                if not rest or rest[0] != ")":
                    raise ValueError("a bracket is missing")
                words = rest[1:]
            else:
                value, words = self.value(words[0], dot, variables), words[1:]
            arguments.append(value)
        if head is not None:
            return head(*arguments, *last), words
        if len(arguments) != 1 or last:
            raise ValueError(f"not a function: {arguments}")
        return arguments[0], words

    def value(self, word, dot, variables):
        """A literal, a variable, or a path from the dot."""
        if word.startswith('"'):
            return json.loads(word)
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        if word in variables:
            return variables[word]
        if word == ".":
            return dot
        if not word.startswith("."):
            raise ValueError(f"unknown word {word}")
        at = dot
        for name in word[1:].split("."):
            if not isinstance(at, dict) or name not in at:
                raise KeyError(f"no {word}")
            at = at[name]
        return at
