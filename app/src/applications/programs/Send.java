// Needs Java 17 or newer, and no packages.
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;

public class Send {
    public static void main(String[] arguments) throws Exception {
        var sms = Map.of(
            "number", "NUMBER",
            "message", "Hello from Heliograph",
            "requestid", "order-4711");
        var form = sms.entrySet().stream()
            .map(field -> field.getKey() + "="
                + URLEncoder.encode(field.getValue(), StandardCharsets.UTF_8))
            .collect(Collectors.joining("&"));
        var request = HttpRequest.newBuilder(URI.create("BASE_URL/sms/send"))
            .timeout(Duration.ofSeconds(10))
            .header("Authorization", "Bearer " + System.getenv("HELIOGRAPH_KEY"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            // Use one Idempotency-Key per message. A repeated call with the same one sends nothing
            // twice.
            .header("Idempotency-Key", UUID.randomUUID().toString())
            .POST(HttpRequest.BodyPublishers.ofString(form))
            .build();
        var client = HttpClient.newHttpClient();
        for (int attempt = 1; ; attempt++) {
            long pause = attempt;
            try {
                var answer = client.send(request, BodyHandlers.ofString());
                var busy = answer.statusCode() == 429 || answer.statusCode() >= 500;
                // With a 429 or 503, this header says in how many seconds to try again.
                pause = answer.headers().firstValueAsLong("Retry-After").orElse(pause);
                if (!busy || attempt == 3 || pause > 60) {
                    // {"code":200,"transid":"m_…",…}, or the code and the reason of a refusal.
                    System.out.println(answer.body());
                    return;
                }
            } catch (IOException fault) {
                if (attempt == 3) throw fault;
            }
            Thread.sleep(pause * 1000);
        }
    }
}
