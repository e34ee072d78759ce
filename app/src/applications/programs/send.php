<?php
// Needs PHP 8 or newer with the curl extension.
$sms = ['number' => 'NUMBER', 'message' => 'Hello from Heliograph', 'requestid' => 'order-4711'];
// Use one Idempotency-Key per message. A repeated call with the same one sends nothing twice.
$headers = [
    'Authorization: Bearer ' . getenv('HELIOGRAPH_KEY'),
    'Idempotency-Key: ' . bin2hex(random_bytes(16)),
];

for ($attempt = 1; $attempt <= 3; $attempt++) {
    $pause = $attempt;
    $call = curl_init('BASE_URL/sms/send');
    curl_setopt_array($call, [
        CURLOPT_POSTFIELDS => http_build_query($sms),
        CURLOPT_HTTPHEADER => $headers,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 10,
        // With a 429 or 503, this header says in how many seconds to try again.
        CURLOPT_HEADERFUNCTION => function ($call, $line) use (&$pause) {
            if (stripos($line, 'Retry-After:') === 0) {
                $pause = (int) substr($line, strlen('Retry-After:'));
            }
            return strlen($line);
        },
    ]);
    $body = curl_exec($call);
    $status = curl_getinfo($call, CURLINFO_RESPONSE_CODE);
    $busy = $body === false || $status === 429 || $status >= 500;
    if (!$busy || $attempt === 3 || $pause > 60) {
        break;
    }
    sleep($pause);
}
if ($body === false) {
    exit("There was no answer.\n");
}
$answer = json_decode($body, true);
if ($answer['code'] === 200) {
    echo "Accepted as {$answer['transid']} for {$answer['cost']}.\n";
} else {
    echo "Refused, {$answer['reason']}: {$answer['text']}\n";
}
