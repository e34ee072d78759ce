curl "BASE_URL/sms/webhooks" \
  --header "Authorization: Bearer $HELIOGRAPH_KEY" \
  --data-urlencode "url=ENDPOINT_URL"
