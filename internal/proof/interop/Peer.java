import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The common code of the Java programs. It reads commands, a line of JSON each, and answers each with a line of JSON; see doc.go. */
final class Peer {
    /** Executes a command and puts its results into the answer. */
    interface Commands {
        void execute(JsonNode command, Map<String, Object> answer) throws Exception;
    }

    static final ExecutorService pool = Executors.newCachedThreadPool();
    static final ObjectMapper json = new ObjectMapper();

    private Peer() {}

    /** Executes commands concurrently until standard input ends. */
    static void serve(Commands commands) throws IOException {
        serve(commands, command -> pool);
    }

    /** Executes each command on its executor until standard input ends. Then it exits; sessions that were not closed expire. */
    static void serve(Commands commands, Function<JsonNode, Executor> executorOf) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode command = json.readTree(line);
            executorOf.apply(command).execute(() -> answer(commands, command));
        }
        System.exit(0);
    }

    private static void answer(Commands commands, JsonNode command) {
        Map<String, Object> answer = new TreeMap<>();
        try {
            commands.execute(command, answer);
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

    /** Starts a client of the command's servers. */
    static CuratorFramework connect(JsonNode command) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(command.get("servers").asText(), new ExponentialBackoffRetry(100, 5));
        client.start();
        return client;
    }
}
