"""What the conversation style brings, as import strings: nothing of it is imported before it is needed."""

from ripstop.app.plugin import Plugin, PluginCommand

PLUGIN = Plugin(
    name="conversation",
    summary="A bot answers users in sessions: it plans, acts, waits, and hands over to a person.",
    summaries={"planning": "Makes the plan of a bot, once for all of its sessions."},
    kits=("ripstop.styles.conversation.kit:KIT", "ripstop.styles.conversation.kit:PLANNING"),
    styles=("conversation", "planning"),
    reader="ripstop.styles.conversation.reader:READER",
    files=("bot.yaml", "bot.yml", "bot.json"),
    tools="ripstop.styles.conversation.tools:own_tools",
    tool_names=("search_knowledge",),
    http="ripstop.styles.conversation.http.application:open_face",
    commands=(
        PluginCommand("chat", "ripstop.styles.conversation.cli.chat:chat", "Talk to a bot."),
        PluginCommand("sessions", "ripstop.styles.conversation.cli.sessions:sessions", "Look at sessions."),
        PluginCommand("kb", "ripstop.styles.conversation.cli.knowledge:kb", "Search knowledge bases."),
    ),
    texts="ripstop.styles.conversation:texts",
    steps={"replan": "sessions replan"},
    demo="ripstop.styles.conversation.demo:SCENES",
)
