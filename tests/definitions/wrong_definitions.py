"""Wrong definitions, each with where its first problem stands and a word of what is said about it.

`ok(old, new)` is a workflow that is right but for one change; other texts stand as they are.
"""

RIGHT = """\
name: right
initial_message: a goal
max_turns: 5
agents:
  - name: ann
    type: coder
  - name: bob
    type: ask
states:
  - name: one
    agent: ann
    start: true
    prompt: |
      {{COLLABORATION_GUIDE}} Do it; decide "done" and "score".
      Second line.
    transitions:
      - to: two
        condition: done
      - to: one
        condition: NOT done
  - name: two
    agent: bob
    prompt: "{{COLLABORATION_GUIDE}} Judge it; decide \\"good\\"."
    transitions:
      - to: END
        condition: good
      - to: one
exit_conditions:
  - condition: error_occurred
    action: force_end
"""


def ok(old: str, new: str) -> str:
    assert RIGHT.count(old) >= 1, old
    return RIGHT.replace(old, new, 1)


def guarded(guards: str) -> str:
    return ok("max_turns: 5\n", f"max_turns: 5\nguards: {guards}\n")


def valued(values: str) -> str:
    return ok("max_turns: 5\n", f"max_turns: 5\nvalues: {values}\n")


BOB = '    agent: bob\n    prompt: "{{COLLABORATION_GUIDE}} Judge it; decide \\"good\\"."\n'
"""The words of the second state, which a workflow can take the place of."""
DONE = "        condition: done\n"
EXIT = "  - condition: error_occurred\n    action: force_end\n"
PROMPT = '    prompt: |\n      {{COLLABORATION_GUIDE}} Do it; decide "done" and "score".\n      Second line.\n'

WRONG: list[tuple[str, str, int, int, str]] = [
    # what it is about, the file, line, column, a part of the message
    ('guards of the wrong kind', guarded("3"), 4, 9, 'must be a mapping'),
    ('an unknown guard', guarded("{patiens: 3}"), 4, 10, "has no field 'patiens'"),
    ('patience below zero', guarded("{patience: -1}"), 4, 20, 'must be from 0 to 1000'),
    ('patience that is true', guarded("{patience: true}"), 4, 20, 'must be a whole number'),
    ('courtesy that nobody knows', guarded("{courtesy: stop}"), 4, 20, "there is no courtesy 'stop'"),
    ('what comes then, unknown', guarded("{then: run}"), 4, 16, "there is no then 'run'"),
    ('phrases that are no list', guarded("{phrases: thanks}"), 4, 19, 'must be a list'),
    ('a phrase that is a number', guarded("{phrases: [3]}"), 4, 20, 'a phrase must be text'),
    ('a phrase of nothing but marks', guarded("{phrases: ['!!!']}"), 4, 20, 'phrase'),
    ('a blank end marker', guarded("{end_marker: ' '}"), 4, 22, 'is blank'),
    ('values that are a list', valued("[tone]"), 4, 9, 'must be a mapping'),
    ('a value that is a number', valued("{tone: 3}"), 4, 16, 'put it in quotes: "3"'),
    ('a value that is a mapping', valued("{tone: {a: b}}"), 4, 16, "must be text"),
    ('a value with a name of the engine', valued("{turn_count: x}"), 4, 10, "every prompt has"),
    ('a value with a blank in its name', valued("{'a b': x}"), 4, 10, "cannot be the name of a value"),
    ('a value with an empty name', valued("{'': x}"), 4, 10, "cannot be the name of a value"),
    ('a value with a long name', valued(f"{{{'x' * 61}: x}}"), 4, 10, "cannot be the name of a value"),
    ('too many values', valued(f"{{{', '.join(f'v{n}: x' for n in range(101))}}}"), 4, 9, "at most 100"),
    ('an undeclared value', ok("Second line.", "In a {{tone}} tone."), 15, 12, "or declare it under `values`"),
    # YAML itself
    ("empty", "", 1, 1, "the file is empty"),
    ("only a comment", "# nothing\n", 1, 1, "the file is empty"),
    ("a list", "- a\n- b\n", 1, 1, "must be a mapping, but this is a list"),
    ("a text", "hello\n", 1, 1, "must be a mapping, but this is text"),
    ("a tab", ok("  - name: ann", "\t- name: ann"), 5, 1, "there is a tab here"),
    ("a colon in a text", ok("a goal", "a goal: to go"), 2, 24, "a ':' does not fit here"),
    ("open quotes", ok("force_end", '"force_end'), 30, 13, "never closed"),
    ("open bracket", ok("max_turns: 5", "max_turns: [5"), 4, 7, "'[' is never closed"),
    ("open brace", ok("max_turns: 5", "max_turns: {a"), 4, 7, "'{' is never closed"),
    ("a question in a brace", ok("max_turns: 5", "max_turns: {a: Still there?}"), 3, 27, "a text that holds '?'"),
    ("a question in a bracket", ok("max_turns: 5", "max_turns: [Well?, no]"), 3, 17, "a text that holds '?'"),
    ("only a question mark", ok("max_turns: 5", "max_turns: {a: ?}"), 3, 16, "a text that holds '?'"),
    ("a bad indentation", ok("    type: coder", "   type: coder"), 6, 4, "does not fit the lines before"),
    ("a key without colon", ok("max_turns: 5", "max_turns 5"), 4, 1, "':' is missing"),
    ("two values", '{"name": "x"}\n{"name": "y"}\n', 2, 1, "not one YAML document: another begins here; keep one"),
    ("two documents", RIGHT + "---\nname: x\n", 31, 1, "a second document"),
    ("an unknown alias", ok("a goal", "*goal"), 2, 18, "no anchor"),
    ("an anchor twice", ok("a goal", "&x a").replace("max_turns: 5", "max_turns: &x 5"), 3, 12, "is defined twice"),
    ("an at sign", ok("a goal", "@goal"), 2, 18, "cannot begin with '@'"),
    ("an unknown escape", ok("a goal", r'"a \goal"'), 2, 22, "escape is not known"),
    ("no such character", ok("a goal", r'"a \UFFFFFFFF"'), 2, 21, "there is no character"),
    ("half a character", ok("a goal", r'"a \uD800"'), 2, 18, "half of a character"),
    ("a control character", ok("a goal", "a \x07goal"), 2, 20, "U+0007 is not allowed"),
    ("too deep", "name: " + "[" * 500, 1, 47, "nested more than 40 deep"),
    ("inside itself", "name: &a [*a]\n", 1, 7, "contains itself"),
    ("an alias bomb", "a: &a [1,2,3,4,5,6,7,8,9]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ), 5, 4, "unfolds to more than"),
    ("a foreign tag", ok("a goal", "!!python/name:os.system a"), 2, 18, "tag"),
    ("a tag that does not fit", ok("max_turns: 5", "max_turns: !!int five"), 3, 12, "tag"),
    ("a key that is a list", ok("max_turns: 5", "? [a]\n: 5"), 3, 3, "a key must be text"),
    ("merging a text", ok("    type: ask", "    <<: ask\n    type: ask"), 8, 9, "only mappings can be merged"),
    # Keys
    ("a key twice", ok("max_turns: 5", "max_turns: 5\nname: again"), 4, 1, "is already in line 1"),
    ("a key twice in a state", ok("    start: true", "    agent: bob\n    start: true"), 12, 5, "already in line 11"),
    ("an unknown key", ok("max_turns", "max_turn"), 3, 1, "did you mean 'max_turns'?"),
    ("an unknown key of another case", ok("max_turns", "Max_Turns"), 3, 1, "did you mean 'max_turns'?"),
    ("an unknown key of an agent", ok("    type: ask", "    type: ask\n    modle: x"), 9, 5, "did you mean 'model'?"),
    ("an unknown key of a state", ok("    start: true", "    strat: true"), 12, 5, "did you mean 'start'?"),
    ("an unknown key of a transition", ok(DONE, "        conditon: done\n"), 18, 9, "did you mean 'condition'?"),
    ("an unknown key of an exit", ok("    action: force_end", "    do: force_end"), 29, 5, "has no 'action'"),
    ("something quite unknown", ok("max_turns: 5", "max_turns: 5\nzzz: 1"), 4, 1, "known are name, description"),
    # The workflow
    ("no name", ok("name: right\n", ""), 1, 1, "has no 'name'"),
    ("an empty name", ok("name: right", "name: ''"), 1, 7, "'name' is empty"),
    ("a number for a name", ok("name: right", "name: 42"), 1, 7, "'name' must be text"),
    ("a path for a name", ok("name: right", "name: a/b"), 1, 7, "cannot be the name of a folder"),
    ("no goal", ok("initial_message: a goal\n", ""), 1, 1, "no 'initial_message'"),
    ("an empty goal", ok("a goal", "' '"), 2, 18, "no 'initial_message'"),
    ("a goal that is a list", ok("a goal", "[a]"), 2, 18, "must be text, but this is a list"),
    ("no turns at all", ok("max_turns: 5", "max_turns: 0"), 3, 12, "from 1 to"),
    ("turns below nothing", ok("max_turns: 5", "max_turns: -3"), 3, 12, "from 1 to"),
    ("true turns", ok("max_turns: 5", "max_turns: true"), 3, 12, "must be a whole number"),
    ("half a turn", ok("max_turns: 5", "max_turns: 2.5"), 3, 12, "must be a whole number"),
    ("turns in words", ok("max_turns: 5", "max_turns: five"), 3, 12, "must be a whole number"),
    ("turns in quotes", ok("max_turns: 5", 'max_turns: "5"'), 3, 12, "write it without quotes"),
    ("a language nobody reads", ok("max_turns: 5", "language: fr"), 3, 11, "no language 'fr'"),
    ("strict in words", ok("max_turns: 5", "strict_decisions: yes"), 3, 19, "write true"),
    ("too many re-asks", ok("max_turns: 5", "reasks: 6"), 3, 9, "from 0 to 5"),
    ("a description that is a mapping", ok("max_turns: 5", "description: {a: b}"), 3, 14, "must be text"),
    # Agents
    ("no agents", "name: x\ninitial_message: y\nstates: []\n", 1, 1, "has no agents"),
    ("agents without one", ok("  - name: ann\n    type: coder\n  - name: bob\n    type: ask\n", ""), 4, 8, "no agents"),
    ("agents as a mapping", "name: x\ninitial_message: y\nagents: {a: b}\n", 3, 9, "'agents' must be a list"),
    ("an agent that is a text", ok("  - name: bob\n    type: ask\n", "  - bob\n"), 7, 5, "an agent must be a mapping"),
    ("an agent without name", ok("  - name: bob\n    type", "  - type"), 7, 5, "the agent has no 'name'"),
    ("an agent without type", ok("    type: ask\n", ""), 7, 5, "'bob' has no 'type'"),
    ("an unknown type", ok("type: ask", "type: asker"), 8, 11, "did you mean 'ask'?"),
    ("a type of another case", ok("type: ask", "type: Ask"), 8, 11, "did you mean 'ask'?"),
    ("an agent twice", ok("name: bob", "name: ann"), 7, 11, "is already in line 5"),
    ("an agent outside its folder", ok("name: bob", "name: ../bob"), 7, 11, "cannot be the name of a folder"),
    ("an agent that is the shared folder", ok("name: bob", "name: collab"), 7, 11, "all agents share"),
    ("an empty model", ok("type: ask", "type: ask\n    model:"), 9, 11, "'model' is empty"),
    ("tools as a text", ok("type: ask", "type: ask\n    tools: read"), 9, 12, "'tools' must be a list"),
    ("a tool that is a number", ok("type: ask", "type: ask\n    tools: [a, 1]"), 9, 16, "must be text"),
    ("a tool twice", ok("type: ask", "type: ask\n    tools: [a, a]"), 9, 16, "twice"),
    # States
    ("no states", "name: x\ninitial_message: y\nagents: [{name: a, type: ask}]\n", 1, 1, "has no states"),
    ("states as a text", "name: x\ninitial_message: y\nagents: [{name: a, type: ask}]\nstates: s\n", 4, 9, "a list"),
    ("a state that is nothing", ok("  - name: two", "  -\n  - name: two"), 21, 4, "mapping"),
    ("a state without name", ok("  - name: two\n    agent", "  - agent"), 21, 5, "the state has no 'name'"),
    ("a state twice", ok("  - name: two", "  - name: one"), 21, 11, "is already in line 10"),
    ("a state called END", ok("  - name: two", "  - name: END"), 21, 11, "cannot be a state's name"),
    ("a state without agent", ok("    agent: bob\n", ""), 21, 5, "'two' has no 'agent'"),
    ("an unknown agent", ok("agent: bob", "agent: bib"), 22, 12, "did you mean 'bob'?"),
    ("no prompt", ok(PROMPT, ""), 10, 5, "'one' has no 'prompt'"),
    ("an empty prompt", ok(PROMPT, "    prompt:\n"), 13, 12, "'prompt' is empty"),
    ("a prompt that is a list", ok(PROMPT, "    prompt: [a]\n"), 13, 13, "must be text"),
    ("start in words", ok("start: true", "start: on"), 12, 12, "write true"),
    ("two starts", ok("    agent: bob", "    agent: bob\n    start: true"), 23, 12, "second start state"),
    # States that run a workflow
    ("both an agent and a workflow", ok("agent: bob", "agent: bob\n    workflow: x"), 23, 5, "both 'agent'"),
    ("a workflow with a prompt", ok(BOB, "    workflow: x\n    prompt: y\n"), 23, 5, "write `input`"),
    ("an empty workflow", ok(BOB, "    workflow:\n"), 22, 14, "'workflow' is empty"),
    ("a workflow that is a list", ok(BOB, "    workflow: [x]\n"), 22, 15, "'workflow' must be text"),
    ("a misspelt workflow", ok(BOB, "    worklfow: x\n"), 22, 5, "did you mean 'workflow'?"),
    ("an input that is a list", ok(BOB, "    workflow: x\n    input: [y]\n"), 23, 12, "must be text"),
    ("a variable in an input", ok(BOB, "    workflow: x\n    input: a {{y}}\n"), 23, 14, "no variable 'y'"),
    ("an input of an agent", ok("agent: bob", "agent: bob\n    input: y"), 23, 5, "put it into `prompt`"),
    ("limits of an agent", ok("agent: bob", "agent: bob\n    limits: {calls: 1}"), 23, 5, "only a state"),
    ("limits that are a number", ok(BOB, "    workflow: x\n    limits: 5\n"), 23, 13, "'limits' must be a mapping"),
    ("an unknown limit", ok(BOB, "    workflow: x\n    limits: {cals: 1}\n"), 23, 14, "did you mean 'calls'?"),
    ("a limit of nothing", ok(BOB, "    workflow: x\n    limits: {calls: 0}\n"), 23, 21, "must be above 0"),
    ("a limit below nothing", ok(BOB, "    workflow: x\n    limits: {money: -0.5}\n"), 23, 21, "must be above 0"),
    ("half a call", ok(BOB, "    workflow: x\n    limits: {calls: 1.5}\n"), 23, 21, "must be a whole number"),
    ("an endless limit", ok(BOB, "    workflow: x\n    limits: {seconds: 1.0e+99}\n"), 23, 23, "must be above 0"),
    # Templates, in every way to write a text
    ("a variable in a block", ok("Second line.", "Second {{line}}."), 15, 14, "no variable 'line'"),
    ("a variable in a stripped block", ok("prompt: |", "prompt: |-").replace("Second", "{{x}}"), 15, 7, "'x'"),
    ("a variable in an indented block", ok("prompt: |", "prompt: |2").replace("Second", " {{x}}"), 15, 8, "'x'"),
    ("a variable in folded text", ok("prompt: |", "prompt: >").replace("Second", "a {{x}}"), 15, 9, "'x'"),
    ("a variable in double quotes", ok('Judge it; decide \\"good\\"', r"\"a\" \u4e2d\tb {{x}}"), 23, 54, "'x'"),
    ("a variable in single quotes", ok(PROMPT, "    prompt: 'it''s\n\n      so {{x}}'\n"), 15, 10, "'x'"),
    ("a variable in a plain text", ok(PROMPT, "    prompt: it is\n      so {{x}}\n"), 14, 10, "'x'"),
    ("a loop in a template", ok("Second line.", "{% for a in b %}"), 15, 7, "not supported"),
    ("an if without end", ok("Second line.", '{% if last_agent_name == "bob" %}'), 15, 7, "no {% endif %}"),
    ("an end without if", ok("Second line.", "so {% endif %}"), 15, 10, "no {% if %} before it"),
    ("an if on something else", ok("Second line.", '{% if turns == "1" %}{% endif %}'), 15, 7, "not supported"),
    # Transitions and conditions
    ("transitions as a mapping", ok("    transitions:\n      - to: END", "    transitions:\n      to: END").replace(
        "        condition: good\n      - to: one\n", ""), 25, 7, "'transitions' must be a list"),
    ("a transition that is a text", ok("      - to: one\nexit", "      - one\nexit"), 27, 9, "a transition must be"),
    ("a transition to nowhere", ok(f"      - to: two\n{DONE}", "      -\n"), 17, 8, "must be a mapping"),
    ("a transition without to", ok("      - to: two\n        ", "      - "), 17, 9, "has no 'to'"),
    ("an unknown target", ok("to: two", "to: tow"), 17, 13, "did you mean 'two'?"),
    ("the end in small letters", ok("to: END", "to: end"), 25, 13, "did you mean 'END'?"),
    ("a condition that is a number", ok(DONE, "        condition: 1\n"), 18, 20, "must be text"),
    ("a condition that is a list", ok(DONE, "        condition: [done]\n"), 18, 20, "must be text"),
    ("a condition that breaks off", ok(DONE, "        condition: done AND\n"), 18, 28, "the condition ends"),
    ("a single equals sign", ok(DONE, "        condition: score = 7\n"), 18, 26, "write =="),
    ("ampersands in quotes", ok(DONE, '        condition: "done && score"\n'), 18, 26, "write AND"),
    ("an escape before the mistake", ok(DONE, r'        condition: "a == \"x\" ! b"' + "\n"), 18, 32, "write NOT"),
    ("an open bracket in a condition", ok(DONE, "        condition: '(done'\n"), 18, 26, "')'"),
    ("a mistake in folded text", ok(DONE, "        condition: >-\n          done AND\n          OR\n"), 20, 11, "'OR'"),
    ("chained comparisons", ok(DONE, "        condition: 1 < score < 3\n"), 18, 30, "cannot be chained"),
    ("a full-width bracket", ok(DONE, "        condition: （done）\n"), 18, 20, "does not belong"),
    ("far too long", ok(DONE, f"        condition: {'done OR ' * 600}done\n"), 18, 20, "at most 4000"),
    ("too many parts", ok(DONE, f"        condition: {'done OR ' * 301}done\n"), 18, 2425, "more than 300 parts"),
    # Exit conditions
    ("exits as a text", ok(EXIT, "  stop\n"), 29, 3, "a list"),
    ("an exit that is a text", ok(EXIT, "  - stop\n"), 29, 5, "mapping"),
    ("an exit without condition", ok("  - condition: error_occurred\n    ", "  - "), 29, 5, "no 'condition'"),
    ("an exit without action", ok("    action: force_end\n", ""), 29, 5, "no 'action'"),
    ("an unknown action", ok("force_end", "force_stop"), 30, 13, "did you mean 'force_end'?"),
    ("an exit that cannot be read", ok("error_occurred", "error_occurred OR OR"), 29, 34, "found 'OR'"),
]  # fmt: skip
