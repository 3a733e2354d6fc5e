#!/bin/sh
# The demonstration: two agents, a real model in this process, no key, no network.
set -u
store="sqlite:.ripstop/demo.db"

echo "Two agents, one real language model on this machine, no key and no network."
echo "\$ ripstop run examples/haiku --model local"
echo
ripstop --store "$store" --model local run examples/haiku
code=$?
case $code in 0 | 3) ;; *) exit $code ;; esac

run=$(ripstop --store "$store" --json runs | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["run"])')
echo
echo "What was said:"
ripstop --store "$store" --json log "$run" | python3 -c '
import json, sys
for line in sys.stdin:
    answer = json.loads(line).get("answer", {})
    if answer.get("type") == "agent_replied":
        print("  " + answer["text"].replace("\n", "\n  "))
'
echo
echo "Why it went the way it did:"
ripstop --store "$store" why "$run"
echo
echo "Look closer:"
echo "  .venv/bin/ripstop --store $store log $run       every record; --json shows the prompts whole"
echo "  .venv/bin/ripstop --store $store web --open      the same in a browser; web --demo shows all five styles at work"
echo "  .venv/bin/ripstop --store $store verify         nobody has changed a record"
echo "  .venv/bin/ripstop --store $store fork $run --at 3   a new run from the third record on; resume starts it"
