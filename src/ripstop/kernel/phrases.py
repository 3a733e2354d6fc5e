"""The words of courtesy, by language. Only data; `courtesy.py` says how they may be put together.

- `kind: word, word, …` goes on until the next kind. Case, accents, apostrophes and hyphens do not matter.
- A word stands here only if it is nothing but polite. What may also report, ask, promise or decide is left out,
  however often it is meant kindly: done, yes, sure, approved, with pleasure, 嗯, 可以, はい, perfecto, fertig.
- `SPOKEN` says it by itself: `thanks`; `receipt` (what was received may be named); `hearing` (only "your …" may
  follow); `plain` (welcome, acknowledgement, farewell); `lone` (polite only if nothing else stands beside it).
- `BESIDE` never says it by itself: `title` (whom it is said to); `before` (only before thanks); `after` (only after
  thanks); `particle` (after anything said); `join`; `for`, `owner`, `adjective`, `object` ("for", "your", "quick",
  "reply"); `favour` (a whole "for letting me know").
- `work` is what could be put together from polite words and yet says something else ("ok了": it is done).
"""

SPOKEN = ("thanks", "receipt", "hearing", "plain", "lone")
BESIDE = ("title", "before", "after", "particle", "join", "for", "owner", "adjective", "object", "favour")

WORDS = """
[English]
thanks: thanks, thank you, thank u, thankyou, thx, thks, tnx, ty, tysm, tyvm, my thanks, with thanks, cheers,
  appreciated, appreciate it, appreciate that, i appreciate it, appreciate, i appreciate, we appreciate,
  i really appreciate, we appreciate it, much obliged, im grateful, we are grateful, i am grateful
receipt: received, noted, duly noted, well noted, well received, duly received, acknowledged, ack
hearing: understood, i understand, fully understood, well understood, clearly understood
plain: you're welcome, you are welcome, you're very welcome, you are very welcome, you're most welcome, ur welcome,
  you are most welcome, your welcome, most welcome, very welcome, yw, welcome, pleasure, my pleasure, a pleasure,
  it's my pleasure, it was my pleasure, it's a pleasure, it was a pleasure, the pleasure is mine,
  the pleasure is all mine, happy to help, glad to help, always happy to help, always glad to help, i'm happy to help,
  i'm glad to help, glad i could help, happy i could help, glad to be of help, anytime, any time, no problem,
  not a problem, no prob, np, no worries, don't mention it, think nothing of it, it's nothing, it was nothing,
  not at all, no trouble, no big deal, you too, same to you, likewise, ok, okay, okey, kk, okey dokey, okie dokie,
  alright, all right, got it, gotcha, got that, i've got it, roger, roger that, copy that, message received, i see,
  very well, aye aye, loud and clear, got your message, got the message, got your reply, got your feedback, bye,
  byebye, bye for now, bye now, goodbye, good bye, farewell, good night, goodnight, so long, see you, see ya, see u,
  cya, see you later, see you soon, see you around, see you tomorrow, see you next time, see you again,
  see you again soon, talk to you later, talk to you soon, talk soon, ttyl, catch you later, until next time,
  take care, stay safe, all the best, best wishes, with best wishes, best regards, kind regards, warm regards,
  with kind regards, with best regards, regards, sincerely, yours sincerely, sincerely yours, yours truly, warmly,
  good luck, best of luck, good day, have a nice day, have a good day, have a great day, have a lovely day,
  have a wonderful day, have a nice evening, have a good evening, have a great evening, have a good night,
  have a nice weekend, have a good weekend, have a great weekend, have a good one, enjoy your day,
  it was a pleasure working with you, nice working with you, pleasure working with you
lone: best
title: team, all, everyone, everybody, folks, guys, you guys, both, boss, sir, madam, ma'am, friend, friends,
  my friend, mate, buddy, pal, colleague, colleagues, dear, dear all, ladies and gentlemen, manager, developer,
  programmer, tester, reviewer, secretary
before: many, very, so, a big, big, huge, a huge, much, really, truly, once again, again, also, sincere, my sincere,
  heartfelt, with many, a thousand
after: very much, so much, so very much, a lot, lots, a bunch, a ton, tons, a million, heaps, loads, again, once again,
  once more, indeed, kindly, sincerely, really, truly, a thousand, from the bottom of my heart
particle: you, u, y'all, all of you, to you, too, as well, then, at all, with thanks
join: and, &, n
for: for
owner: your, ur, the, this, that, these, those, all, all of
adjective: quick, prompt, fast, speedy, swift, timely, kind, great, good, excellent, valuable, helpful, hard,
  continued, detailed, clear, warm, nice, wonderful, generous, such, a, an, very, amazing
object: reply, replies, response, responses, answer, answers, feedback, message, messages, confirmation, help,
  assistance, support, time, patience, understanding, update, updates, info, information, clarification, explanation,
  cooperation, collaboration, effort, efforts, work, contribution, contributions, attention, heads up, headsup, note,
  notes, reminder, notice, notification, email, mail, input, insight, insights, advice, suggestion, suggestions,
  comment, comments, review, report, consideration, kindness, service, everything, guidance, teamwork, dedication,
  trust, acknowledgement, acknowledgment, words, turnaround
favour: for confirming, for letting me know, for letting us know, for getting back to me, for getting back to us,
  for getting back, for reaching out, for sharing, for replying, for responding, for clarifying, for explaining,
  for helping, for helping out, for helping me, for helping us, for waiting, for helping me out, for checking,
  for checking in, for updating me, for keeping me posted, for keeping me updated, for being patient, for all,
  for everything you do, for acknowledging, for asking
work: all ok, all okay, both ok, team ok, everyone ok, everybody ok
[Chinese]
thanks: 谢谢, 谢, 感谢, 多谢, 感恩, 感激, 不胜感激, 致谢, 拜谢, 谢过, 3q
receipt: 收到, 已收到, 我收到, 我已收到, 确认收到, 收悉, 已收悉, 敬悉, 已悉, 知悉, 已知悉
hearing: 明白, 了解, 我明白, 我了解, 已了解, 已明白, 我已了解, 我已明白, 完全明白, 完全了解, 理解
plain: 辛苦, 您辛苦, 你辛苦, 你们辛苦, 大家辛苦, 各位辛苦, 大家都辛苦, 老板辛苦, 老师辛苦, 大家再见, 各位再见, 有劳,
  费心了, 让您费心了, 麻烦您了, 麻烦你了, 受累了, 承蒙关照, 不客气, 别客气, 不用客气, 不必客气, 无需客气, 您客气,
  你客气, 您太客气, 你太客气, 太客气, 客气, 不用谢, 不谢, 不必谢, 别谢, 不用感谢, 应该的, 这是应该的, 应该做的,
  这是我应该做的, 我应该做的, 举手之劳, 分内之事, 份内之事, 小意思, 没事, 没事儿, 没事的, 没关系, 很高兴能帮到您,
  很高兴能帮到你, 很高兴能帮助您, 很高兴能帮助你, 很高兴为您服务, 很荣幸, 我的荣幸, 这是我的荣幸, 好的, 好嘞, 好哒,
  好滴, 好咧, 好勒, 好吧, 好呀, 好啊, 好哦, 没问题, 没问题的, 知道了, 我知道了, 晓得了, 懂了, 我懂了, 遵命,
  明白您的意思, 明白你的意思, 了解您的意思, 了解你的意思, 我明白您的意思, 我明白你的意思, 再见, 拜, 再会, 回见, 回头见,
  下次见, 明天见, 改天见, 后会有期, 晚安, 保重, 多保重, 慢走, 请慢走, 走好, 祝好, 一切顺利, 祝一切顺利, 祝您一切顺利,
  祝你一切顺利, 祝顺利, 祝工作顺利, 祝您工作顺利, 祝你工作顺利, 祝工作愉快, 祝您工作愉快, 祝你工作愉快, 工作顺利,
  祝您生活愉快, 祝你生活愉快, 生活愉快, 祝您有美好的一天, 祝你有美好的一天, 祝好运, 祝您好运, 祝你好运, 周末愉快,
  祝周末愉快, 祝您周末愉快, 祝你周末愉快, 合作愉快, 万事如意, 祝您万事如意, 此致, 敬礼, 顺祝商祺, 顺颂商祺,
  期待下次合作, 期待再次合作, 拜拜
lone: 好
title: 老板, 老师, 各位, 大家, 诸位, 各位老师, 各位同事, 同事们, 朋友, 朋友们, 伙伴们, 小伙伴们, 团队, 亲, 亲爱的,
  领导, 经理, 主管, 先生, 女士, 同学, 同学们, 大佬, 秘书, 程序员, 测试员, 产品经理, 你们, 您们
before: 非常, 十分, 特别, 很, 太, 真的, 真是, 真心, 万分, 衷心, 衷心的, 衷心地, 真诚, 诚挚的, 由衷, 再次, 再一次, 也,
  实在, 深表, 表示, 谨, 谨此, 在此, 向您, 向你, 向大家, 对您, 对你, 多多, 对您的回复, 对您的帮助, 对您的支持,
  对您的反馈, 对您的确认
after: 非常, 再次, 不尽, 之至, 万分
particle: 了, 啊, 呀, 哦, 呢, 哈, 吧, 嘞, 啦, 哟, 噢, 喔, 哇, 哒, 嗷, 您, 你
join: 和, 与, 及, 以及, 并, 并且, 那
owner: 您的, 你的, 您们的, 你们的, 大家的, 各位的, 对我们的, 对我的, 对我们工作的, 对我工作的, 一直以来的
adjective: 及时, 及时的, 快速, 快速的, 迅速, 迅速的, 耐心, 耐心的, 积极, 积极的, 宝贵, 宝贵的, 详细, 详细的, 热情,
  热情的, 大力, 辛勤, 辛勤的, 全力, 快速地, 及时地, 耐心地
object: 回复, 答复, 回应, 回答, 反馈, 消息, 信息, 确认, 帮助, 帮忙, 支持, 配合, 理解, 耐心, 合作, 协作, 协助, 努力,
  付出, 工作, 提醒, 告知, 通知, 说明, 解释, 澄清, 更新, 建议, 意见, 关注, 关心, 指导, 指教, 分享, 认可, 肯定, 信任,
  邮件, 来信, 提示, 解答, 贡献, 时间, 参与
work: 没问题了, 没问题啦, ok了, ok啦, okay了, 没事了, 没事啦, 收到回复, 辛苦确认, 辛苦您确认, 辛苦你确认, 有劳确认
[Traditional Chinese]
thanks: 謝謝, 謝, 感謝, 多謝, 感激不盡, 不勝感激, 致謝, 拜謝, 謝過, 唔該, 謝意
receipt: 確認收到
hearing: 瞭解, 我瞭解, 完全瞭解
plain: 你們辛苦, 老闆辛苦, 老師辛苦, 大家再見, 各位再見, 有勞, 費心了, 讓您費心了, 麻煩您了, 麻煩你了, 承蒙關照,
  不客氣, 別客氣, 不用客氣, 不必客氣, 您客氣, 你客氣, 太客氣, 客氣, 不用謝, 不謝, 不必謝, 應該的, 這是應該的,
  這是我應該做的, 舉手之勞, 分內之事, 沒事, 沒事的, 沒關係, 很高興能幫到您, 很高興能幫到你, 很高興為您服務, 我的榮幸,
  沒問題, 沒問題的, 曉得了, 再見, 再會, 回頭見, 下次見, 明天見, 改天見, 後會有期, 掰, 祝一切順利, 祝您一切順利,
  祝你一切順利, 祝工作順利, 祝您工作順利, 祝您好運, 祝你好運, 週末愉快, 祝週末愉快, 萬事如意, 敬禮, 順頌商祺, 掰掰
title: 老闆, 老師, 諸位, 各位老師, 夥伴們, 團隊, 親愛的, 領導, 經理, 同學, 同學們, 你們, 您們, 秘書, 程式設計師, 測試員
before: 特別, 真誠, 誠摯的, 萬分, 實在, 謹此, 謹, 對您, 對您的回覆, 對您的幫助
particle: 囉, 喲, 嘍, 晒
join: 與, 並, 並且
owner: 您們的, 你們的, 對我們的, 對我的, 一直以來的
adjective: 及時, 及時的, 積極的, 寶貴的, 詳細的, 熱情的
object: 回覆, 答覆, 回應, 回饋, 反饋, 訊息, 資訊, 確認, 幫助, 幫忙, 協助, 說明, 解釋, 建議, 意見, 關注, 關心, 指導,
  認可, 郵件, 來信, 貢獻, 時間, 參與, 諒解
work: 沒問題了, 沒問題啦, 沒問題囉, ok囉, 沒事了, 沒事啦, 收到回覆, 辛苦確認, 辛苦您確認, 有勞確認
[Japanese]
thanks: ありがとう, 有難う, 有り難う, どうも, サンキュー, 感謝します, 感謝しています, 感謝いたします, 感謝致します,
  感謝申し上げます, 御礼申し上げます, お礼申し上げます
plain: 皆さんお疲れ様でした, 皆様お疲れ様でした, お疲れ様, お疲れ様でした, お疲れさま, お疲れさまでした, お疲れ,
  おつかれ, おつかれさま, おつかれさまでした, ご苦労様, ご苦労様でした, ご苦労さまでした, 恐れ入ります, 恐縮です,
  お世話になりました, お世話になっております, 助かります, 助かりました, どういたしまして, いえいえ, とんでもない,
  とんでもございません, とんでもありません, お気になさらず, お役に立てて嬉しいです, お役に立ててうれしいです,
  お役に立てて何よりです, 了解です, 了解しました, 了解いたしました, 了解致しました, 承知しました, 承知いたしました,
  承知致しました, 承知です, かしこまりました, わかりました, 分かりました, わかった, 分かった, オッケー, オーケー, 拝承,
  拝受しました, 拝受いたしました, 受け取りました, 承りました, なるほど, さようなら, さよなら, またね, また明日,
  また後ほど, また今度, ではまた, それではまた, じゃあね, じゃあまた, バイバイ, 失礼します, 失礼いたします,
  失礼致します, お先に失礼します, おやすみ, おやすみなさい, 良い一日を, よい一日を, 良い週末を, よい週末を, お元気で,
  ごきげんよう, 良い一日をお過ごしください, 今後ともよろしくお願いします, 今後ともよろしくお願いいたします,
  今後ともどうぞよろしくお願いいたします
title: では, それでは, じゃあ, 皆さん, みなさん, 皆様, みなさま, 社長, 部長, 課長
before: 本当に, ほんとうに, ほんとに, 誠に, まことに, 心より, 心から, 大変, たいへん, いつも, 重ねて, 重ね重ね, 改めて,
  深く, 厚く, こちらこそ, ご返信, ご返答, お返事, ご連絡, ご確認, 確認, ご回答, 回答, ご対応, ご協力, ご支援, お知らせ,
  ご案内, フィードバック, メッセージ, ご説明, ご理解, ご指摘, ご報告, 返信, 連絡, 早速の, 迅速な, 丁寧な, ご丁寧な,
  素早い, いただき, いただきまして, 頂き, 頂きまして, してくれて, くださり, くださって, 教えてくれて, 教えていただき,
  手伝ってくれて, に, を
particle: ね, よ, な, わ, よー, ねー, ございます, ございました, です
join: では, それでは, じゃあ
[Korean]
thanks: 감사합니다, 감사해요, 감사드립니다, 감사드려요, 감사, 고마워, 고마워요, 고맙습니다, 땡큐,
  감사의 말씀을 드립니다
plain: 수고하셨습니다, 수고하셨어요, 수고했어요, 수고했어, 수고 많으셨습니다, 수고 많으셨어요, 고생하셨습니다,
  고생 많으셨습니다, 고생하셨어요, 천만에요, 천만의 말씀입니다, 별말씀을요, 별말씀을 다 하십니다, 도움이 되어 기쁩니다,
  도움이 되셨다니 다행입니다, 도움이 되어 다행입니다, 알겠습니다, 알겠어요, 알았습니다, 알았어요, 알았어,
  잘 알겠습니다, 네 알겠습니다, 예 알겠습니다, 네 알겠어요, 오케이, 이해했습니다, 이해했어요, 잘 이해했습니다,
  잘 받았습니다, 받았습니다, 안녕히 가세요, 안녕히 계세요, 안녕, 잘 가요, 잘 가, 잘 있어요, 다음에 봐요,
  다음에 뵙겠습니다, 또 봐요, 또 만나요, 내일 봬요, 내일 뵙겠습니다, 나중에 봐요, 바이, 안녕히 주무세요, 수고하세요,
  좋은 하루 되세요, 좋은 하루 보내세요, 즐거운 하루 되세요, 행복한 하루 되세요, 좋은 주말 되세요, 좋은 주말 보내세요,
  좋은 저녁 되세요
title: 여러분, 모두, 선생님, 사장님, 팀장님, 팀원 여러분, 대표님, 님
before: 정말, 정말로, 진심으로, 너무, 대단히, 매우, 항상, 늘, 언제나, 다시 한번, 깊이, 답변, 답장, 회신, 확인, 피드백,
  연락, 메시지, 도움, 협조, 빠른, 신속한, 친절한, 소중한, 답변해 주셔서, 답해 주셔서, 답변 주셔서, 회신해 주셔서,
  확인해 주셔서, 도와주셔서, 도와줘서, 알려주셔서, 연락 주셔서, 피드백 주셔서, 협조해 주셔서, 설명해 주셔서,
  이해해 주셔서, 기다려 주셔서, 에, 에 대해
[Spanish]
thanks: gracias, agradecido, agradecida, muy agradecido, muy agradecida, te lo agradezco, se lo agradezco,
  lo agradezco, se agradece, le agradezco, te agradezco
plain: de nada, por nada, no hay de qué, no hay problema, no te preocupes, no se preocupe, un placer, es un placer,
  fue un placer, ha sido un placer, el placer es mío, encantado de ayudar, encantada de ayudar, a la orden, a ti,
  a usted, a vosotros, igualmente, vale, de acuerdo, entendido, recibido, anotado, comprendido, enterado, tomo nota,
  tomado nota, adiós, hasta luego, hasta pronto, hasta mañana, hasta la vista, hasta la próxima, hasta otra, nos vemos,
  nos vemos pronto, chao, chau, que tengas un buen día, que tenga un buen día, que tengas buen día, que tenga buen día,
  que tengas un lindo día, que tengas un excelente día, que tenga un excelente día, feliz día, buenas noches,
  buen fin de semana, saludos, saludos cordiales, un saludo, un cordial saludo, un abrazo, cuídate, cuídese,
  atentamente, mucha suerte
title: a todos, a todas, equipo, todos, amigo, amiga, amigos, jefe, jefa, señor, señora, compañeros
before: muchas, muchísimas, mil, un millón de, infinitas, tantas, nuevamente, otra vez
after: de nuevo, otra vez, nuevamente, de verdad, de corazón, de todo corazón, mil, por todo, mucho
particle: a ti, a usted, a ustedes, a vosotros, también
join: y
for: por
owner: tu, tus, su, sus, vuestra, vuestro, la, el, los, las, toda la, todo el
adjective: rápida, pronta, amable, valiosa, gran
object: respuesta, mensaje, ayuda, confirmación, comentarios, comentario, retroalimentación, tiempo, paciencia, apoyo,
  información, actualización, aclaración, colaboración, atención, confianza, comprensión, aviso
favour: por confirmar, por responder, por avisar, por contestar, por compartir, por ayudar, por ayudarme
[French]
thanks: merci, remerciements, je vous remercie, je te remercie, nous vous remercions, mes remerciements
plain: de rien, je vous en prie, je t'en prie, pas de quoi, il n'y a pas de quoi, y a pas de quoi, pas de problème,
  pas de souci, pas de soucis, ce fut un plaisir, c'est un plaisir, tout le plaisir est pour moi,
  ravi d'avoir pu aider, ravie d'avoir pu aider, à votre service, d'accord, entendu, compris, bien compris,
  j'ai compris, bien reçu, reçu, c'est noté, bien noté, c'est bien noté, pris note, je comprends, c'est compris,
  au revoir, à bientôt, à plus, à plus tard, à demain, à la prochaine, à tout à l'heure, adieu, salut, bonne journée,
  bonne soirée, bonne nuit, bon week-end, bonne continuation, bonne fin de journée, bonne chance, excellente journée,
  très bonne journée, passez une bonne journée, passe une bonne journée, cordialement, bien cordialement, bien à vous,
  bien à toi, sincères salutations, meilleures salutations, amicalement, prenez soin de vous, prends soin de toi
title: à tous, à toutes, à toutes et à tous, à tous et à toutes, l'équipe, tout le monde, chef, patron, monsieur,
  madame, mon ami, chers collègues
before: un grand, grand, mille, encore, encore une fois, un immense, tous mes, mes sincères, vraiment, mille fois
after: beaucoup, bien, infiniment, encore, encore une fois, mille fois, énormément, vraiment, sincèrement,
  du fond du cœur
particle: à vous, à toi, aussi
join: et
for: pour, de
owner: votre, vos, ta, ton, tes, le, les, cette, ce, ces, toute votre
adjective: rapide, prompte, précieuse, grande
object: réponse, aide, retour, retours, commentaires, temps, soutien, informations, mise à jour, compréhension,
  confiance, tout, réponse rapide, retour rapide
favour: d'avoir répondu, d'avoir confirmé, de m'avoir prévenu, pour l'aide, pour l'info, pour l'information,
  pour l'explication, de l'aide, de l'info
[German]
thanks: danke, dankeschön, danke schön, dank, ich danke, wir danken, ich bedanke mich
plain: bitte sehr, bitte schön, bitteschön, gern geschehen, gerne geschehen, sehr gern geschehen, nichts zu danken,
  keine ursache, kein problem, kein thema, nicht der rede wert, war mir ein vergnügen, es war mir ein vergnügen,
  dafür nicht, gleichfalls, ebenso, verstanden, ich verstehe, habe verstanden, ich habe verstanden, alles klar,
  notiert, ist notiert, zur kenntnis genommen, erhalten, habe ich erhalten, tschüss, tschau, ciao, auf wiedersehen,
  wiedersehen, auf wiederhören, bis bald, bis später, bis dann, bis morgen, bis zum nächsten mal, mach's gut,
  machen sie es gut, gute nacht, schönen tag, schönen tag noch, einen schönen tag, einen schönen tag noch,
  schönen abend, schönen abend noch, schönes wochenende, schönen feierabend, viele grüße, liebe grüße, beste grüße,
  mit freundlichen grüßen, freundliche grüße, herzliche grüße, mfg, alles gute, viel erfolg, viel glück
lone: bitte
title: an alle, alle, allen, euch, euch allen, ihnen, ihnen allen, dir, leute, chefin, freunde
before: vielen, herzlichen, besten, lieben, tausend, nochmals, noch einmal, schönen, großen, wirklich
after: vielmals, nochmals, noch einmal, nochmal, sehr, herzlich, von herzen, auch
join: und
for: für
owner: deine, dein, ihre, ihr, eure, euer, die, das, den, der, diese
adjective: schnelle, rasche, freundliche, wertvolle, ganze, gute
object: antwort, rückmeldung, nachricht, bestätigung, hilfe, unterstützung, zeit, geduld, informationen,
  aktualisierung, erklärung, zusammenarbeit, mühe, verständnis, aufmerksamkeit, alles, hinweis, mitteilung, auskunft
favour: fürs bescheid geben, fürs bescheid sagen, fürs helfen, fürs feedback, fürs warten
[Portuguese]
thanks: obrigado, obrigada, agradeço, eu agradeço, valeu, grato, grata, obg, agradecemos
plain: não há de quê, não tem de quê, imagina, disponha, às ordens, sem problema, sem problemas, não há problema,
  foi um prazer, é um prazer, o prazer é meu, fico feliz em ajudar, fico feliz por ajudar, não se preocupe,
  eu que agradeço, entendi, compreendido, compreendi, recebido, ciente, está bem, tomei nota, adeus, tchau, até logo,
  até mais, até breve, até amanhã, até à próxima, até já, tenha um bom dia, tenha um ótimo dia, tenha uma boa noite,
  boa noite, bom fim de semana, abraço, abraços, um abraço, saudações, atenciosamente, cordialmente, cumprimentos,
  com os melhores cumprimentos, boa sorte, se cuida, cuide-se
title: pessoal, equipe, equipa, gente, chefe, senhor, senhora
before: muito, mais uma vez, novamente, de novo
after: mesmo, mais uma vez, novamente, de novo, de coração, de verdade, por tudo, demais, imensamente, muito
particle: a você, a vocês, também, a si
join: e
for: pela, pelo, pelas, pelos
owner: sua, seu, tua, teu, a, o
object: resposta, mensagem, ajuda, confirmação, retorno, tempo, apoio, informação, informações, atualização,
  esclarecimento, colaboração, atenção, compreensão, confiança
favour: por ajudar, por compartilhar
[Italian]
thanks: grazie, ti ringrazio, la ringrazio, vi ringrazio, ringrazio, ringraziamenti, molto gentile
plain: di niente, di nulla, figurati, si figuri, non c'è di che, non c'è problema, nessun problema, è stato un piacere,
  piacere mio, il piacere è mio, non ti preoccupare, altrettanto, va bene, d'accordo, capito, ho capito, ricevuto,
  inteso, compreso, preso nota, annotato, arrivederci, arrivederla, addio, a presto, a dopo, a domani, alla prossima,
  ci vediamo, buona giornata, buona serata, buonanotte, buona notte, buon fine settimana, buon weekend,
  cordiali saluti, distinti saluti, saluti, un saluto, un abbraccio, buona fortuna, buona continuazione, stammi bene
lone: prego
title: a tutti, a tutte, ragazzi, squadra, capo, signore, signora, amico, amica
before: molte, tante, infinite, sentite, ancora, di nuovo, sinceri
after: mille, tante, infinite, ancora, di nuovo, di cuore, davvero, di tutto, molto, tantissimo, moltissimo
particle: a te, a lei, a voi, anche
for: per, della, del, dell'aiuto
owner: il, tuo, suo, vostra, vostro, i
adjective: preziosa, prezioso
object: risposta, messaggio, aiuto, conferma, riscontro, pazienza, supporto, informazione, informazioni, aggiornamento,
  chiarimento, collaborazione, attenzione, comprensione, tutto
favour: per l'aiuto, per aver risposto, per aver confermato, per l'aggiornamento, per l'attenzione
[Russian]
thanks: спасибо, спс, благодарю, благодарим, благодарен, благодарна, признателен, признательна
plain: не за что, не стоит благодарности, всегда пожалуйста, рад помочь, рада помочь, рад был помочь, рада была помочь,
  рады помочь, без проблем, нет проблем, обращайтесь, на здоровье, не беспокойтесь, взаимно, понял, поняла, поняли,
  понятно, вас понял, вас поняла, всё понятно, ясно, окей, ок, принято к сведению, принял к сведению, ладно,
  до свидания, до встречи, до скорого, до завтра, до связи, пока, увидимся, прощайте, всего доброго, всего хорошего,
  всего наилучшего, хорошего дня, хорошего вечера, удачного дня, приятного дня, доброй ночи, спокойной ночи,
  хороших выходных, с уважением, с наилучшими пожеланиями, удачи, счастливо, берегите себя
lone: пожалуйста, хорошо
title: всем, коллеги, команда, друзья, друг, шеф, босс, уважаемые коллеги, ребята
before: большое, огромное, очень, сердечно, искренне, ещё раз, вам, тебе, и вам, и тебе, от души, всем
after: большое, огромное, ещё раз, от души, сердечно, искренне
particle: вам, тебе, и вам, и тебе, вас, тебя, тоже
join: и
for: за
owner: ваш, вашу, ваше, ваши, твой, твою, твоё, эту, этот
adjective: быстрый, быструю, оперативный, оперативную, скорый, подробный, ценный
object: ответ, сообщение, помощь, подтверждение, отзыв, обратную связь, время, терпение, поддержку, информацию,
  обновление, разъяснение, пояснение, сотрудничество, внимание, понимание, доверие, всё, труд
[Arabic]
thanks: شكرا, شكر, الشكر, أشكرك, أشكركم, نشكرك, نشكركم, مشكور, مشكورين, متشكر, تسلم, ممتن, بارك الله فيك,
  جزاك الله خيرا
plain: عفوا, العفو, لا شكر على واجب, على الرحب والسعة, أهلا وسهلا, لا مشكلة, لا داعي للشكر, تكرم, حسنا, مفهوم, فهمت,
  لقد فهمت, تم الاستلام, أوكي, أوكيه, وصلت الرسالة, وداعا, مع السلامة, إلى اللقاء, أراك لاحقا, أراك قريبا, نراكم قريبا,
  باي, تصبح على خير, يوما سعيدا, يوم سعيد, أتمنى لك يوما سعيدا, نهارك سعيد, في أمان الله, مع أطيب التحيات, مع التحية,
  تحياتي, أطيب التحيات, بالتوفيق
title: للجميع, جميعا, فريق, سيدي, سيدتي, أستاذ, يا صديقي, يا أستاذ, صديقي, يا فريق
before: ألف, خالص, جزيل, كل, وافر, مرة أخرى
after: جزيلا, كثيرا, الجزيل, مرة أخرى, مجددا, من القلب, من كل قلبي, جدا
particle: لك, لكم, لكي, لكما, أيضا, أنت أيضا
join: و
for: على, ل
owner: هذا, هذه, كل
object: ردك, ردكم, الرد, رسالتك, رسالتكم, مساعدتك, مساعدتكم, المساعدة, تأكيدك, تأكيدكم, التأكيد, ملاحظاتك, ملاحظاتكم,
  وقتك, وقتكم, صبرك, صبركم, دعمك, دعمكم, تعاونك, تعاونكم, المعلومات, المعلومة, التوضيح, التحديث, اهتمامك, تفهمك
favour: على الرد السريع, على ردك السريع, على كل شيء, لمساعدتك, لردك, لتعاونكم, لتعاونك, لاهتمامك, لتفهمك, لدعمك
[Hindi]
thanks: धन्यवाद, शुक्रिया, आभार, आभारी हूँ, आभारी हूं, थैंक्स, थैंक यू, थैंक्यू, dhanyavad, dhanyavaad, shukriya
plain: स्वागत है, आपका स्वागत है, कोई बात नहीं, कोई समस्या नहीं, मेरा सौभाग्य, यह मेरा सौभाग्य है, खुशी हुई मदद करके, ठीक है, समझ गया,
  समझ गई, समझ गयी, समझ गए, मैं समझ गया, मैं समझ गई, ओके, नोट किया, नोट कर लिया, प्राप्त हुआ, संदेश मिला, theek hai, thik hai,
  samajh gaya, अलविदा, फिर मिलेंगे, फिर मिलते हैं, नमस्ते, नमस्कार, शुभ रात्रि, शुभ दिन, आपका दिन शुभ हो, बाय, सादर, शुभकामनाएँ,
  शुभकामनाएं, अपना ख्याल रखना, अपना ख्याल रखें, alvida, phir milenge
title: सर, मैडम, दोस्त, दोस्तों, मित्र, मित्रों, सभी को, सबको, टीम, जी, भाई
before: बहुत, बहुत बहुत, आपका, आपको, हार्दिक, तहे दिल से, एक बार फिर, फिर से, दिल से, bahut, आपके उत्तर के लिए, आपके जवाब के लिए,
  जवाब के लिए, उत्तर के लिए, आपकी मदद के लिए, मदद के लिए, सहायता के लिए, आपकी सहायता के लिए, आपके संदेश के लिए, संदेश के लिए,
  पुष्टि के लिए, पुष्टि करने के लिए, जानकारी के लिए, आपकी प्रतिक्रिया के लिए, प्रतिक्रिया के लिए, आपके सहयोग के लिए, सहयोग के लिए,
  आपके समय के लिए, बताने के लिए
after: आपका, आपको, बहुत बहुत, फिर से, एक बार फिर
join: और
[Turkish]
thanks: teşekkürler, teşekkür ederim, teşekkür ederiz, teşekkür, teşekkür ediyorum, sağ ol, sağ olun, sağol, sağolun,
  eyvallah, minnettarım
plain: rica ederim, rica ederiz, bir şey değil, birşey değil, önemli değil, sorun değil, estağfurullah,
  ellerinize sağlık, elinize sağlık, kolay gelsin, tamam, tamamdır, anladım, anlaşıldı, peki, not ettim, not aldım,
  not edildi, mesaj alındı, hoşça kal, hoşça kalın, hoşçakal, hoşçakalın, güle güle, görüşürüz, görüşmek üzere,
  sonra görüşürüz, yarın görüşürüz, iyi günler, iyi akşamlar, iyi geceler, iyi haftalar, iyi hafta sonları,
  iyi çalışmalar, kendine iyi bak, kendinize iyi bakın, saygılar, saygılarımla, sevgiler, bol şans
title: herkese, arkadaşlar, hocam, ekip, efendim, dostum, size, sana, hepinize
before: çok, tekrar, tekrardan, bir kez daha, gerçekten, içtenlikle, ayrıca, size, sana, cevabınız için,
  yanıtınız için, yanıtın için, cevabın için, yardımınız için, yardımın için, mesajınız için, geri bildiriminiz için,
  onayınız için, desteğiniz için, ilginiz için, zamanınız için, bilgi için, her şey için, sabrınız için, hızlı,
  bilgilendirme için
after: tekrar, tekrardan, çok, bir kez daha
join: ve
[Vietnamese]
thanks: cảm ơn, chân thành cảm ơn, trân trọng cảm ơn, đa tạ, tôi cảm ơn, biết ơn
plain: không có gì, không có chi, không có gì đâu, đừng khách sáo, đừng khách khí, rất hân hạnh, rất vui được giúp,
  rất vui vì đã giúp được bạn, hân hạnh, không sao, không sao đâu, đã hiểu, tôi hiểu rồi, hiểu rồi, tôi đã hiểu,
  em hiểu rồi, đã rõ, rõ rồi, đã nhận, đã nhận được, đã ghi nhận, tạm biệt, xin chào tạm biệt, hẹn gặp lại,
  hẹn gặp lại sau, chúc ngủ ngon, chúc một ngày tốt lành, chúc bạn một ngày tốt lành, chúc anh một ngày tốt lành,
  chúc cuối tuần vui vẻ, chúc bạn một ngày vui vẻ, trân trọng, thân ái, chúc may mắn, bảo trọng
title: bạn, anh, chị, em, mọi người, các bạn, quý khách, sếp, thầy, cô, cả nhà, cả nhóm
before: rất, xin, thật sự, một lần nữa, vô cùng
after: nhiều, rất nhiều, lắm, một lần nữa, thật nhiều, vô cùng
particle: ạ, nhé, nha
join: và
for: vì, về
owner: câu, các, những
object: đã trả lời, đã phản hồi, đã xác nhận, đã giúp đỡ, đã hỗ trợ, phản hồi, trả lời, hỗ trợ, giúp đỡ, tin nhắn,
  thông tin, xác nhận
work: đã nhận trả lời, đã nhận xác nhận
[Polish]
thanks: dziękuję, dziękujemy, dzięki, podziękowania, jestem wdzięczny, jestem wdzięczna
plain: nie ma za co, nie ma sprawy, nie ma problemu, proszę bardzo, cała przyjemność po mojej stronie,
  cieszę się że mogłem pomóc, cieszę się że mogłam pomóc, nawzajem, wzajemnie, rozumiem, zrozumiano, zrozumiałem,
  zrozumiałam, przyjąłem do wiadomości, przyjęto do wiadomości, okej, otrzymałem, otrzymałam, zanotowano, zanotowałem,
  zanotowałam, odnotowano, do widzenia, do zobaczenia, do usłyszenia, na razie, pa pa, cześć, żegnaj, dobranoc,
  miłego dnia, miłego wieczoru, miłego weekendu, dobrego dnia, udanego dnia, udanego weekendu, pozdrawiam,
  pozdrowienia, serdecznie pozdrawiam, z poważaniem, wszystkiego dobrego, powodzenia, trzymaj się, trzymajcie się
lone: dobrze
title: wszystkim, wam, panu, pani, państwu, zespole, szefie, koledzy, przyjaciele, ci, tobie
before: bardzo, wielkie, stokrotne, serdecznie, serdeczne, najmocniej, pięknie, jeszcze raz, ogromne, również
after: bardzo, wielkie, serdecznie, stokrotnie, pięknie, jeszcze raz, ogromnie, ślicznie
join: i, oraz
for: za
owner: twoją, twój, pana, wasza, tę, ten
adjective: szybką, szybkie, cenną
object: odpowiedź, wiadomość, pomoc, potwierdzenie, opinię, czas, cierpliwość, wsparcie, informację, współpracę, uwagę,
  wyjaśnienie, zrozumienie, wszystko
[Dutch]
thanks: dank je, dank je wel, dank u wel, dankjewel, dankuwel, bedankt, dankje, ik dank u, ik dank je
plain: graag gedaan, geen dank, geen probleem, geen moeite, tot je dienst, tot uw dienst, niets te danken,
  het was me een genoegen, insgelijks, begrepen, ik begrijp het, ik snap het, snap ik, oké, ontvangen, genoteerd,
  goed ontvangen, duidelijk, tot ziens, tot straks, tot later, tot morgen, tot snel, tot de volgende keer, doei, doeg,
  vaarwel, welterusten, fijne dag, fijne dag nog, een fijne dag, prettige dag, nog een fijne dag, fijn weekend,
  fijne avond, prettig weekend, met vriendelijke groet, met vriendelijke groeten, vriendelijke groeten, groeten,
  groetjes, hartelijke groeten, het beste, veel succes
title: allemaal, iedereen, jongens, mensen, baas, meneer, mevrouw, vrienden, collega's, jullie
before: hartelijk, heel, heel erg, veel, nogmaals, echt, ontzettend, enorm
after: hartelijk, heel erg, zeer, nogmaals, voor alles, allen
join: en
for: voor
owner: je, jouw, uw, jullie, de, het
adjective: snelle, vlotte, goede, waardevolle
object: antwoord, reactie, bericht, bevestiging, hulp, tijd, steun, informatie, uitleg, samenwerking, aandacht, begrip,
  moeite
[Indonesian]
thanks: terima kasih, terimakasih, makasih, trims
plain: sama-sama, kembali kasih, terima kasih kembali, tidak masalah, tak masalah, tidak apa-apa, senang bisa membantu,
  senang dapat membantu, jangan sungkan, bukan masalah, baiklah, mengerti, saya mengerti, dimengerti, paham,
  saya paham, dipahami, sudah saya terima, pesan diterima, saya catat, selamat tinggal, sampai jumpa,
  sampai jumpa lagi, sampai nanti, sampai bertemu lagi, sampai besok, selamat jalan, selamat malam, selamat tidur,
  semoga harimu menyenangkan, semoga hari anda menyenangkan, salam, salam hormat, hormat saya, salam hangat,
  semoga sukses, jaga diri
lone: baik
title: semuanya, semua, teman, teman-teman, tim, bos, pak, bu, bapak, ibu, kawan
before: banyak, sekali lagi
after: banyak, sekali, sekali lagi, yang sebesar-besarnya, ya, lagi
join: dan
for: atas, untuk
adjective: cepat, segala, semua
object: balasannya, balasan, jawabannya, jawaban, jawaban anda, balasan anda, bantuannya, bantuan, bantuan anda,
  pesannya, pesan anda, konfirmasinya, konfirmasi, konfirmasi anda, masukannya, masukan anda, waktunya, waktu anda,
  informasinya, informasi, dukungannya, dukungan anda, kerja samanya, kerjasamanya, perhatiannya, pengertiannya
[emoji]
plain: 👍, 👌, 🙏, 👏, 👋, 🤝, 🫱‍🫲, 🙌, 🫡, 🙇, 🫶, 🫰, ✌, 🤙, 🤗, 🆗, 🤟, 🙂, 😊, ☺, 😀, 😃, 😄, 😁, 😆, 😉, 😌, 😇,
  🥰, 😍, 😘, 🥹, 😎, 😸, 😺, 🙂‍↕, ❤, 🧡, 💛, 💚, 💙, 🩵, 💜, 🤎, 🖤, 🩶, 🤍, 🩷, ♥, ♡, 💕, 💖, 💗, 💓, 💞, 💝, 💐, 🌹,
  🌷, 🌸, :), :-), :D, :-D, ;), ;-), =), :], ^_^, ^^, <3
"""

TELLING_EMOJI = "❌|❎|✖|✗|✘|☒|☐|⛔|🚫|🛑|⚠|🚨|👎|🐛|🔴|🟠|🟡|🟢|❓|❔|🤔|🙅|🙋|🙂‍↔|0|1|2|3|4|5|6|7|8|9|🔟"
"""Emoji that refuse, warn, ask, report or count (keycaps): no courtesy, whatever stands beside them."""
