import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooKeeper;

/** Uses Apache Curator's locks as commands say: see doc.go. */
public class Locks {
    static final Map<String, CuratorFramework> clients = new ConcurrentHashMap<>();
    static final Map<String, Lock> locks = new ConcurrentHashMap<>();

    public static void main(String[] none) throws IOException {
        Peer.serve(Locks::execute, Locks::executorOf);
    }

    /** A lock belongs to the thread that has acquired it, so each has one of its own. */
    static Executor executorOf(JsonNode c) {
        switch (c.get("do").asText()) {
            case "acquire": case "release": case "work":
                Lock l = locks.get(c.path("lock").asText());
                return l == null ? Peer.pool : l.thread;
            default:
                return Peer.pool;
        }
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        switch (c.get("do").asText()) {
            case "open": open(c, answer); break;
            case "close": clients.remove(text(c, "client")).close(); break;
            case "new": locks.put(text(c, "lock"), new Lock(c)); break;
            case "acquire": answer.put("granted", lock(c).acquire(c)); break;
            case "release": lock(c).part(c).release(); break;
            case "participants": answer.put("participants", lock(c).participants(c)); break;
            case "revocable": lock(c).makeRevocable(c); break;
            case "revoked": lock(c).revoked.await(); break;
            case "revoke": Revoker.attemptRevoke(client(c), text(c, "node")); break;
            case "work": work(c); break;
            default: throw new IllegalArgumentException("no such command");
        }
    }

    static void open(JsonNode c, Map<String, Object> answer) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            text(c, "servers"), c.get("timeout").asInt(), 15_000, new ExponentialBackoffRetry(100, 5));
        client.getUnhandledErrorListenable().addListener((message, e) -> {
            System.err.println("unhandled: " + message);
            e.printStackTrace();
        });
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) throw new IOException("not connected");
        clients.put(text(c, "client"), client);
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        answer.put("session", zk.getSessionId());
        answer.put("password", zk.getSessionPasswd());
    }

    /** One lock object, or the two halves of a read-write lock, with the thread that uses it. */
    static class Lock {
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        final CountDownLatch revoked = new CountDownLatch(1);
        final Map<String, InterProcessLock> parts;

        Lock(JsonNode c) { parts = make(c, client(c), texts(c, "paths")); }

        InterProcessLock part(JsonNode c) {
            InterProcessLock l = parts.get(c.path("part").asText());
            if (l == null) throw new IllegalArgumentException("the parts are " + parts.keySet());
            return l;
        }

        boolean acquire(JsonNode c) throws Exception {
            if (c.has("wait")) return part(c).acquire(c.get("wait").asLong(), TimeUnit.MILLISECONDS);
            part(c).acquire();
            return true;
        }

        Collection<String> participants(JsonNode c) throws Exception {
            InterProcessLock l = part(c);
            if (l instanceof InterProcessMutex) return ((InterProcessMutex) l).getParticipantNodes();
            if (l instanceof Candidate) return ((Candidate) l).ids();
            if (l instanceof Permits) return ((Permits) l).semaphore.getParticipantNodes();
            throw new UnsupportedOperationException(l.getClass() + " does not list its participants");
        }

        void makeRevocable(JsonNode c) {
            ((InterProcessMutex) part(c)).makeRevocable(l -> revoked.countDown());
        }
    }

    static Map<String, InterProcessLock> make(JsonNode c, CuratorFramework client, List<String> paths) {
        String path = paths.get(0);
        switch (text(c, "kind")) {
            case "latch": return Map.of("", new Latch(client, path, text(c, "lock")));
            case "selector": return Map.of("", new Selector(client, path, text(c, "lock")));
            case "mutex": return Map.of("", new InterProcessMutex(client, path));
            case "multi": return Map.of("", new InterProcessMultiLock(client, paths));
            case "semaphore-mutex": return Map.of("", new InterProcessSemaphoreMutex(client, path));
            case "semaphore": return Map.of("", new Permits(client, path, c.get("permits").asInt(), c.get("take").asInt()));
            case "read-write":
                InterProcessReadWriteLock l = new InterProcessReadWriteLock(client, path);
                return Map.of("read", l.readLock(), "write", l.writeLock());
            default: throw new IllegalArgumentException("no such kind of lock");
        }
    }

    /** Some of a semaphore's permits, acquired and released together. */
    static class Permits implements InterProcessLock {
        final InterProcessSemaphoreV2 semaphore;
        final int take;
        Collection<Lease> leases;

        Permits(CuratorFramework client, String path, int permits, int take) {
            this.semaphore = new InterProcessSemaphoreV2(client, path, permits);
            this.take = take;
        }

        public void acquire() throws Exception { leases = semaphore.acquire(take); }

        public boolean acquire(long time, TimeUnit unit) throws Exception {
            leases = semaphore.acquire(take, time, unit);
            return leases != null;
        }

        public void release() throws Exception {
            for (Lease l : leases) l.close(); // returnAll would swallow what goes wrong
            leases = null;
        }

        public boolean isAcquiredInThisProcess() { return leases != null; }
    }

    /** A candidate for leadership, which is acquired and released. */
    interface Candidate extends InterProcessLock {
        Collection<Participant> participants() throws Exception;

        default Collection<String> ids() throws Exception {
            List<String> all = new ArrayList<>();
            for (Participant p : participants()) all.add(p.getId());
            return all;
        }
    }

    static class Latch implements Candidate {
        final CuratorFramework client;
        final String path, id;
        LeaderLatch latch;

        Latch(CuratorFramework client, String path, String id) {
            this.client = client;
            this.path = path;
            this.id = id;
        }

        public void acquire() throws Exception {
            latch = new LeaderLatch(client, path, id);
            latch.start();
            latch.await();
        }

        public boolean acquire(long time, TimeUnit unit) throws Exception {
            latch = new LeaderLatch(client, path, id);
            latch.start();
            boolean leads = latch.await(Math.max(unit.toMillis(time), 100), TimeUnit.MILLISECONDS); // it starts in the background
            if (!leads) latch.close();
            return leads;
        }

        public void release() throws Exception { latch.close(); }

        public boolean isAcquiredInThisProcess() { return latch != null && latch.hasLeadership(); }

        public Collection<Participant> participants() throws Exception { return new LeaderLatch(client, path).getParticipants(); }
    }

    static class Selector implements Candidate {
        final CuratorFramework client;
        final String path, id;
        LeaderSelector selector;
        CountDownLatch leads, enough;

        Selector(CuratorFramework client, String path, String id) {
            this.client = client;
            this.path = path;
            this.id = id;
        }

        void start() {
            leads = new CountDownLatch(1);
            enough = new CountDownLatch(1);
            selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                public void takeLeadership(CuratorFramework c) throws Exception {
                    leads.countDown();
                    enough.await();
                }
            });
            selector.setId(id);
            selector.start();
        }

        public void acquire() throws Exception {
            start();
            leads.await();
        }

        public boolean acquire(long time, TimeUnit unit) throws Exception {
            start();
            boolean lead = leads.await(Math.max(unit.toMillis(time), 100), TimeUnit.MILLISECONDS);
            if (!lead) selector.close();
            return lead;
        }

        public void release() throws Exception {
            enough.countDown();
            while (selector.getLeader().getId().equals(id)) Thread.sleep(5); // close would interrupt it
            selector.close();
        }

        public boolean isAcquiredInThisProcess() { return selector != null && selector.hasLeadership(); }

        public Collection<Participant> participants() throws Exception {
            return new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                public void takeLeadership(CuratorFramework c) {}
            }).getParticipants();
        }
    }

    static void work(JsonNode c) throws Exception {
        InterProcessLock l = lock(c).part(c);
        for (int i = c.get("rounds").asInt(); i > 0; i--) {
            l.acquire();
            try {
                section(c, client(c));
            } finally {
                l.release();
            }
        }
    }

    static void section(JsonNode c, CuratorFramework client) throws Exception {
        List<String> nodes = texts(c, "nodes");
        switch (text(c, "section")) {
            case "add":
                for (String n : nodes) client.setData().forPath(n, ("" + (number(client, n) + 1)).getBytes());
                break;
            case "compare":
                long first = number(client, nodes.get(0)), last = number(client, nodes.get(nodes.size() - 1));
                if (first != last) throw new IllegalStateException("a reader beside a writer: " + first + ", then " + last);
                break;
            case "crowd":
                String me = client.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(nodes.get(0) + "/in-");
                int in = client.getChildren().forPath(nodes.get(0)).size();
                client.delete().forPath(me);
                if (in > c.get("permits").asInt()) throw new IllegalStateException(in + " are in");
                break;
            default: throw new IllegalArgumentException("no such section");
        }
    }

    static long number(CuratorFramework client, String node) throws Exception {
        return Long.parseLong(new String(client.getData().forPath(node)));
    }

    static CuratorFramework client(JsonNode c) { return found(clients, c, "client"); }
    static Lock lock(JsonNode c) { return found(locks, c, "lock"); }

    static <T> T found(Map<String, T> all, JsonNode c, String field) {
        T t = all.get(text(c, field));
        if (t == null) throw new IllegalArgumentException("no such " + field + ": " + text(c, field));
        return t;
    }

    static String text(JsonNode c, String field) {
        if (!c.has(field)) throw new IllegalArgumentException("the command lacks " + field);
        return c.get(field).asText();
    }

    static List<String> texts(JsonNode c, String field) {
        List<String> all = new ArrayList<>();
        c.path(field).forEach(n -> all.add(n.asText()));
        return all;
    }
}
