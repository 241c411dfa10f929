import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Uses Apache Curator's barriers as commands say: see doc.go. */
public class Barriers {
    static final Map<String, CuratorFramework> clients = new ConcurrentHashMap<>();
    static final Map<String, DistributedBarrier> gates = new ConcurrentHashMap<>();
    static final Map<String, DistributedDoubleBarrier> doubles = new ConcurrentHashMap<>();

    public static void main(String[] none) throws IOException {
        Peer.serve(Barriers::execute);
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        answer.put("granted", isGranted(c));
    }

    static boolean isGranted(JsonNode c) throws Exception {
        String name = c.path("lock").asText();
        long wait = c.path("wait").asLong();
        switch (c.get("do").asText()) {
            case "open": clients.put(c.get("client").asText(), open(c)); return true;
            case "close": clients.remove(c.get("client").asText()).close(); return true;
            case "new": make(c, name); return true;
            case "raise": gates.get(name).setBarrier(); return true;
            case "lower": gates.get(name).removeBarrier(); return true;
            case "wait": return gates.get(name).waitOnBarrier(wait, TimeUnit.MILLISECONDS);
            case "enter": return doubles.get(name).enter(wait, TimeUnit.MILLISECONDS);
            case "leave": return doubles.get(name).leave(wait, TimeUnit.MILLISECONDS);
            default: throw new IllegalArgumentException("no such command");
        }
    }

    static CuratorFramework open(JsonNode c) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            c.get("servers").asText(), c.get("timeout").asInt(), 15_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) throw new IOException("not connected");
        return client;
    }

    static void make(JsonNode c, String name) {
        CuratorFramework client = clients.get(c.get("client").asText());
        String path = c.get("paths").get(0).asText();
        if (c.get("kind").asText().equals("gate")) gates.put(name, new DistributedBarrier(client, path));
        else doubles.put(name, new DistributedDoubleBarrier(client, path, c.get("permits").asInt()));
    }
}
