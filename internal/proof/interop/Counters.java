import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;

/** Uses Apache Curator's DistributedAtomicLong and SharedCount as commands say: see doc.go. */
public class Counters {
    static CuratorFramework client;

    public static void main(String[] none) throws IOException {
        Peer.serve(Counters::execute);
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        if (c.get("do").asText().equals("open")) {
            client = Peer.connect(c);
            return;
        }
        List<String> values = new ArrayList<>();
        String path = c.get("node").asText();
        DistributedAtomicLong counter = new DistributedAtomicLong(client, path, new ExponentialBackoffRetry(10, 20));
        switch (c.get("do").asText()) {
            case "read": values.add(String.valueOf(counter.get().postValue())); break;
            case "add":
                for (int n = c.get("rounds").asInt(); n > 0; n--) {
                    AtomicValue<Long> sum = counter.increment();
                    if (sum.succeeded()) values.add(String.valueOf(sum.postValue()));
                }
                break;
            case "contend": values.add(String.valueOf(contend(path, c.get("permits").asInt(), c.get("wait").asInt(), c.get("part").asText()))); break;
            case "share":
                try (SharedCount count = new SharedCount(client, path, 7)) {
                    count.start();
                    values.add(String.valueOf(count.getCount()));
                    count.setCount(count.getCount() + c.get("rounds").asInt());
                }
                break;
            default: throw new IllegalArgumentException("no such command");
        }
        answer.put("participants", values);
    }

    /** Threads share a counter for some milliseconds. Returns how many additions have succeeded. */
    static long contend(String path, int threads, int millis, String retry) throws InterruptedException {
        DistributedAtomicLong counter = new DistributedAtomicLong(client, path,
            retry.equals("at once") ? new RetryNTimes(Integer.MAX_VALUE, 0) : new ExponentialBackoffRetry(10, 20));
        LongAdder succeeded = new LongAdder();
        long end = System.nanoTime() + millis * 1_000_000L;
        List<Thread> all = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
            Thread one = new Thread(() -> {
                try {
                    while (System.nanoTime() < end) if (counter.increment().succeeded()) succeeded.increment();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            one.start();
            all.add(one);
        }
        for (Thread one : all) one.join();
        return succeeded.sum();
    }
}
