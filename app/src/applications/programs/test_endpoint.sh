curl "BASE_URL/sms/webhooks/w_YOUR_WEBHOOK_ID" \
  --header "Authorization: Bearer $HELIOGRAPH_KEY" \
  --data "test=1"
