import interop.Closing;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Runs Kafka's own cleaner on partition directories, in place. A request is a line of tab-separated words:
 * directory, now, memory of the offset map, producer.id.expiration.ms, the cleaner's checkpoint or -, and
 * topic configs as key=value. The answer is a line: first dirty offset, first uncleanable offset, the offset
 * that the cleaner has reached, rounds, CPU and wall-clock nanoseconds of cleaning; or "! exception".
 */
public class Cleaning {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String answer;
            try {
                answer = clean(line.split("\t"));
            } catch (Throwable e) {
                answer = "! " + (e.getCause() == null ? e : e.getCause()).toString().replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String clean(String[] words) throws Exception {
        long now = Long.parseLong(words[1]);
        Time time = clock(now);
        Map<String, String> configs = new HashMap<>(Map.of("cleanup.policy", "compact"));
        for (int i = 5; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        UnifiedLog log = UnifiedLog.create(new File(words[0]), new LogConfig(configs), 0, Long.MAX_VALUE, idle(),
            new BrokerTopicStats(), time, 900_000, new ProducerStateManagerConfig(Integer.parseInt(words[3]), false), 600_000,
            new LogDirFailureChannel(1), true, Optional.empty());
        try {
            log.updateHighWatermark(log.logEndOffset());
            var checkpoint = words[4].equals("-") ? Optional.<Long>empty() : Optional.of(Long.parseLong(words[4]));
            Method offsets = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
            offsets.setAccessible(true);
            Object cleanable = offsets.invoke(null, log, checkpoint, now);
            long dirty = number(cleanable, "firstDirtyOffset");
            long end = number(cleanable, "firstUncleanableDirtyOffset");
            var map = new SkimpyOffsetMap(Integer.parseInt(words[2]));
            var throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner", "bytes", Time.SYSTEM);
            var cleaner = new Cleaner(0, map, 1 << 20, 1 << 20, 0.9, throttler, time, partition -> { });
            long first = dirty;
            long uncleanable = new LogToClean(log, dirty, end, false).firstUncleanableOffset();
            // An empty batch stays if the cleaned part ends with it; since Kafka 4.4, if the committed log does.
            log.updateHighWatermark(Math.max(uncleanable, log.logStartOffset()));
            long wall = System.nanoTime();
            long cpu = cpu();
            int rounds = 0;
            // A full map ends a round; the broker continues with the next one.
            while (first < uncleanable) {
                first = cleaner.doClean(new LogToClean(log, first, end, false), now).getKey();
                rounds++;
            }
            cpu = cpu() - cpu;
            wall = System.nanoTime() - wall;
            return dirty + " " + uncleanable + " " + first + " " + rounds + " " + cpu + " " + wall;
        } finally {
            Closing.close(log);
        }
    }

    private static long number(Object record, String name) throws Exception {
        Method getter = record.getClass().getDeclaredMethod(name);
        getter.setAccessible(true);
        return (long) getter.invoke(record);
    }

    private static long cpu() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** The system's time, except for the clock. */
    private static Time clock(long now) {
        return (Time) Proxy.newProxyInstance(Cleaning.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, values) ->
            method.getName().equals("milliseconds") ? (Object) now : method.invoke(Time.SYSTEM, values));
    }

    /** Runs nothing that is scheduled: replaced segments stay, under names that end in .deleted. */
    private static Scheduler idle() {
        return nothing(Scheduler.class, nothing(ScheduledFuture.class, null));
    }

    /** Does nothing; returns false from boolean methods, and this answer from all others. */
    private static <T> T nothing(Class<T> type, Object answer) {
        return type.cast(Proxy.newProxyInstance(Cleaning.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, values) ->
            method.getReturnType() == boolean.class ? (Object) false : answer));
    }
}
