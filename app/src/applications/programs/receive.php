<?php
// Needs PHP 8 or newer.
$secret = (string) getenv('HELIOGRAPH_WEBHOOK_SECRET');
if (!str_starts_with($secret, 'whsec_')) {
    throw new Exception('Set HELIOGRAPH_WEBHOOK_SECRET.');
}
$key = base64_decode(substr($secret, strlen('whsec_')));

/** Returns whether Heliograph signed this request within the last 5 minutes. */
function is_genuine(string $key, string $body): bool
{
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    $hmac = hash_hmac('sha256', "$id.$timestamp.$body", $key, true);
    $expected = 'v1,' . base64_encode($hmac);
    // During a change of the secret, there are several signatures, separated by spaces.
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $signature) {
        if (hash_equals($expected, $signature)) {
            return abs(time() - (int) $timestamp) <= 300;
        }
    }
    return false;
}

// The signature covers these bytes exactly, so verify them before you parse them.
$body = file_get_contents('php://input');
if (!is_genuine($key, $body)) {
    http_response_code(401);
    exit;
}
$event = json_decode($body);
// An event can arrive more than once. Keep the IDs in your database instead of in files.
$received = sys_get_temp_dir() . "/heliograph-$event->id";
if (!file_exists($received)) {
    error_log("$event->id $event->type " . json_encode($event->data));
    touch($received);
}
http_response_code(204);
