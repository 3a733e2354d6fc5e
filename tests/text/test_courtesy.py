"""Courtesy is recognised in many languages, and work that begins politely is never taken for it."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.kernel.effects import Guards
from ripstop.kernel.errors import UsageError
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.text.courtesy import (
    BESIDE,
    MANNERS,
    MAX_COURTESY,
    MOVES,
    SPOKEN,
    Manners,
    _shipped,
    check_phrases,
    courteous,
    is_courtesy,
    phrases,
)


def lines(table: str) -> list[str]:
    return [line.strip() for line in re.split(r"[|\n]", table) if line.strip()]


THANKS = lines("""
    谢谢 | 谢谢！ | 感谢 | 感谢您的回复 | 非常感谢 | 多谢~ | 谢谢啦～ | 太感谢了 | 再次感谢大家 | 感谢您的及时回复。
    谢谢你的帮助和支持 | 感谢反馈！ | 辛苦了 | 您辛苦了！ | 大家辛苦了 | 谢谢，老板 | 对您的回复表示感谢
    衷心感谢您的支持！ | 謝謝 | 感謝您的回覆 | 非常感謝！ | 謝謝老師 | Thanks | Thanks!!! | THANK YOU SO MUCH | thx
    ty | cheers | Thanks a lot! | Many thanks, everyone. | Thanks again, team!
    Thank you very much for your quick reply! | Thanks for confirming. | Thanks for the help and support!
    Much appreciated. | I appreciate your feedback. | Thank you all! | Really appreciate it | **Thanks!**
    “Thank you.” | Thanks :) | thank you\t all | ありがとう | どうもありがとうございます！
    ご返信ありがとうございます。 | ご確認いただきありがとうございました | お疲れ様でした | 감사합니다
    정말 감사합니다! | 답변 감사합니다. | 도와주셔서 고마워요 | 수고하셨습니다 | gracias | ¡Muchas gracias!
    Muchas gracias por su ayuda. | Mil gracias a todos | merci | Merci beaucoup ! | Un grand merci à tous
    Merci pour votre réponse. | Danke | Vielen Dank! | Herzlichen Dank für Ihre Hilfe. | Danke schön | Obrigado!
    Muito obrigada | Obrigado pela resposta. | Grazie mille! | Tante grazie | Grazie per la risposta | Спасибо
    Большое спасибо! | Спасибо за ответ | شكراً | شكراً جزيلاً | شكرا لك على ردك | धन्यवाद | आपका बहुत बहुत धन्यवाद।
    Teşekkürler | Çok teşekkür ederim! | TEŞEKKÜRLER | Cảm ơn bạn rất nhiều! | Xin cảm ơn | Dziękuję bardzo
    Dzięki za pomoc | Dank je wel! | Hartelijk bedankt | Bedankt voor je reactie | Terima kasih banyak
    Terima kasih atas bantuannya
""")
WELCOMES = lines("""
    不客气 | 不用谢 | 不用客气啦 | 应该的 | 没事儿 | 不客氣 | 不用謝 | You're welcome | You’re welcome!
    you are very welcome | youre welcome | no problem | No worries! | my pleasure | anytime | Don't mention it
    Happy to help! | Not at all. | どういたしまして | とんでもないです | 천만에요 | 별말씀을요 | De nada
    No hay de qué | De rien | Je vous en prie | Bitte | Gern geschehen | Keine Ursache | De nada! | Não há de quê
    Prego | Di niente | Пожалуйста | Не за что | عفواً | على الرحب والسعة | कोई बात नहीं | Rica ederim | Bir şey değil
    Không có gì | Nie ma za co | Graag gedaan | Geen dank | Sama-sama
""")
ACKNOWLEDGEMENTS = lines("""
    好的 | 好，谢谢 | 好的，谢谢！ | 好的好的 | 好的谢谢 | 好的，老板。 | 好嘞 | 收到 | 收到收到 | 收到，谢谢确认。
    收到谢谢 | 收到您的反馈 | 明白 | 明白了 | 我明白了 | 了解 | 了解了解 | 知道了 | 没问题 | 没问题的，谢谢 | 沒問題
    瞭解 | OK | ok! | ＯＫ！ | Okay | O\u200bK | ok thanks | OK，谢谢 | got it | Got it, thanks! | noted
    Noted with thanks | understood | Understood, thank you. | Roger that | Received, thanks | Received your message
    Alright then | Acknowledged. | 了解です | 承知しました | かしこまりました | わかりました！ | 알겠습니다
    네 알겠습니다 | Entendido | De acuerdo, gracias | Vale | D'accord | Bien reçu, merci ! | Compris | Verstanden
    Alles klar, danke! | Entendido, obrigado | Va bene | Ricevuto, grazie | Понял | Хорошо, спасибо | Понятно | حسناً
    مفهوم | ठीक है | समझ गया | Tamam | Anladım, teşekkürler | Đã hiểu | Đã nhận, cảm ơn | Rozumiem | Dobrze, dziękuję
    Begrepen | Oké, bedankt | Baik, terima kasih | Mengerti
""")
FAREWELLS = lines("""
    再见 | 拜拜 | 拜拜啦 | 再见，祝您工作顺利！ | 祝您有美好的一天 | 再見 | 掰掰 | bye | Bye-bye! | Goodbye
    goodbye everyone | see you | See you later! | Have a nice day | best regards | Thanks & regards
    thank you very much bye | Take care! | さようなら | では、失礼します | それではまた | 안녕히 계세요
    좋은 하루 되세요 | Adiós | Hasta luego | Saludos cordiales | Au revoir | Bonne journée à tous | Auf Wiedersehen
    Tschüss | Schönen Tag noch! | Tchau | Até logo | Arrivederci | Buona giornata | До свидания | Хорошего дня!
    مع السلامة | अलविदा | Güle güle | Görüşürüz | Tạm biệt | Do widzenia | Miłego dnia | Tot ziens | Sampai jumpa
""")
SIGNS = lines("""
    👍 | 👍🏽 | 🙏🙏 | 👌 | ❤️ | 🙇‍♂️ | 🫱🏻‍🫲🏿 | 😊! | :) | Thanks 🙏 | 谢谢🌹🌹 | 👍 OK | OK 🇨🇳 | 收到 ✅
    Thanks 🎉 | 谢谢@张三 | @王小明 谢谢 | 好的，@王小明 谢谢 | 감사합니다 @김철수 | @bob谢谢 | @Наталья спасибо
    @bob thanks | @bob 👍
""")
WORDED = THANKS + WELCOMES + ACKNOWLEDGEMENTS + FAREWELLS
COURTEOUS = WORDED + SIGNS

REPORTS = lines("""
    收到，开始写登录页面。 | 好的，老板。我明天开始写接口。 | 不客气，需要的话我再补充文档。 | 了解需求
    明白问题在哪了 | 谢谢你修复了登录 | 好的方案 | 没问题了 | OK了 | 好了 | 好啦 | 没事了 | 感谢测试，测试通过
    收到测试结果 | 收到，已部署 | 已收到文件并开始处理 | 谢谢，接口已经改好 | 好的，文档在 docs 里
    明白，预计明天完成 | 收到需求文档，正在分析 | 再见函数已经删除 | 感谢信已发送 | 辛苦确认 | 辛苦确认收到
    收到请回复 | 请确认，谢谢 | 已确认 | 完成 | 已完成，谢谢 | 通过 | 同意 | 可以 | 是的 | 对 | 不行，谢谢 | 谢绝
    好的吗 | 收到了吗 | 明白吗 | 大家好 | 很好 | 好的代码风格 | 拜托 | 没问题的话就上线 | 谢谢提出的三个问题
    收到，謝謝，檔案已更新 | 沒問題了 | 好的，我會修改 | OK, I will run the tests | Thanks, the bug is fixed
    Understood: 42 | ok 3 | thanks for fixing the login | got it working | no problem found | OK button is missing
    noted 3 defects | received 5 files | done | Done, thanks! | completed | yes | Yes, thanks | no | No, thanks
    approved | LGTM | LGTM, thanks! | will do | Will do, thanks | sure | on it | fixed | confirmed | all ok | All OK!
    team ok | OK to deploy | OK for the update | thanks but the test fails | Thanks! Now deploy it.
    Thank you, next step is review | Got it. Starting now. | Noted, will update the spec
    Understood, the limit is ten | No problem, I pushed a fix | You're welcome, the report is attached
    Bye message is not shown | Goodbye screen done | thanks page returns an error | the thanks page | okay button
    See you in the review at five | Have a nice day dialog removed | best regards template added
    Thanks in advance for merging | Thank you note written | cheers.py added | Received the wrong file
    Understood the requirements and wrote the plan | Roger is the new owner | welcome page built
    got it from the cache | Please reply | Your message was empty | ok so what now | not ok | nothing to thank for
    Thanks Bob, merged | I appreciate it when tests pass | 了解しました。修正します。
    ありがとうございます。実装が完了しました | 確認しました | 確認お願いします | よろしくお願いします | はい
    わかりましたか | 問題ありません | 承知しました、明日までに対応します | 感謝ページを追加しました
    감사합니다. 수정했습니다 | 확인했습니다 | 알겠습니다 바로 시작하겠습니다 | 감사 페이지 추가 | 확인 부탁드립니다
    Gracias, ya está hecho | Hecho | Listo | De acuerdo, lo implemento | Gracias por arreglar el error | Perfecto
    Entendido, empiezo ahora | Merci, c'est corrigé | D'accord, je lance les tests | Merci de corriger le bug
    Compris, je commence | Fait | Bien reçu le fichier de test | Danke, der Fehler ist behoben | Fertig
    Verstanden, ich beginne | Bitte testen | Bitte nochmal | Danke für den Fix | Alles klar, ich teste jetzt
    Obrigado, corrigi o erro | Feito | Entendido, vou testar | Grazie, ho corretto il bug | Fatto | Va bene il piano
    Capito il problema | Спасибо, ошибка исправлена | Готово | Понял, начинаю | Хорошо работает
    Пожалуйста проверьте | Принято решение | شكرا تم إصلاح الخطأ | تم | حسنا سأبدأ الآن | धन्यवाद, बग ठीक हो गया
    हो गया | ठीक है मैं शुरू करता हूँ | Teşekkürler, hata düzeltildi | Tamamlandı | Tamam başlıyorum
    Cảm ơn, lỗi đã được sửa | Xong | Đã hiểu yêu cầu | Dziękuję, błąd naprawiony | Gotowe | Rozumiem problem
    Bedankt, de fout is opgelost | Klaar | Oké, ik begin | Terima kasih, bug sudah diperbaiki | Selesai
    Baik, saya mulai | [WORKFLOW_END] | 谢谢 [WORKFLOW_END] | {"thanks": "ok"} | ok() | `ok`
    def ok(): return thanks | ok/thanks | docs/ok.md | <b>OK</b> | ok_thanks | OK = 1 | 42 | 3.14 | ok=ok
    thanks@example.com | $ok | #thanks | OK 3️⃣ | 谢谢 ❌ | OK 👎 | 收到 ⚠️ | 谢谢@张三请修复登录 | 好的@bob修复登录
    Thanks @bob please merge | 谢谢@张三对 | 收到@张三删！ | 谢谢@张三对 谢谢
""")
QUESTIONS = lines("""
    OK? | Is it OK? | 好的？ | 谢谢？ | 收到﹖ | Thanks? 🙏 | ¿Vale | مفهوم؟ | OK⁉️ | OK ❓ | ok ⁇ | Understood?!
    Thanks. Ready?
""")
HALVES = lines("""
    确认谢谢 | 回复谢谢 | 好的确认 | 네
""")
"""No courtesy alone, but the right neighbour makes one of them: 네 알겠습니다."""
NOTHING_SAID = [
    *(
        "",
        "   ",
        "\n",
        "...",
        "!!!",
        "。",
        "—",
        "🎉",
        "🚀🚀",
        "✅",
        "1️⃣",
        "🇨🇳",
        "👍🎉",
        "👍❌",
        "🙂‍↔️",
        "@bob",
        "\u200b",
        "*",
    ),
    *("老板", "大家", "team", "very much", "for your reply", "您的回复", "and", "了", "非常"),
]

WORK = st.sampled_from(REPORTS + QUESTIONS)
POLITE = st.sampled_from(COURTEOUS)
POLITE_WORDS = st.sampled_from(WORDED)
CUT = [", ", ". ", "\n", "，", "。", "! ", ": "]


@pytest.mark.req("S0-39")
@pytest.mark.parametrize("text", THANKS)
def test_thanks_are_courtesy(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.req("S0-40")
@pytest.mark.parametrize("text", WELCOMES)
def test_a_welcome_is_courtesy(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.req("S0-41")
@pytest.mark.parametrize("text", ACKNOWLEDGEMENTS)
def test_an_acknowledgement_is_courtesy(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.req("S0-42")
@pytest.mark.parametrize("text", FAREWELLS)
def test_a_farewell_is_courtesy(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.req("S0-39", "S0-41")
@pytest.mark.parametrize("text", SIGNS)
def test_polite_signs_and_mentions_do_not_hide_a_courtesy(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.req("S0-39", "S0-40", "S0-41", "S0-42")
@pytest.mark.parametrize("text", REPORTS + HALVES)
def test_what_reports_asks_or_decides_is_no_courtesy_however_it_begins(text: str) -> None:
    assert not is_courtesy(text)


@pytest.mark.req("S0-41")
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_no_courtesy(text: str) -> None:
    assert not is_courtesy(text)


@pytest.mark.req("S0-39")
@pytest.mark.parametrize("text", NOTHING_SAID)
def test_nothing_said_is_no_courtesy(text: str) -> None:
    assert not is_courtesy(text)


@pytest.mark.req("S0-39", "S0-40", "S0-41", "S0-42")
def test_every_phrase_of_the_table_is_courtesy_and_no_filler_is() -> None:
    spoken = {word for kind, word in _shipped() if kind in SPOKEN}
    beside = {word for kind, word in _shipped() if kind in BESIDE} - spoken
    assert [word for word in spoken if not is_courtesy(" ".join(word))] == []
    assert [word for word in beside if is_courtesy(" ".join(word))] == []


def test_the_table_is_read_whole() -> None:
    assert set(MOVES) == {*SPOKEN, *BESIDE}
    words = [(kind, word) for language in phrases().values() for kind, of in language.items() for word in of]
    assert len(_shipped()) == sum(kind != "telling" for kind, _ in words) == 2701
    assert [word for _, word in words if word != word.strip()] == []


@pytest.mark.req("S0-39", "S0-41")
@given(POLITE_WORDS, st.sampled_from([str.upper, str.lower, str.title, str.casefold]))
def test_case_does_not_matter(text: str, cased: Callable[[str], str]) -> None:
    assert is_courtesy(cased(text))


@pytest.mark.req("S0-39", "S0-41")
@given(
    POLITE_WORDS,
    st.text(" \t\n\u3000", max_size=5),
    st.lists(st.sampled_from([*"!.~。！～…、", " 👍", " 🙏🏿", " 👨‍👩‍👧", " 🏴󠁧󠁢󠁥󠁮󠁧󠁿", " 🇫🇷", "\u200b", " #️⃣"]), max_size=8),
)
def test_blanks_punctuation_and_emoji_around_it_do_not_matter(text: str, blanks: str, signs: list[str]) -> None:
    assert is_courtesy(f"{blanks}{text}{''.join(signs)}{blanks}")


@pytest.mark.req("S0-39", "S0-41")
@given(st.lists(POLITE, min_size=1, max_size=9), st.sampled_from(CUT))
def test_several_courtesies_are_a_courtesy_unless_too_long(texts: list[str], separator: str) -> None:
    told = normalize("NFC", separator.join(texts))
    assert is_courtesy(told) == (len(told) <= MAX_COURTESY)


@pytest.mark.req("S0-43", "S0-44")
@given(POLITE, WORK, st.sampled_from([*CUT, " ", " - "]), st.booleans())
def test_courtesy_joined_to_work_is_work(polite: str, work: str, separator: str, first: bool) -> None:
    told = polite + separator + work if first else work + separator + polite
    assert not is_courtesy(told)


@pytest.mark.req("S0-43", "S0-44")
@given(POLITE, st.sampled_from([*CUT, " ", " - "]), st.text("qxzjw0123456789_/{}", min_size=3), st.booleans())
def test_courtesy_beside_anything_unknown_is_none(polite: str, separator: str, unknown: str, first: bool) -> None:
    assert not is_courtesy(polite + separator + unknown if first else unknown + separator + polite)


@given(st.lists(st.sampled_from([" ".join(word) for kind, word in _shipped() if kind in BESIDE]), max_size=6))
def test_fillers_alone_are_never_courtesy(fillers: list[str]) -> None:
    spoken = {word for kind, word in _shipped() if kind in SPOKEN}
    if not any(tuple(filler.split()) in spoken for filler in fillers):
        assert not is_courtesy(". ".join(fillers))


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    assert is_courtesy(text) in {True, False}


@pytest.mark.parametrize("text", ["\ud83d", "谢谢\ud83d", "\x00", "Thanks\x00"])
def test_half_a_sign_is_no_courtesy(text: str) -> None:
    assert not is_courtesy(text)


@given(st.one_of(POLITE, WORK, st.text(), st.lists(POLITE, max_size=12).map(" ".join)))
def test_composed_and_decomposed_signs_are_the_same(text: str) -> None:
    assert is_courtesy(normalize("NFC", text)) == is_courtesy(normalize("NFD", text))


def test_a_long_text_is_no_courtesy() -> None:
    assert is_courtesy("谢" * MAX_COURTESY) and is_courtesy(" " * 2000 + "谢谢" + "\n" * 2000)
    assert not is_courtesy("谢" * (MAX_COURTESY + 1))
    assert not is_courtesy("Thanks! " * 5000)


@pytest.mark.req("S0-39", "S0-41")
def test_a_user_adds_phrases_and_takes_some_out() -> None:
    own = MANNERS.with_phrases(("Groovy man", "好了", "🎉")).without(("OK", "谢谢", "👍"))
    assert all(
        is_courtesy(text, own) for text in ("GROOVY man!", "好了", "好了，多谢", "🎉🎉", "groovy man, thanks", "Okay")
    )
    assert not any(is_courtesy(text, own) for text in ("ok", "OK, thanks", "谢谢", "谢谢！", "👍", "groovy"))
    assert is_courtesy("OK, 谢谢") and not is_courtesy("groovy man") and not is_courtesy("🎉")
    assert is_courtesy("ok", own.with_phrases(("OK",))) and not is_courtesy("好了", own.without(("好了",)))
    assert Manners() == MANNERS


def test_a_phrase_taken_out_leaves_the_longer_ones_that_begin_with_it() -> None:
    own = MANNERS.without(("谢", "see you"))
    assert is_courtesy("谢谢", own) and is_courtesy("See you later!", own)
    assert not is_courtesy("谢", own) and not is_courtesy("see you", own)


@pytest.mark.parametrize("phrase", ["", "!!", "好的，走起", "ok?", "👍🎉"])
def test_a_phrase_that_could_never_match_is_refused(phrase: str) -> None:
    with pytest.raises(UsageError, match="cannot be a courtesy phrase"):
        MANNERS.with_phrases((phrase,))


def test_own_phrases_count_next_to_the_built_in_ones() -> None:
    assert not courteous("Aye, captain!", Guards())
    assert courteous("Aye, captain!", Guards(phrases=("aye", "captain")))
    assert courteous("Thanks!", Guards(phrases=("aye",)))


def test_guards_with_a_phrase_that_cannot_match_are_refused() -> None:
    own = Guards(phrases=("aye",))
    assert check_phrases(own) is own
    with pytest.raises(UsageError, match="'aye, captain' cannot be a courtesy phrase"):
        check_phrases(Guards(phrases=("aye", "aye, captain")))


@pytest.mark.parametrize("style", [GraphStyle(), HandoffStyle()], ids=lambda style: style.name)
def test_a_style_refuses_phrases_that_cannot_match(style: GraphStyle | HandoffStyle) -> None:
    definition: Any = Policy()
    with pytest.raises(UsageError, match="cannot be a courtesy phrase"):
        style.guards(definition, {"phrases": ["aye, captain"]})


def test_a_long_message_does_not_load_the_tables() -> None:
    loads = "from ripstop.text import courtesy; from ripstop.kernel.effects import Guards; "
    asks = "[courtesy.courteous(text, Guards()) for text in ('x' * 241, '好' * 961)]; courtesy.check_phrases(Guards());"
    shows = "print(courtesy.phrases.cache_info().currsize, courtesy.courteous('Thanks!', Guards()))"
    done = subprocess.run([sys.executable, "-c", loads + asks + shows], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]
