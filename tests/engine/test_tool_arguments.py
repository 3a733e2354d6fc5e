"""What a tool was called with is shown, also where the arguments are those of another record."""

from pathlib import Path

import pytest

from ripstop.history.timeline import record_as_json, timeline
from ripstop.kernel.effects import CallTool
from ripstop.kernel.events import Asked
from ripstop.kernel.style import arguments_for
from tests.engine.looked_at import an_engine, every_run, in_a_loop


@pytest.mark.long
@in_a_loop
async def test_every_call_of_a_tool_has_its_arguments(tmp_path: Path) -> None:
    from_other_records = 0
    async with an_engine(tmp_path) as engine:
        for run_id in await every_run(engine):
            for entry in await timeline(engine, run_id):
                event = entry.record.event
                if not isinstance(event, Asked) or not isinstance(event.command, CallTool):
                    continue
                shown = record_as_json(entry)["command"]["arguments"]
                if event.command.arguments is not None:
                    assert shown == event.command.arguments
                else:
                    opened = entry.run.open[entry.record.number]
                    assert shown == arguments_for(engine.style(entry.run), opened.state, event.command)
                    from_other_records += 1
    assert from_other_records > 5
