package org.apache.kafka.clients.consumer.internals;

import interop.Closing;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
// Kafka 4.4 has moved some of these from the first package to the second.
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * A broker's log, its leader epochs and a consumer's fetch, served over a pipe, with a clock that requests
 * set. A command is a line of tab-separated words; the answer is one line, "! Exception" for what Kafka
 * refuses. The class is in the package of CompletedFetch, whose constructor is package-private.
 */
public class StateOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final LogDirFailureChannel FAILURES = new LogDirFailureChannel(1);
    private static long now;

    private static final ScheduledFuture<?> DONE = (ScheduledFuture<?>) Proxy.newProxyInstance(
        StateOracle.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, values) -> true);

    /** Runs at once what a broker does a little later, and nothing periodic. */
    private static final Scheduler AT_ONCE = new Scheduler() {
        public void startup() { }

        public void shutdown() { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return DONE;
        }

        public void resizeThreadPool(int size) { }
    };

    private static final Time CLOCK = new Time() {
        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(now);
        }

        public void sleep(long ms) {
            now += ms;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }

        public Timer timer(long timeoutMs) {
            return Time.SYSTEM.timer(timeoutMs);
        }
    };

    private UnifiedLog log;
    private LeaderEpochFileCache epochs;
    private final Map<Long, VerificationGuard> guards = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        var oracle = new StateOracle();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String answer;
            try {
                answer = oracle.answer(line.split("\t"));
            } catch (Exception e) {
                answer = "! " + e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "time" -> String.valueOf(now = number(words[1]));
            case "open" -> open(new File(words[1]), Integer.parseInt(words[2]), words[3].equals("clean"), words[4].equals("verify"));
            case "append" -> append(words);
            case "follow" -> {
                var info = log.appendAsFollower(records(words[1]), Integer.MAX_VALUE);
                yield info.firstOffset() + " " + info.lastOffset();
            }
            case "verify" -> {
                var guard = log.maybeStartTransactionVerification(number(words[1]), Integer.parseInt(words[2]),
                    Short.parseShort(words[3]), words[4].equals("bump"));
                guards.put(number(words[1]), guard);
                yield guard == VerificationGuard.SENTINEL ? "sentinel" : "guard";
            }
            case "hw" -> String.valueOf(log.updateHighWatermark(number(words[1])));
            case "roll" -> String.valueOf(log.roll().baseOffset());
            case "truncate" -> String.valueOf(log.truncateTo(number(words[1])));
            case "start" -> String.valueOf(log.maybeIncrementLogStartOffset(number(words[1]),
                LogStartOffsetIncrementReason.ClientRecordDeletion));
            case "expire" -> {
                log.removeExpiredProducers(now);
                yield "done";
            }
            case "close" -> {
                Closing.close(log);
                yield "done";
            }
            case "state" -> state();
            case "read" -> read(number(words[1]), Integer.parseInt(words[2]));
            case "fetch" -> fetch(records(words[1]), words.length > 2 ? words[2].split(",") : new String[0]);
            case "epochs" -> epochs(words);
            case "diverge" -> diverge(words);
            case "aborted" -> log.collectAbortedTransactions(number(words[1]), number(words[2])).stream()
                .map(one -> one.producerId() + " " + one.firstOffset() + " " + one.lastOffset() + " " + one.lastStableOffset())
                .toList().toString();
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static long number(String word) {
        return Long.parseLong(word);
    }

    private static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    private String open(File directory, int expirationMs, boolean clean, boolean verify) throws Exception {
        directory.mkdirs();
        var properties = new Properties();
        properties.put("segment.index.bytes", "65536");
        properties.put("retention.ms", "-1");
        properties.put("message.timestamp.after.max.ms", String.valueOf(Long.MAX_VALUE));
        guards.clear();
        log = UnifiedLog.create(directory, new LogConfig(properties), 0, 0, AT_ONCE, new BrokerTopicStats(), CLOCK,
            900_000, new ProducerStateManagerConfig(expirationMs, verify), 600_000, FAILURES, clean, Optional.empty());
        return String.valueOf(log.logEndOffset());
    }

    private String append(String[] words) throws Exception {
        MemoryRecords batch = records(words[4]);
        var guard = words[3].equals("-") ? VerificationGuard.SENTINEL
            : guards.getOrDefault(number(words[3]), VerificationGuard.SENTINEL);
        long end = log.logEndOffset();
        var info = log.appendAsLeader(batch, 0, AppendOrigin.valueOf(words[1]), RequestLocal.noCaching(), guard,
            Short.parseShort(words[2]));
        String verdict = info.lastOffset() < end ? "duplicate " : "append ";
        return verdict + info.firstOffset() + " " + info.lastOffset()
            + (info.lastOffset() < end ? " " + info.logAppendTime() : "");
    }

    private String state() {
        var manager = log.producerStateManager();
        var lines = new ArrayList<String>();
        manager.activeProducers().forEach((id, entry) -> {
            var line = new StringBuilder(id + " " + entry.producerEpoch() + " " + entry.coordinatorEpoch() + " "
                + entry.lastTimestamp() + " " + entry.currentTxnFirstOffset().orElse(-1));
            entry.batchMetadata().forEach(one -> line.append(" [").append(one.firstSeq()).append(' ').append(one.firstOffset())
                .append(' ').append(one.lastSeq()).append(' ').append(one.lastOffset()).append(' ').append(one.timestamp())
                .append(']'));
            lines.add(line.toString());
        });
        lines.sort(null);
        return manager.firstUnstableOffset().map(one -> one.messageOffset).orElse(-1L) + " "
            + manager.firstUndecidedOffset().orElse(-1) + " " + manager.mapEndOffset() + ";" + String.join(";", lines);
    }

    /** The result of a fetch with read_committed: the batches, and the aborted transactions among them. */
    private String read(long offset, int maxBytes) throws Exception {
        var fetched = log.read(offset, maxBytes, FetchIsolation.TXN_COMMITTED, true);
        ByteBuffer buffer = ByteBuffer.allocate(fetched.records.sizeInBytes());
        for (var batch : fetched.records.batches()) batch.writeTo(buffer);
        buffer.flip();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes) + ";" + fetched.abortedTransactions.orElse(List.of()).stream()
            .map(one -> one.producerId() + ":" + one.firstOffset()).collect(Collectors.joining(","));
    }

    /** The offsets that a consumer with read_committed delivers. */
    private String fetch(MemoryRecords records, String[] aborted) {
        var list = new ArrayList<FetchResponseData.AbortedTransaction>();
        for (String one : aborted) {
            String[] pair = one.split(":");
            list.add(new FetchResponseData.AbortedTransaction().setProducerId(number(pair[0])).setFirstOffset(number(pair[1])));
        }
        var data = new FetchResponseData.PartitionData().setRecords(records).setAbortedTransactions(list);
        var context = new LogContext();
        var metrics = new Metrics();
        var manager = new FetchMetricsManager(metrics, new FetchMetricsRegistry());
        var fetch = new CompletedFetch(context.logger(StateOracle.class),
            new SubscriptionState(context, AutoOffsetResetStrategy.EARLIEST), BufferSupplier.NO_CACHING, PARTITION, data,
            new FetchMetricsAggregator(manager, Set.of(PARTITION)), 0L);
        var config = new FetchConfig(1, 1, 1, 1, 1, true, "", IsolationLevel.READ_COMMITTED);
        var deserializers = new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer(), metrics);
        List<Long> offsets = fetch.<byte[], byte[]>fetchRecords(config, deserializers, Integer.MAX_VALUE).stream()
            .map(record -> record.offset()).toList();
        metrics.close();
        return offsets.toString();
    }

    private String epochs(String[] words) throws Exception {
        switch (words[1]) {
            case "new" -> {
                var file = new File(words[2]);
                epochs = new LeaderEpochFileCache(PARTITION, new LeaderEpochCheckpointFile(file, FAILURES), AT_ONCE);
            }
            case "assign" -> epochs.assign(Integer.parseInt(words[2]), number(words[3]));
            case "start" -> epochs.truncateFromStartAsyncFlush(number(words[2]));
            case "end" -> epochs.truncateFromEndAsyncFlush(number(words[2]));
            case "ask" -> {
                int epoch = Integer.parseInt(words[2]);
                var answer = epochs.endOffsetFor(epoch, number(words[3]));
                return answer.getKey() + " " + answer.getValue() + " " + text(epochs.previousEpoch(epoch)) + " "
                    + text(epochs.nextEpoch(epoch)) + " " + text(epochs.epochForOffset(number(words[4])));
            }
            default -> throw new IllegalArgumentException(words[1]);
        }
        return epochs.epochEntries().stream().map(one -> one.epoch() + " " + one.startOffset()).toList().toString();
    }

    /**
     * Where a follower truncates its log, given the checkpoints and ends of both replicas. The caches are
     * Kafka's; the sequence of requests is that of AbstractFetcherThread (its getOffsetTruncationState, once
     * per round trip).
     */
    private static String diverge(String[] words) throws Exception {
        LeaderEpochFileCache follower = cache(words[1]);
        LeaderEpochFileCache leader = cache(words[3]);
        long end = number(words[2]);
        long leaderEnd = number(words[4]);
        while (follower.latestEpoch().isPresent()) {
            var answer = leader.endOffsetFor(follower.latestEpoch().get(), leaderEnd);
            if (answer.getValue() == -1) return "watermark";
            var own = follower.endOffsetFor(answer.getKey(), end);
            boolean known = own.getValue() != -1;
            boolean same = own.getKey().equals(answer.getKey());
            long offset = !known ? Math.min(answer.getValue(), end)
                : same ? Math.min(Math.min(own.getValue(), answer.getValue()), end) : Math.min(own.getValue(), end);
            boolean done = !known || same;
            if (done || offset == end) return String.valueOf(offset);
            end = offset;
            follower.truncateFromEndAsyncFlush(end);
        }
        return String.valueOf(end);
    }

    private static LeaderEpochFileCache cache(String file) throws Exception {
        return new LeaderEpochFileCache(PARTITION, new LeaderEpochCheckpointFile(new File(file), FAILURES), AT_ONCE);
    }

    private static String text(OptionalInt value) {
        return value.isPresent() ? String.valueOf(value.getAsInt()) : "-";
    }
}
