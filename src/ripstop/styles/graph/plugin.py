"""What the graph style brings, as import strings: nothing of it is imported before it is needed."""

from ripstop.app.plugin import Plugin

PLUGIN = Plugin(
    name="graph",
    summary="Agents take turns along the edges of a state graph in YAML.",
    kits=("ripstop.styles.graph.kit:KIT",),
    styles=("graph",),
    reader="ripstop.styles.graph.reader:READER",
    files=("workflow.yaml",),
    texts="ripstop.styles.graph:texts",
    demo="ripstop.styles.graph.demo:SCENES",
)
