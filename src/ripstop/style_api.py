"""For authors of styles: what a style is made of, what it asks for, how it is shown, read, drawn and plugged in.

Events of all styles are in `ripstop.events`, errors and tools for agents in `ripstop`, helpers for tests of a style in
`ripstop.testing`. Nothing else of ripstop is needed to write a style, and nothing else is stable.
"""

from ripstop.app.plugin import Plugin, PluginCommand
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.definitions.problems import ERROR, WARNING, Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.reader import DefinitionReader, Environment
from ripstop.engine.performers import Kind, Performer, Request
from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Failed,
    Field,
    Guards,
    Limits,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolCall,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import Event, Fact, TurnResult
from ripstop.kernel.parts import (
    Claim,
    Claims,
    Facts,
    Ledger,
    LedgerEntry,
    Line,
    Paper,
    Part,
    Rail,
    Stage,
    Talk,
    Task,
    Tasks,
    Timer,
    Timers,
)
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.result import Result, read_result
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import (
    Action,
    AgentUse,
    AudienceHooks,
    Child,
    Document,
    Ending,
    EndpointUse,
    Explanation,
    Lead,
    News,
    Notice,
    PersonHooks,
    Picture,
    Reason,
    Sample,
    Settled,
    Style,
    StyleKit,
    StyleView,
    Uses,
)
from ripstop.text.diagrams.diagram import Chapter, Diagram, Edge, Journey, Node, journey
from ripstop.tools.style_tools import typed_tool

__all__ = [
    # A plug-in
    "BUILT_IN",
    "Plugin",
    "PluginCommand",
    "Plugins",
    "Sample",
    "StyleKit",
    # Deciding
    "AgentUse",
    "Child",
    "Ending",
    "EndpointUse",
    "Event",
    "Fact",
    "Guards",
    "Limits",
    "News",
    "Run",
    "Settled",
    "Result",
    "Step",
    "read_result",
    "Style",
    "TurnResult",
    "Usage",
    "Uses",
    # Commands, and their answers
    "AgentReplied",
    "Answer",
    "AnswerChild",
    "AskAgent",
    "AskPerson",
    "CallTool",
    "Command",
    "CutOff",
    "Failed",
    "Field",
    "PersonAnswered",
    "RunFinished",
    "Said",
    "Say",
    "SetTimer",
    "StartRun",
    "TimerFired",
    "ToolCall",
    "ToolReturned",
    # Prompts
    "Message",
    "Prompt",
    # What people see and do
    "Action",
    "AudienceHooks",
    "Document",
    "Explanation",
    "Lead",
    "Notice",
    "PersonHooks",
    "Picture",
    "Reason",
    "StyleView",
    # Parts of a run's page
    "Claim",
    "Claims",
    "Facts",
    "Ledger",
    "LedgerEntry",
    "Line",
    "Paper",
    "Part",
    "Rail",
    "Stage",
    "Talk",
    "Task",
    "Tasks",
    "Timer",
    "Timers",
    # Drawings
    "Chapter",
    "Diagram",
    "Edge",
    "Journey",
    "Node",
    "journey",
    # Definitions in files
    "ERROR",
    "WARNING",
    "DefinitionReader",
    "Environment",
    "Position",
    "Problem",
    "WrongDefinition",
    "did_you_mean",
    # Tools that only the style calls
    "Kind",
    "Performer",
    "Request",
    "typed_tool",
]
