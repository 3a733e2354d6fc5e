"""Small workflows that are right, for mutating and for tests: loops, one in Chinese, and one that runs another."""

from pathlib import Path

from ripstop.definitions.problems import Problem
from ripstop.definitions.reader import Environment
from ripstop.styles.graph.reader import READER

LOOP = """\
# A writer and a reader, until the reader is content.
name: loop
description: "A writer writes; a reader says whether it is good."
initial_message: a letter to the sea
max_turns: 6
agents:
  - name: writer
    type: coder
  - {name: reader, type: ask}
states:
  - name: write
    agent: writer
    start: true
    prompt: |
      {{COLLABORATION_GUIDE}}
      Write about {{initial_message}}.
      {% if last_agent_name == "reader" %}
      The reader said: {{last_agent_content}}
      {% else %}
      This is your first try.
      {% endif %}
      Decide: done, true or false.
    transitions:
      - to: read
        condition: done
      - to: write
        condition: "NOT done"
  - name: read
    agent: reader
    prompt: "{{COLLABORATION_GUIDE}} Read {{last_agent_content}} and decide: \\"good\\"."
    transitions:
      - {to: END, condition: good == true}
      - to: write
exit_conditions:
  - condition: max_turns_exceeded
    action: force_end
"""

SCORES = """\
name: scores
initial_message: >-
  a page about
  ropes and knots
max_turns: 12
language: en
reasks: 2
strict_decisions: false
agents: &team
  - name: maker
    type: architect
    model: strong
  - name: judge
    type: ask
    tools: [read_file, list_files]
states:
  - name: make
    agent: maker
    start: true
    prompt: >
      {{COLLABORATION_GUIDE}}
      Make {{initial_message}}; the judge said {{last_agent_decisions}}.
      Decide "finished".

    transitions:
      - to: judge
        condition: 'finished AND NOT (turns > 10)'
      - to: make
  - name: judge
    agent: judge
    prompt: |-
      {{ COLLABORATION_GUIDE }}
      Decide "score" (1 to 10) and "verdict" ("pass", "fail" or "again").
    transitions:
      - to: END
        condition: score >= 8 AND verdict == "pass" OR max_turns_exceeded
      - to: make
        condition: >-
          NOT (score >= 8 AND
          verdict == "pass")
exit_conditions:
  - condition: error_occurred
    action: save_and_end
"""

CHINESE = """\
# 甲方提需求，乙方制作
name: "海报"
description: '两方协作：甲方''评审''，乙方制作'
initial_message: "制作一张关于\\u6d77的海报"
max_turns: 10
language: zh
agents:
  - name: "甲方"
    type: "ask"
  - name: "乙方"
    type: "coder"
states:
  - name: "制作"
    agent: "乙方"
    start: true
    prompt: |
      【system prompt】：{{COLLABORATION_GUIDE}}
      【任务目标】：{{initial_message}}
      {% if last_agent_name == "甲方" %}甲方说：{{last_agent_content}}{% else %}请开始。{% endif %}
      【decisions字段说明】：{"decisions": {"完成": true}} // [boolean]
    transitions:
      - to: "评审"
        condition: "完成"
      - to: "制作"
        condition: "NOT 完成"
  - name: "评审"
    agent: "甲方"
    prompt: |
      【system prompt】：{{COLLABORATION_GUIDE}}
      乙方说：{{last_agent_content}}
      {"decisions": {"approved": false, "satisfaction_score": 7}}
    transitions:
      - to: "END"
        condition: "approved OR satisfaction_score >= 8"
      - to: "制作"
exit_conditions:
  - condition: "max_turns_exceeded"
    action: "force_end"
"""

NESTED = """\
# A writer, and a review that is a workflow of its own.
name: nested
initial_message: a letter to the sea
max_turns: 6
agents:
  - {name: writer, type: coder}
states:
  - name: write
    agent: writer
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Write about {{initial_message}}; decide done. {{last_agent_content}}"
    transitions:
      - {to: check, condition: done}
      - {to: write, condition: NOT done}
  - name: check
    workflow: review
    input: |
      Review this: {{last_agent_content}}
    limits: {calls: 10, money: 0.5}
    transitions:
      - {to: END, condition: 'outcome == "completed" AND approved'}
      - {to: write, condition: 'outcome != "completed" OR NOT approved'}
"""

WORKFLOWS = {"loop": LOOP, "scores": SCORES, "海报": CHINESE, "nested": NESTED}


def check_graph(path: Path) -> list[Problem]:
    """The problems of a graph, whatever models and tools there are."""
    return READER.check(path, Environment())
