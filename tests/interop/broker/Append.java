import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.TransactionCoordinatorFencedException;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One partition of a broker, Kafka's UnifiedLog, served over a pipe. Each line of input is a request as a
 * JSON object, and each line of output is its answer:
 *
 * <pre>
 * open: offset, config        an empty log that begins there
 * append: records, origin, epoch, now, magic, transactionVersion; produceVersion for the checks of a request
 * read: offset, maxBytes, committed
 * list: timestamp, committed
 * delete, truncate: offset
 * elect: epoch                a new leader begins where the log ends
 * </pre>
 */
public final class Append {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> LATER_CHECKS = List.of("analyzeAndValidateProducerState", "LogSegment.append");
    private static final Clock CLOCK = new Clock();
    private static UnifiedLog log;
    private static Method append;

    public static void main(String[] arguments) throws Exception {
        File directory = Files.createTempDirectory("append").resolve("given-0").toFile();
        log = UnifiedLog.create(
            directory, new LogConfig(Map.of()), 0L, 0L, new Now(), new BrokerTopicStats(), CLOCK, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Optional.of(Uuid.ONE_UUID));
        append = UnifiedLog.class.getDeclaredMethod(
            "append", MemoryRecords.class, AppendOrigin.class, boolean.class, int.class, Optional.class, VerificationGuard.class,
            boolean.class, byte.class, short.class);
        append.setAccessible(true);
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            ObjectNode answer = JSON.createObjectNode();
            JsonNode request = JSON.readTree(line);
            try {
                answer(request, answer);
            } catch (InvocationTargetException e) {
                refuse(e.getCause(), answer);
            } catch (Throwable e) {
                refuse(e, answer);
            }
            answer.put("start", log.logStartOffset()).put("stable", log.lastStableOffset()).put("end", log.logEndOffset());
            ArrayNode producers = answer.putArray("producers");
            log.activeProducers().stream().sorted(Comparator.comparing(ProducerState::producerId)).forEach(
                it -> producers.addArray().add(it.producerId()).add(it.producerEpoch()).add(it.lastSequence())
                    .add(it.lastTimestamp()).add(it.coordinatorEpoch()).add(it.currentTxnStartOffset()));
            System.out.println(answer);
        }
        Utils.delete(directory.getParentFile());
    }

    private static void refuse(Throwable thrown, ObjectNode answer) {
        Throwable error = thrown instanceof RecordValidationException of ? of.invalidException() : thrown;
        answer.put("error", Errors.forException(error).name());
        // An exception without a protocol error has leaked out of a check.
        answer.put("typed", error instanceof ApiException && Errors.forException(error) != Errors.UNKNOWN_SERVER_ERROR);
        answer.put("text", error.toString());
        answer.put("isLaterCheck", isLaterCheck(error));
        if (thrown instanceof RecordValidationException of) {
            ArrayNode errors = answer.putArray("recordErrors");
            of.recordErrors().forEach(one -> errors.addArray().add(one.batchIndex).add(one.message));
        }
    }

    /** Whether a check of producers, markers or segments failed; they follow the checks of records. */
    private static boolean isLaterCheck(Throwable error) {
        // Most of Kafka's own exceptions have no stack trace.
        return error instanceof InvalidProducerEpochException
            || error instanceof OutOfOrderSequenceException
            || error instanceof InvalidTxnStateException
            || error instanceof TransactionCoordinatorFencedException
            || error.toString().contains("control record")
            || Arrays.stream(error.getStackTrace()).anyMatch(it -> LATER_CHECKS.stream().anyMatch(it.toString()::contains));
    }

    private static void answer(JsonNode request, ObjectNode answer) throws Exception {
        switch (request.get("op").asText()) {
            case "open" -> open(request);
            case "append" -> append(request, answer);
            case "read" -> read(request, answer);
            case "list" -> list(request, answer);
            case "delete" -> log.maybeIncrementLogStartOffset(
                request.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "truncate" -> log.truncateTo(request.get("offset").asLong());
            case "elect" -> log.assignEpochStartOffset(request.get("epoch").asInt(), log.logEndOffset());
            default -> throw new IllegalArgumentException("no such request");
        }
    }

    private static void open(JsonNode request) {
        Map<String, Object> config = new HashMap<>();
        request.get("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        log.updateConfig(new LogConfig(config));
        log.truncateFullyAndStartAt(request.get("offset").asLong(), Optional.empty());
    }

    private static void append(JsonNode request, ObjectNode answer) throws Exception {
        CLOCK.now = request.get("now").asLong();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(request.get("records").asText())));
        if (request.has("produceVersion")) ProduceRequest.validateRecords((short) request.get("produceVersion").asInt(), records);
        AppendOrigin origin = AppendOrigin.valueOf(request.get("origin").asText());
        boolean assigns = origin == AppendOrigin.CLIENT || origin == AppendOrigin.COORDINATOR;
        LogSegment segment = log.activeSegment();
        int before = segment.size();
        var info = (LogAppendInfo) append.invoke(
            log, records, origin, assigns, request.get("epoch").asInt(), Optional.of(RequestLocal.noCaching()),
            VerificationGuard.SENTINEL, origin == AppendOrigin.REPLICATION, (byte) request.get("magic").asInt(),
            (short) request.get("transactionVersion").asInt());
        log.updateHighWatermark(log.logEndOffset());
        answer.putNull("error");
        answer.put("firstOffset", info.firstOffset()).put("lastOffset", info.lastOffset());
        answer.put("maxTimestamp", info.maxTimestamp()).put("logAppendTime", info.logAppendTime());
        answer.put("validBytes", info.validBytes());
        var time = log.activeSegment().readMaxTimestampAndOffsetSoFar();
        answer.put("offsetOfMaxTimestamp", time.timestamp() < 0 ? -1 : time.offset());
        var stats = info.recordValidationStats();
        answer.put("temporaryBytes", stats.temporaryMemoryBytes()).put("converted", stats.numRecordsConverted());
        // An append whose offset is too far from the segment's base offset starts a new segment.
        int from = log.activeSegment() == segment ? before : 0;
        answer.put("bytes", bytes(log.activeSegment().log().slice(from, Integer.MAX_VALUE)));
    }

    private static void read(JsonNode request, ObjectNode answer) throws Exception {
        FetchIsolation isolation =
            request.get("committed").asBoolean() ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK;
        FetchDataInfo data = log.read(request.get("offset").asLong(), request.get("maxBytes").asInt(), isolation, true);
        answer.putNull("error");
        answer.put("bytes", bytes(data.records));
        ArrayNode aborted = answer.putArray("aborted");
        data.abortedTransactions.ifPresent(
            all -> all.forEach(one -> aborted.addArray().add(one.producerId()).add(one.firstOffset())));
    }

    private static void list(JsonNode request, ObjectNode answer) {
        var found = log.fetchOffsetByTimestamp(request.get("timestamp").asLong(), Optional.empty()).timestampAndOffsetOpt();
        answer.putNull("error");
        ArrayNode list = answer.putArray("found");
        found.ifPresent(it -> list.add(it.timestamp).add(it.offset).add(it.leaderEpoch.orElse(-1)));
    }

    private static String bytes(Records records) throws Exception {
        ByteBuffer buffer;
        if (records instanceof FileRecords file) {
            buffer = ByteBuffer.allocate(file.sizeInBytes());
            file.readInto(buffer, 0);
        } else {
            buffer = ((MemoryRecords) records).buffer().duplicate();
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    /** The time that the request sets. */
    private static final class Clock implements Time {
        private long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Runs one-time tasks at once, and never runs periodic ones. */
    private static final class Now implements Scheduler {
        @Override
        public void startup() {}

        @Override
        public void shutdown() {}

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return null;
        }

        @Override
        public void resizeThreadPool(int newSize) {}
    }
}
