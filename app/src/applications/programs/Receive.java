// Needs Java 17 or newer, and no packages.
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receive {
    // An event can arrive more than once. Keep the IDs in your database: these are lost at a
    // restart.
    private static final Set<String> received = ConcurrentHashMap.newKeySet();
    private static SecretKeySpec key;

    public static void main(String[] arguments) throws IOException {
        var secret = System.getenv().getOrDefault("HELIOGRAPH_WEBHOOK_SECRET", "");
        if (!secret.startsWith("whsec_")) {
            throw new IllegalStateException("Set HELIOGRAPH_WEBHOOK_SECRET.");
        }
        var bytes = Base64.getDecoder().decode(secret.substring("whsec_".length()));
        key = new SecretKeySpec(bytes, "HmacSHA256");
        var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8000"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", Receive::answer);
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            // The signature covers these bytes exactly, so verify them before you parse them.
            var body = exchange.getRequestBody().readAllBytes();
            var headers = exchange.getRequestHeaders();
            if (!isGenuine(headers, body)) {
                exchange.sendResponseHeaders(401, -1);
                return;
            }
            if (received.add(headers.getFirst("webhook-id"))) {
                // {"id":"e_…","type":"message.delivered",…}. Parse it with your JSON library.
                System.out.println(new String(body, StandardCharsets.UTF_8));
            }
            exchange.sendResponseHeaders(204, -1);
        }
    }

    /** Returns whether Heliograph signed this request within the last 5 minutes. */
    private static boolean isGenuine(Headers headers, byte[] body) {
        var timestamp = headers.getFirst("webhook-timestamp");
        byte[] hmac;
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(key);
            mac.update((headers.getFirst("webhook-id") + "." + timestamp + ".").getBytes());
            hmac = mac.doFinal(body);
        } catch (GeneralSecurityException fault) {
            throw new IllegalStateException(fault);
        }
        var expected = ("v1," + Base64.getEncoder().encodeToString(hmac)).getBytes();
        // During a change of the secret, there are several signatures, separated by spaces.
        var signatures = headers.getFirst("webhook-signature");
        for (var signature : signatures == null ? new String[0] : signatures.split(" ")) {
            if (MessageDigest.isEqual(signature.getBytes(), expected)) {
                var age = Instant.now().getEpochSecond() - Long.parseLong(timestamp);
                return Math.abs(age) <= 300;
            }
        }
        return false;
    }
}
