import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.atomic.*;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.*;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.*;

/** Makes one measurement of Apache Curator, as measure.go and more.go do. Arguments are -name value. */
public class Compare {
    static final Map<String, String> args = new HashMap<>();

    static long millis(String key) {
        String s = args.get(key);
        if (s.endsWith("ms")) return Long.parseLong(s.substring(0, s.length() - 2));
        long total = 0; // such as 1m30s
        for (String part : s.split("(?<=[hms])")) {
            double n = Double.parseDouble(part.substring(0, part.length() - 1));
            total += n * (part.endsWith("h") ? 3_600_000 : part.endsWith("m") ? 60_000 : 1000);
        }
        return total;
    }

    public static void main(String[] argv) throws Exception {
        for (int i = 0; i + 1 < argv.length; i += 2) args.put(argv[i].substring(1), argv[i + 1]);
        switch (args.get("measure")) {
            case "uncontended": uncontended(); break;
            case "contended": together(open(32)); break;
            case "goroutines": together(Collections.nCopies(32, open())); break;
            case "handover": handover(); break;
            case "next": next(); break;
            case "queue": queue(); break;
            case "counter": counter(); break;
            case "watchers": watchers(); break;
            case "idle": idle(); break;
            case "lock": case "election": member(); break;
            default: throw new IllegalArgumentException("no such work");
        }
        System.exit(0); // the sessions end with the process
    }

    static CuratorFramework open() throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(args.get("servers"), (int) millis("session"), 10000,
            new ExponentialBackoffRetry(100, 5));
        c.start();
        if (!c.blockUntilConnected(15, TimeUnit.SECONDS)) throw new IOException("not connected");
        return c;
    }

    static List<CuratorFramework> open(int n) throws Exception {
        List<CuratorFramework> all = new ArrayList<>();
        for (int i = 0; i < n; i++) all.add(open());
        return all;
    }

    static void perSecond(double n) { System.out.println("{\"per_s\":" + n + "}"); }

    interface Task { void run() throws Exception; }

    static List<Thread> spawn(int n, java.util.function.IntFunction<Task> of) {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Task f = of.apply(i);
            Thread t = new Thread(null, () -> {
                try {
                    f.run();
                } catch (Exception e) {
                    e.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }, "c" + i, 256 << 10);
            all.add(t);
            t.start();
        }
        return all;
    }

    /** Java compiles what is measured while it warms up, which takes longer than Go's warm-up. */
    static long warmup() { return Math.max(2000, millis("warmup")); }

    static void repeat(Task f) throws Exception {
        for (long end = System.nanoTime() + warmup() * 1_000_000; System.nanoTime() < end;) f.run();
        long n = 0, begun = System.nanoTime(), end = begun + millis("t") * 1_000_000;
        for (; System.nanoTime() < end; n++) f.run();
        perSecond(n * 1e9 / (System.nanoTime() - begun));
    }

    static void uncontended() throws Exception {
        InterProcessMutex l = new InterProcessMutex(open(), "/curator-uncontended");
        repeat(() -> { l.acquire(); l.release(); });
    }

    static final AtomicInteger inside = new AtomicInteger();

    static void pass(InterProcessMutex l) throws Exception {
        l.acquire();
        if (inside.incrementAndGet() != 1) throw new IllegalStateException("mutual exclusion violated");
        inside.decrementAndGet();
        l.release();
    }

    /** Threads take turns at one lock, each with a lock object of its own. */
    static void together(List<CuratorFramework> clients) throws Exception {
        count(clients.size(), i -> {
            InterProcessMutex l = new InterProcessMutex(clients.get(i), "/curator-contended");
            return () -> pass(l);
        });
    }

    static void count(int n, java.util.function.IntFunction<Task> of) throws Exception {
        AtomicLong calls = new AtomicLong();
        AtomicBoolean stop = new AtomicBoolean();
        List<Thread> threads = spawn(n, i -> {
            Task f = of.apply(i);
            return () -> { while (!stop.get()) { f.run(); calls.incrementAndGet(); } };
        });
        Thread.sleep(warmup());
        long before = calls.get(), begun = System.nanoTime();
        Thread.sleep(millis("t"));
        perSecond((calls.get() - before) * 1e9 / (System.nanoTime() - begun));
        stop.set(true);
        for (Thread t : threads) t.join();
    }

    static void handover() throws Exception {
        CuratorFramework c = open();
        InterProcessMutex holder = new InterProcessMutex(c, "/curator-handover");
        for (int i = 0; i < 1000; i++) { holder.acquire(); holder.release(); } // compiles
        holder.acquire();
        List<Thread> threads = spawn(1000, i -> {
            InterProcessMutex l = new InterProcessMutex(c, "/curator-handover");
            return () -> pass(l);
        });
        while (c.checkExists().forPath("/curator-handover").getNumChildren() < 1001) Thread.sleep(20);
        Thread.sleep(3000);
        long begun = System.nanoTime();
        holder.release();
        for (Thread t : threads) t.join();
        perSecond(1000 * 1e9 / (System.nanoTime() - begun));
    }

    static volatile long released;

    /** See nextHolder in more.go. */
    static void next() throws Exception {
        List<CuratorFramework> clients = open(20);
        CuratorFramework c = clients.get(0);
        InterProcessMutex warm = new InterProcessMutex(c, "/curator-next");
        for (int i = 0; i < 1000; i++) { warm.acquire(); warm.release(); } // compiles
        BlockingQueue<Long> holds = new LinkedBlockingQueue<>();
        Semaphore end = new Semaphore(0);
        java.util.function.IntFunction<Task> contender = i -> {
            InterProcessMutex l = new InterProcessMutex(clients.get(i % clients.size()), "/curator-next");
            return () -> {
                l.acquire();
                holds.add(System.nanoTime());
                end.acquire();
                released = System.nanoTime();
                l.release();
            };
        };
        spawn(1, contender);
        holds.take();
        List<Thread> threads = spawn(1000, contender);
        while (c.checkExists().forPath("/curator-next").getNumChildren() < 1001) Thread.sleep(20);
        Thread.sleep(3000);
        double[] took = new double[50];
        for (int n = -5; n < 995; n++) { // what is not measured only empties the line
            if (n < took.length) Thread.sleep(20);
            end.release();
            long began = holds.take();
            if (n >= 0 && n < took.length) took[n] = (began - released) / 1e6;
        }
        end.release();
        for (Thread t : threads) t.join();
        middle(took);
    }

    /** A DistributedQueue acknowledges an item by deleting its lock when its consumer has returned: lockPath. */
    static void queue() throws Exception {
        int n = 600;
        for (int round = 0; round < 2; round++) { // the first compiles
            String path = "/curator-queue-" + System.nanoTime();
            CountDownLatch taken = new CountDownLatch(n);
            QueueConsumer<byte[]> consumer = new QueueConsumer<>() {
                public void consumeMessage(byte[] m) { taken.countDown(); }
                public void stateChanged(CuratorFramework c, ConnectionState s) { }
            };
            long begun = System.nanoTime();
            DistributedQueue<byte[]> in = QueueBuilder.builder(open(), null, new Bytes(), path).buildQueue();
            in.start();
            for (int i = 0; i < n; i++) in.put(new byte[100]); // in the background
            if (!in.flushPuts(60, TimeUnit.SECONDS)) throw new IOException("puts take too long");
            DistributedQueue<byte[]> out = QueueBuilder.builder(open(), consumer, new Bytes(), path).lockPath(path + "-locks")
                .buildQueue();
            out.start();
            taken.await();
            if (round == 1) perSecond(n * 1e9 / (System.nanoTime() - begun));
            out.close();
            in.close();
        }
    }

    static class Bytes implements QueueSerializer<byte[]> {
        public byte[] serialize(byte[] b) { return b; }
        public byte[] deserialize(byte[] b) { return b; }
    }

    static void counter() throws Exception {
        List<CuratorFramework> clients = open(32);
        count(32, i -> {
            DistributedAtomicLong n = new DistributedAtomicLong(clients.get(i), "/curator-counter",
                new RetryNTimes(1_000_000, 0));
            return () -> { if (!n.increment().succeeded()) throw new IOException("not incremented"); };
        });
    }

    static void watchers() throws Exception {
        List<CuratorFramework> clients = open(20);
        String path = "/curator-setting";
        if (clients.get(0).checkExists().forPath(path) == null) clients.get(0).create().forPath(path, "0".getBytes());
        AtomicReference<String> wanted = new AtomicReference<>("");
        Semaphore seen = new Semaphore(0);
        for (CuratorFramework c : clients)
            for (int i = 0; i < 50; i++) {
                NodeCache cache = new NodeCache(c, path);
                cache.getListenable().addListener(() -> {
                    if (wanted.get().equals(new String(cache.getCurrentData().getData()))) seen.release();
                });
                cache.start(true);
            }
        Thread.sleep(warmup());
        double[] took = new double[20];
        for (int n = -5; n < took.length; n++) {
            seen.drainPermits();
            wanted.set("v" + n);
            long begun = System.nanoTime();
            clients.get(0).setData().forPath(path, wanted.get().getBytes());
            if (!seen.tryAcquire(1000, 10, TimeUnit.SECONDS)) throw new IOException("not all watchers have seen the change");
            if (n >= 0) took[n] = (System.nanoTime() - begun) / 1e6;
            Thread.sleep(20);
        }
        middle(took);
    }

    /** Prints the median of an even number of figures. */
    static void middle(double[] took) {
        Arrays.sort(took);
        int half = took.length / 2;
        System.out.println("{\"ms\":" + (took[half - 1] + took[half]) / 2 + "}");
    }

    /** See idle in more.go. */
    static void idle() throws Exception {
        open(1000);
        Thread.sleep(millis("session"));
        long before = ticks(), begun = System.nanoTime();
        Thread.sleep(Math.max(10_000, millis("t")));
        System.out.println("{\"ms\":" + (ticks() - before) * 10 * 1e9 / (System.nanoTime() - begun) + "}");
    }

    /** The processor time that the servers have used, in the kernel's ticks of 10 ms. */
    static long ticks() throws Exception {
        long total = 0;
        for (String pid : args.get("pids").split(",")) {
            String stat = new String(java.nio.file.Files.readAllBytes(java.nio.file.Paths.get("/proc/" + pid + "/stat")));
            String[] fields = stat.substring(stat.lastIndexOf(") ") + 2).split(" ");
            total += Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
        }
        return total;
    }

    /** See member in more.go. A connection that is suspended is the first that Curator tells a holder. */
    static void member() throws Exception {
        CuratorFramework c = open();
        c.getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) say("OVER");
        });
        String path = "/" + args.get("name");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        if (args.get("measure").equals("election")) {
            LeaderLatch latch = new LeaderLatch(c, path);
            say("UP");
            latch.start();
            latch.await();
            say("HELD");
            in.readLine();
            say("RELEASED");
            latch.close();
            return;
        }
        InterProcessMutex l = new InterProcessMutex(c, path);
        say("UP");
        l.acquire();
        say("HELD");
        in.readLine();
        say("RELEASED");
        l.release();
    }

    static void say(String what) {
        System.out.println(what);
        System.out.flush();
    }
}
