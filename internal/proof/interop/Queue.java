import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;

/** Uses Apache Curator's SimpleDistributedQueue as commands say: see doc.go. */
public class Queue {
    static CuratorFramework client;

    public static void main(String[] none) throws IOException {
        Peer.serve(Queue::execute);
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        if (c.get("do").asText().equals("open")) {
            client = Peer.connect(c);
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
