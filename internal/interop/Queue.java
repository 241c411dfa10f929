import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Uses Apache Curator's SimpleDistributedQueue as it is told to: see queuepeer.go for the commands. */
public class Queue {
    static final ObjectMapper json = new ObjectMapper();
    static final ExecutorService pool = Executors.newCachedThreadPool();
    static CuratorFramework client;

    public static void main(String[] none) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode command = json.readTree(line);
            pool.execute(() -> answer(command));
        }
        System.exit(0);
    }

    static void answer(JsonNode command) {
        Map<String, Object> answer = new TreeMap<>();
        try {
            obey(command, answer);
        } catch (Throwable e) {
            StringWriter trace = new StringWriter();
            e.printStackTrace(new PrintWriter(trace));
            answer.put("error", trace.toString());
        }
        answer.put("id", command.get("id"));
        synchronized (System.out) {
            System.out.println(json.valueToTree(answer));
            System.out.flush();
        }
    }

    static void obey(JsonNode c, Map<String, Object> answer) throws Exception {
        if (c.get("do").asText().equals("open")) {
            client = CuratorFrameworkFactory.newClient(c.get("servers").asText(), new ExponentialBackoffRetry(100, 5));
            client.start();
            return;
        }
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, c.get("node").asText());
        List<String> taken = new ArrayList<>();
        switch (c.get("do").asText()) {
            case "put":
                for (JsonNode item : c.get("nodes")) queue.offer(item.asText().getBytes(StandardCharsets.UTF_8));
                break;
            case "take":
                for (int n = c.get("rounds").asInt(); n > 0; n--) taken.add(text(queue.take()));
                break;
            case "peek": taken.add(text(queue.peek())); break;
            default: throw new IllegalArgumentException("no such command");
        }
        answer.put("participants", taken);
    }

    static String text(byte[] data) { return data == null ? null : new String(data, StandardCharsets.UTF_8); }
}
