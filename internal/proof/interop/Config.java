import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.shared.SharedValue;

/** Uses Apache Curator's SharedValue and NodeCache as commands say: see doc.go. */
public class Config {
    static final Map<String, NodeCache> caches = new ConcurrentHashMap<>();
    static CuratorFramework client;

    public static void main(String[] none) throws IOException {
        Peer.serve(Config::execute);
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        if (c.get("do").asText().equals("open")) {
            client = Peer.connect(c);
            return;
        }
        String path = c.get("node").asText();
        String value = "";
        switch (c.get("do").asText()) {
            case "watch":
                NodeCache cache = new NodeCache(client, path);
                cache.start(true);
                caches.put(path, cache);
                break;
            case "await":
                for (long until = System.currentTimeMillis() + c.get("wait").asLong(); ; Thread.sleep(10)) {
                    ChildData data = caches.get(path).getCurrentData();
                    value = data == null ? "" : new String(data.getData(), StandardCharsets.UTF_8);
                    if (value.equals(c.get("part").asText()) || System.currentTimeMillis() > until) break;
                }
                break;
            case "set":
            case "get":
                try (SharedValue shared = new SharedValue(client, path, "seed".getBytes(StandardCharsets.UTF_8))) {
                    shared.start();
                    if (c.get("do").asText().equals("set")) shared.setValue(c.get("part").asText().getBytes(StandardCharsets.UTF_8));
                    value = new String(shared.getValue(), StandardCharsets.UTF_8);
                }
                break;
            default: throw new IllegalArgumentException("no such command");
        }
        answer.put("participants", Collections.singletonList(value));
    }
}
