# The tester of a change: runs the tests once all findings are fixed.
set -u
# ask calls a method until the server answers with a result.
ask() {
  until curl -sf --max-time 70 -H "Authorization: Bearer $(cat "$THREADS_TOKEN_FILE")" -H 'Content-Type: application/json' \
      -d "$2" "$THREADS_URL/v1/$1"; do
    sleep 0.2
  done
}
since=0 fixes=0
while [ "$fixes" -lt 3 ]; do
  page=$(ask read_messages "{\"thread_id\":\"$THREAD\",\"since_seq\":$since,\"wait_ms\":1000}")
  since=$(printf %s "$page" | jq .next_seq)
  fixes=$((fixes + $(printf %s "$page" | jq '[.messages[] | select(.metadata.event_type == "fix_pushed")] | length')))
done
sleep 0.5 # the work
ask post_message "{\"thread_id\":\"$THREAD\",\"schema_version\":1,\"kind\":\"event\",\"body\":\"12 tests passed\",\"metadata\":{\"event_type\":\"tests_passed\"},\"idempotency_key\":\"tester-1\"}" >/dev/null
