"""服装店客服的工具。真正的商店会在这里查询自己的系统。"""

import ripstop

ORDERS = {
    "1001": "运输中，包裹周一已离开仓库",
    "1002": "周五已签收",
    "1003": "正在打包",
}
REFUNDS: dict[str, tuple[str, str]] = {}
"""按幂等键记录的申请编号和原因。"""


@ripstop.tool("pure")
def order_status(order: str) -> str:
    "查询订单，说明它现在在哪里。"
    if order not in ORDERS:
        raise ripstop.Refused(f"没有订单 {order!r}，请再向顾客确认订单号。", fault="agent")
    return ORDERS[order]


@ripstop.tool("keyed")
def request_refund(order: str, reason: str, key: str) -> str:
    "为订单申请退款，返回申请编号。"
    if "已签收" not in ORDERS.get(order, ""):
        raise ripstop.Refused(f"订单 {order!r} 还没有签收，不能退款。", fault="agent")
    number, _ = REFUNDS.setdefault(key, (f"R-{order}", reason))  # 同一个键再次调用，什么也不会多做
    return number
