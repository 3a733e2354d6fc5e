"""What the blackboard style brings, as import strings: nothing of it is imported before it is needed."""

from ripstop.app.plugin import Plugin, PluginCommand

PLUGIN = Plugin(
    name="blackboard",
    summary="MAIN decides, specialists report, and a policy verifies; all of it is files in one folder.",
    kits=("ripstop.styles.blackboard.kit:KIT",),
    styles=("blackboard",),
    reader="ripstop.styles.blackboard.reader:READER",
    tools="ripstop.styles.blackboard.tools:own_tools",
    tool_names=(
        "board_check",
        "board_open",
        "board_write",
    ),
    commands=(PluginCommand("board", "ripstop.styles.blackboard.cli:board", "Read reports by a policy."),),
    texts="ripstop.styles.blackboard:texts",
    failpoints=(
        "board.before_pending",
        "board.after_pending",
        "board.between_files",
        "board.before_rename",
        "board.after_rename",
        "board.after_write",
    ),
    demo="ripstop.styles.blackboard.demo:SCENES",
)
