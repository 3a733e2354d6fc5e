"""A style as somebody else would write it: chores that an agent does, one after the other, until a person is content.

It has one of everything that a style can bring, and uses nothing that is private to ripstop.
"""

from ripstop import Plugin, PluginCommand

PLUGIN = Plugin(
    name="chores",
    summary="An agent does chores from a list until a person is content.",
    kits=("tests.toy_style.kit:KIT",),
    reader="tests.toy_style.reader:READER",
    tools="tests.toy_style.tools:own_tools",
    agent_tools="tests.toy_style.tools:agent_tools",
    texts="tests.toy_style:texts",
    commands=(PluginCommand("chores", "tests.toy_style.commands:chores", "Show what is done of a list of chores."),),
)
