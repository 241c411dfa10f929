import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;

/** Uses Apache Curator's x-discovery as commands say: see doc.go. */
public class Discovery {
    /** A payload of a Java program's own class. */
    public static class Meta {
        public String zone = "b";
        public int load = 5;
    }

    static final Map<String, ServiceInstance<Object>> registered = new TreeMap<>();
    static final Object changed = new Object();
    static CuratorFramework client;
    static ServiceDiscovery<Object> discovery, writesEnabled;
    static ServiceCache<Object> cache;
    static ServiceProvider<Object> provider;

    public static void main(String[] none) throws IOException {
        Peer.serve(Discovery::execute);
    }

    static void execute(JsonNode c, Map<String, Object> answer) throws Exception {
        String service = text(c, "node"), id = text(c, "lock"), part = text(c, "part");
        List<String> said = new ArrayList<>();
        switch (c.get("do").asText()) {
            case "open":
                client = Peer.connect(c);
                discovery = discovery(part, true);
                writesEnabled = discovery(part, false);
                break;
            case "register":
                registered.put(id, instance(service, id, part, null));
                (part.equals("off") ? writesEnabled : discovery).registerService(registered.get(id));
                break;
            case "change":
                Meta other = new Meta();
                other.load = 7;
                ServiceInstance<Object> next = instance(service, id, part, other);
                discovery.updateService(next);
                registered.put(id, next);
                break;
            case "unregister": discovery.unregisterService(registered.remove(id)); break;
            case "names": said.addAll(discovery.queryForNames()); break;
            case "list": said.addAll(describe(discovery.queryForInstances(service))); break;
            case "one":
                ServiceInstance<Object> one = discovery.queryForInstance(service, id);
                if (one != null) said.addAll(describe(List.of(one)));
                break;
            case "watch":
                cache = discovery.serviceCacheBuilder().name(service).build();
                cache.addListener(new ServiceCacheListener() {
                    public void cacheChanged() {
                        synchronized (changed) { changed.notifyAll(); }
                    }
                    public void stateChanged(CuratorFramework client, ConnectionState state) { }
                });
                cache.start();
                provider = discovery.serviceProviderBuilder().serviceName(service).providerStrategy(new RoundRobinStrategy<>()).build();
                provider.start();
                break;
            case "await":
                List<String> wanted = new ArrayList<>();
                c.path("nodes").forEach(n -> wanted.add(n.asText()));
                said.add("not read yet");
                long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(c.get("wait").asLong());
                synchronized (changed) {
                    while (!said.equals(wanted) && System.nanoTime() < end) {
                        changed.wait(100);
                        said = describe(cache.getInstances());
                    }
                }
                break;
            case "provide": // the instances that a provider gives in some turns
                TreeSet<String> given = new TreeSet<>();
                for (int n = c.get("rounds").asInt(); n > 0; n--) {
                    ServiceInstance<Object> got = provider.getInstance();
                    given.add(got == null ? "none" : got.getId());
                }
                said.addAll(given);
                break;
            default: throw new IllegalArgumentException("no such command");
        }
        answer.put("participants", said);
    }

    /** Curator's default is compatible: the field "enabled" is read, and not written. */
    static ServiceDiscovery<Object> discovery(String base, boolean compatible) throws Exception {
        ServiceDiscovery<Object> d = ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(base)
            .serializer(new JsonInstanceSerializer<>(Object.class, compatible)).build();
        d.start();
        return d;
    }

    static String text(JsonNode c, String field) {
        return c.has(field) ? c.get(field).asText() : null;
    }

    /** The kinds: full has all fields, text has a payload that is a text, off is not enabled, plain has only the necessary fields. */
    static ServiceInstance<Object> instance(String service, String id, String kind, Object payload) throws Exception {
        ServiceInstanceBuilder<Object> b = ServiceInstance.<Object>builder().name(service).id(id).address("10.0.0.8").port(8081);
        if (kind.equals("full")) b.sslPort(8444).payload(new Meta()).uriSpec(new UriSpec("{scheme}://{address}:{port}/v2"));
        if (kind.equals("text")) b.payload("hello");
        if (kind.equals("off")) b.enabled(false);
        if (payload != null) b.payload(payload);
        return b.build();
    }

    /** One line for each instance, ordered. */
    static List<String> describe(Collection<ServiceInstance<Object>> instances) throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        for (ServiceInstance<Object> i : instances) {
            lines.add(String.join(" ", i.getId(), i.getAddress(), String.valueOf(i.getPort()), String.valueOf(i.getSslPort()), i.isEnabled() ? "on" : "off",
                i.getServiceType().toString(), Peer.json.writeValueAsString(i.getPayload()), i.getUriSpec() == null ? "-" : i.buildUriSpec()));
        }
        return new ArrayList<>(lines);
    }
}
