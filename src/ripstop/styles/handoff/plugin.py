"""What the hand-off style brings, as import strings: nothing of it is imported before it is needed."""

from ripstop.app.plugin import Plugin, PluginCommand

PLUGIN = Plugin(
    name="handoff",
    summary="Markdown documents pass from owner to owner; people and programs work in the same folder.",
    kits=("ripstop.styles.handoff.kit:KIT",),
    styles=("handoff",),
    reader="ripstop.styles.handoff.reader:READER",
    tools="ripstop.styles.handoff.publisher:own_tools",
    tool_names=(
        "publish_document",
        "send_reply",
    ),
    service="ripstop.styles.handoff.style_service:SERVICE",
    commands=(PluginCommand("docs", "ripstop.styles.handoff.cli:docs", "Work with hand-off documents."),),
    texts="ripstop.styles.handoff:texts",
    steps={"restore_documents": "docs restore", "terminate_document": "docs terminate {}"},
    failpoints=(
        "documents.before_write",
        "documents.before_link",
        "documents.after_link",
        "documents.before_rename",
        "documents.after_exchange",
        "documents.after_rename",
        "documents.before_move",
        "documents.after_move",
        "documents.before_remove",
        "documents.after_remove",
        "documents.after_keep",
        "documents.after_note",
    ),
    demo="ripstop.styles.handoff.demo:SCENES",
)
