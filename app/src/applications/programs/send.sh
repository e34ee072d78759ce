curl "BASE_URL/sms/send" \
  --header "Authorization: Bearer $HELIOGRAPH_KEY" \
  --header "Idempotency-Key: order-$(date +%s)-$$" \
  --max-time 10 --retry 3 --retry-max-time 60 --retry-all-errors \
  --data-urlencode "number=NUMBER" \
  --data-urlencode "message=Hello from Heliograph" \
  --data-urlencode "requestid=order-4711"
