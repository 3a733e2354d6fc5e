"""The collaboration guide that `{{COLLABORATION_GUIDE}}` stands for, unless a `guide.md` replaces it.

There is a short one for local models. They are small, and repeat a long guide instead of doing the task below it; and
their replies are held to a schema, so that nothing has to be explained about the form.
"""

ENGLISH = """\
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

CHINESE = """\
## 我们怎样一起工作

- 你是一个小团队的一员。你能看到上一位同事说的话，下一位同事会看到你说的话。
- 共享的成果是 `collab/` 下的文件；只有你自己需要的笔记放在你自己的目录里。
- 先写文件，最后用一个 JSON 对象说明你做了什么，之后不要再写任何内容。

这个 JSON 对象有两部分：

{
  "content": "用几句平实的话告诉同事：你做了什么、发现了什么、决定了什么",
  "decisions": {}
}

`decisions` 里写任务要求的字段。下一步只由这些字段决定，所以请如实填写：真正做完的事才写 true。
"""

GUIDES = {"en": ENGLISH, "zh": CHINESE}
SHORT_GUIDES = {"en": "Answer in JSON.", "zh": "用 JSON 回答。"}
