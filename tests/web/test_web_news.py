"""What reaches an open page by itself: the first item of an empty desk, and a server that was started again."""

from pathlib import Path

from ripstop.kernel.effects import AskPerson
from tests.web.waiting import wait_until
from tests.web.worlds import IDLE, World

LIT = '#live[data-state="on"]'


def test_an_empty_desk_shows_questions_also_after_a_restart(tmp_path: Path, visit) -> None:
    world = World(tmp_path)
    server = world.serve(kind=IDLE)
    try:
        window = visit(server)
        page = window.open("/desk")
        page.wait_for_selector(LIT)
        assert page.locator(".empty").count() == 1
        server.stop()
        page.wait_for_selector('#live:not([data-state="on"])')
        server = world.serve(kind=IDLE, port=server.port)
        page.wait_for_selector(LIT)
        world.tell(lambda desk: desk.ask("first", AskPerson(question="Which colour?")))
        page.wait_for_selector('.list .item:has-text("Which colour?")')
        assert page.locator(".bar .pill").inner_text().split() == ["1", "waits", "for", "a", "person"]
        world.tell(lambda desk: desk.ask("second", AskPerson(question="Which size?")))
        wait_until(page, "document.querySelectorAll('.list .item').length === 2")
        wait_until(page, "document.querySelector('.bar .pill').textContent.includes('2 wait for a person')")
        window.check()
    finally:
        server.stop()
