"""The collaboration guide that `{{COLLABORATION_GUIDE}}` stands for, unless the author brings one."""

GUIDE = """\
## How we work together

- You are one member of a small team. You see what the colleague before you said, and the next one sees what you say.
- Shared results are files under `collab/`. Notes that only you need stay in your own folder.
- Write files first. Say what you did last, in one JSON object, and write nothing after it.

The JSON object has two parts:

{
  "content": "what you did, found or decided, in a few plain sentences for your colleagues",
  "decisions": {}
}

`decisions` holds the fields that the task below asks for. The next step is chosen from these fields alone,
so be honest in them: true only for what is really done.
"""
